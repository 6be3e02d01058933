//! The rating of a call: R-factor (G.107 section 7.1) and MOS (Annex B).

use serde::Serialize;

use super::impairments::{
    absolute_delay, delay_impairment, signal_to_noise, simultaneous_impairment, total_noise,
};
use super::parameters::Parameters;
use super::scale::Scale;

/// Basic signal-to-noise ratio of the wideband scale Ro,WB with all defaults (G.107.1 section 7.2).
const WIDEBAND_BASIC: f64 = 129.0;
/// Basic signal-to-noise ratio of the fullband scale Ro,FB (G.107.2; for its source see [`super`]).
const FULLBAND_BASIC: f64 = 148.0;
/// Factor of the fullband scale to that of G.107, for impairments by delay and for the MOS (G.107.2).
const FULLBAND_FACTOR: f64 = 1.48;

impl Parameters {
    /// Rating of the call. NaN if a parameter is NaN.
    #[must_use]
    pub fn rating(&self) -> Rating {
        let (basic, simultaneous, delay) = match self.scale {
            Scale::Narrowband => {
                let noise = total_noise(self);
                let basic = signal_to_noise(self, noise);
                let simultaneous = simultaneous_impairment(self, basic, noise);
                (basic, simultaneous, delay_impairment(self, basic, noise))
            }
            Scale::Wideband => (WIDEBAND_BASIC, 0.0, absolute_delay(self.absolute_delay_ms)),
            Scale::Fullband => {
                (FULLBAND_BASIC, 0.0, FULLBAND_FACTOR * absolute_delay(self.absolute_delay_ms))
            }
        };
        Rating {
            scale: self.scale,
            basic,
            simultaneous,
            delay,
            equipment: equipment_impairment(self),
            advantage: self.advantage,
            is_extrapolated: self.extrapolates(),
        }
    }
}

/// Parts of a rating, all on the scale of R.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rating {
    /// The scale of R.
    pub scale: Scale,
    /// Basic signal-to-noise ratio Ro.
    pub basic: f64,
    /// Simultaneous impairment factor Is: impairments that occur with the voice.
    pub simultaneous: f64,
    /// Delay impairment factor Id.
    pub delay: f64,
    /// Effective equipment impairment factor Ie-eff: codec and packet loss.
    pub equipment: f64,
    /// Advantage factor A.
    pub advantage: f64,
    /// Whether delay, loss or burst ratio are outside the range of the model, see [`Parameters::extrapolates`].
    pub is_extrapolated: bool,
}

impl Rating {
    /// Transmission rating factor R, equation 7-1. May be below 0 or above 100; the MOS clamps both.
    #[must_use]
    pub fn r_factor(&self) -> f64 {
        self.basic - self.simultaneous - self.delay - self.equipment + self.advantage
    }

    /// Conversational MOS, MOS-CQE, 1 to 4.5.
    #[must_use]
    pub fn mos(&self) -> f64 {
        self.scale.mos(self.r_factor())
    }
}

/// Effective equipment impairment factor Ie-eff: codec and lost packets (section 7.5, equation 7-29). The fullband model has
/// no burst ratio: its losses are random.
fn equipment_impairment(parameters: &Parameters) -> f64 {
    let Parameters { equipment_impairment, loss_robustness, loss_percent, burst_ratio, .. } =
        *parameters;
    if loss_percent == 0.0 {
        return equipment_impairment; // also for a robustness of 0
    }
    let (max, burst_ratio) = match parameters.scale {
        Scale::Narrowband | Scale::Wideband => (95.0, burst_ratio),
        Scale::Fullband => (132.0, 1.0),
    };
    let share = loss_percent / (loss_percent / burst_ratio + loss_robustness);
    equipment_impairment + (max - equipment_impairment) * share
}
