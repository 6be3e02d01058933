//! Results of the report.

use serde::Serialize;

/// Source of the numbers.
pub(crate) const PAPER: &str =
    "6QM, \"D4.2: Final System Test Report\" (IST-2001-37611, 2007), section 3.7";

/// A test of the report: frames of 600 bytes, 4,167 a second for 60 s. Delays are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Published {
    /// Packets that the active measurement has as received, and the passive one.
    pub(super) received: [u32; 2],
    /// "OWD min", active and passive.
    pub(super) min_ms: [f64; 2],
    /// "OWD max".
    pub(super) max_ms: [f64; 2],
    /// "OWD mean".
    pub(super) mean_ms: [f64; 2],
}

impl Published {
    /// Differences of min, mean and max: active minus passive delay.
    pub(super) fn differences_ms(&self) -> [f64; 3] {
        [self.min_ms, self.mean_ms, self.max_ms].map(|[active, passive]| active - passive)
    }
}

const fn test(
    received: [u32; 2],
    min_ms: [f64; 2],
    max_ms: [f64; 2],
    mean_ms: [f64; 2],
) -> Published {
    Published { received, min_ms, max_ms, mean_ms }
}

/// Figures 3-40 and 3-41, in their order.
pub(super) const PUBLISHED: [Published; 7] = [
    test([53_622, 53_692], [-112.697, 0.616], [110.83, 70.38], [24.00, 23.54]),
    test([45_906, 46_168], [-569.121, 0.665], [179.46, 125.81], [124.00, 64.66]),
    test([26_989, 27_137], [-185.797, 0.482], [265.63, 143.16], [144.00, 124.85]),
    test([35_147, 35_226], [-259.381, 0.577], [267.66, 134.50], [137.00, 125.53]),
    test([23_369, 24_221], [-28.165, 0.615], [367.27, 222.38], [232.00, 168.63]),
    test([28_948, 29_272], [-102.471, 0.542], [265.86, 145.98], [148.00, 123.66]),
    test([23_910, 23_959], [-12.683, 0.611], [319.11, 193.41], [195.00, 145.54]),
];
