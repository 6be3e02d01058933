//! What codecs and lost packets do to the voice: G.107 section 7.5.

use super::Parameters;

/// Ie-eff, equation 7-29.
pub(super) fn impairment(parameters: &Parameters) -> f64 {
    let Parameters { equipment_impairment, loss_robustness, loss_percent, burst_ratio, .. } =
        *parameters;
    if loss_percent == 0.0 {
        return equipment_impairment; // whatever the robustness, 0 too
    }
    let share = loss_percent / (loss_percent / burst_ratio + loss_robustness);
    equipment_impairment + (95.0 - equipment_impairment) * share
}
