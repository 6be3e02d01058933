//! The rating of a call: R-factor (G.107 section 7.1) and MOS (Annex B).

use serde::Serialize;

use super::impairments::{delay_impairment, signal_to_noise, simultaneous_impairment, total_noise};
use super::parameters::Parameters;

impl Parameters {
    /// Rating of the call. NaN if a parameter is NaN.
    #[must_use]
    pub fn rating(&self) -> Rating {
        let noise = total_noise(self);
        let basic = signal_to_noise(self, noise);
        Rating {
            basic,
            simultaneous: simultaneous_impairment(self, basic, noise),
            delay: delay_impairment(self, basic, noise),
            equipment: equipment_impairment(self),
            advantage: self.advantage,
        }
    }
}

/// Parts of a rating, all on the scale of R.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rating {
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
        mos_of(self.r_factor())
    }
}

/// MOS of a rating R, 1 (bad) to 4.5, equation B-4 of G.107.
///
/// The polynomial of Annex B falls to 0.99 between R = 0 and R = 6.5; the scale begins at 1, which is returned there.
/// NaN if `r_factor` is NaN.
#[must_use]
pub fn mos_of(r_factor: f64) -> f64 {
    let r = r_factor.clamp(0.0, 100.0);
    (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).clamp(1.0, 4.5)
}

/// Effective equipment impairment factor Ie-eff: codec and lost packets (section 7.5, equation 7-29).
fn equipment_impairment(parameters: &Parameters) -> f64 {
    let Parameters { equipment_impairment, loss_robustness, loss_percent, burst_ratio, .. } =
        *parameters;
    if loss_percent == 0.0 {
        return equipment_impairment; // also for a robustness of 0
    }
    let share = loss_percent / (loss_percent / burst_ratio + loss_robustness);
    equipment_impairment + (95.0 - equipment_impairment) * share
}
