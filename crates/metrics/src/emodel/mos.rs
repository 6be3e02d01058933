//! Mean opinion scores: G.107 Annex B.

/// The mean opinion score that a rating R stands for, 1 (bad) to 4.5, equation B-4 of G.107.
///
/// The polynomial of Annex B dips to 0.99 between R = 0 and R = 6.5; the scale begins at 1, so that
/// is what is returned there. Not a number where `r_factor` is not.
#[must_use]
pub fn mean_opinion_score(r_factor: f64) -> f64 {
    let r = r_factor.clamp(0.0, 100.0);
    (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).clamp(1.0, 4.5)
}
