//! Scales of ratings.

use serde::{Deserialize, Serialize};

/// The scale of a rating: that of the E-model that computes it. Ratings and MOS of different scales are not comparable:
/// users who know wideband calls judge narrowband ones more strictly than others do.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// 300 to 3400 Hz, ITU-T G.107. R is 93.2 without impairments.
    #[default]
    Narrowband,
    /// 100 to 7000 Hz, ITU-T G.107.1. R is 129 without impairments.
    Wideband,
    /// 20 to 20000 Hz, ITU-T G.107.2. R is 148 without impairments.
    Fullband,
}

impl Scale {
    /// Name in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Narrowband => "narrowband",
            Self::Wideband => "wideband",
            Self::Fullband => "fullband",
        }
    }

    /// Conversational MOS of a rating, 1 to 4.5: G.107 Annex B, G.107.1 Annex A, and that of R / 1.48 for fullband. NaN if
    /// `r_factor` is NaN.
    #[must_use]
    pub fn mos(self, r_factor: f64) -> f64 {
        match self {
            Self::Narrowband => mos_of(r_factor),
            Self::Wideband => mos_of(r_factor / 1.29),
            Self::Fullband => mos_of(r_factor / 1.48),
        }
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
