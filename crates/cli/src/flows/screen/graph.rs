//! Values over time, drawn in one line.

use strum::VariantArray;

/// The quantity of the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, VariantArray)]
pub(super) enum Graph {
    /// Bits per second.
    #[default]
    Rate,
    /// MOS.
    Mos,
    /// Jitter.
    Jitter,
    /// Loss ratio.
    Loss,
}

/// A bar for each eighth of the line's height.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// MOS is from 1 to 4.5 (ITU-T G.107 Annex B).
const MOS_RANGE: (f64, f64) = (1.0, 4.5);

impl Graph {
    /// The next quantity.
    pub(super) fn next(self) -> Self {
        Self::VARIANTS[(self as usize + 1) % Self::VARIANTS.len()]
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Mos => "MOS",
            Self::Jitter => "jitter",
            Self::Loss => "loss",
        }
    }

    /// The newest `width` values as bars; a gap for a missing value.
    pub(super) fn line(self, values: &[Option<f64>], width: usize) -> String {
        let newest = &values[values.len().saturating_sub(width)..];
        let (low, high) = match self {
            Self::Mos => MOS_RANGE,
            _ => (0.0, newest.iter().flatten().copied().fold(0.0, f64::max)),
        };
        let bar = |value: &Option<f64>| value.map_or(' ', |value| bar(value, low, high));
        newest.iter().map(bar).collect()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 7")]
fn bar(value: f64, low: f64, high: f64) -> char {
    let share = if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
    BARS[(share * 7.0).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newest_values_are_drawn_with_gaps() {
        let values = [Some(9.0), Some(0.0), Some(7.0), None, Some(3.5)];
        assert_eq!(Graph::Rate.line(&values, 4), "▁█ ▅");
        assert_eq!(Graph::Rate.line(&[Some(0.0), Some(0.0)], 4), "▁▁");
        assert_eq!(Graph::Loss.line(&[], 4), "");
    }

    #[test]
    fn mos_has_a_fixed_scale() {
        assert_eq!(Graph::Mos.line(&[Some(1.0), Some(4.5), Some(f64::NAN)], 3), "▁█▁");
    }
}
