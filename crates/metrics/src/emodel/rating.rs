//! The rating of a call: R-factor (G.107 section 7.1) and MOS (Annex B).

use serde::Serialize;

use super::parameters::Parameters;
use super::{delay, noise, simultaneous};

impl Parameters {
    /// How the call is rated. Not a number where a parameter is not.
    #[must_use]
    pub fn rating(&self) -> Rating {
        let noise = noise::sum(self);
        let basic = noise::signal_to_noise(self, noise);
        Rating {
            basic,
            simultaneous: simultaneous::impairment(self, basic, noise),
            delay: delay::impairment(self, basic, noise),
            equipment: equipment_impairment(self),
            advantage: self.advantage,
        }
    }
}

/// The parts of a rating, all on the scale of R.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rating {
    /// The basic signal-to-noise ratio Ro.
    pub basic: f64,
    /// The simultaneous impairment factor Is: what comes with the voice itself.
    pub simultaneous: f64,
    /// The delay impairment factor Id.
    pub delay: f64,
    /// The effective equipment impairment factor Ie-eff: codec and packet loss.
    pub equipment: f64,
    /// The advantage factor A.
    pub advantage: f64,
}

impl Rating {
    /// The transmission rating factor R, equation 7-1. The model lets it fall below 0 and rise above
    /// 100; a mean opinion score takes both as the ends of the scale.
    #[must_use]
    pub fn r_factor(&self) -> f64 {
        self.basic - self.simultaneous - self.delay - self.equipment + self.advantage
    }

    /// The mean opinion score of a conversation, MOS-CQE, 1 to 4.5.
    #[must_use]
    pub fn mos(&self) -> f64 {
        mean_opinion_score(self.r_factor())
    }
}

/// The mean opinion score that a rating R stands for, 1 (bad) to 4.5, equation B-4 of G.107.
///
/// The polynomial of Annex B dips to 0.99 between R = 0 and R = 6.5; the scale begins at 1, so that
/// is what is returned there. Not a number where `r_factor` is not.
#[must_use]
pub fn mean_opinion_score(r_factor: f64) -> f64 {
    let r = r_factor.clamp(0.0, 100.0);
    (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).clamp(1.0, 4.5)
}

/// Effective equipment impairment factor Ie-eff: codec and lost packets (section 7.5, equation 7-29).
fn equipment_impairment(parameters: &Parameters) -> f64 {
    let Parameters { equipment_impairment, loss_robustness, loss_percent, burst_ratio, .. } =
        *parameters;
    if loss_percent == 0.0 {
        return equipment_impairment; // whatever the robustness, 0 too
    }
    let share = loss_percent / (loss_percent / burst_ratio + loss_robustness);
    equipment_impairment + (95.0 - equipment_impairment) * share
}
