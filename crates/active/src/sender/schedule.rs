//! When packets are sent.

use std::time::Duration;

use fastrand::Rng;

/// The rhythm of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rhythm {
    /// At equal distances (RFC 3432).
    Periodic(Duration),
    /// As a Poisson process with this mean distance (RFC 2330 section 11.1.1): sees a path as it is on
    /// average, whatever its own rhythms are.
    Poisson(Duration),
}

/// How often the mean distance one distance may be: a part in five hundred million is longer.
const LONGEST: f64 = 20.0;

impl Rhythm {
    /// The mean distance.
    #[must_use]
    pub const fn mean(self) -> Duration {
        match self {
            Self::Periodic(mean) | Self::Poisson(mean) => mean,
        }
    }

    /// The distance to the next packet.
    pub(super) fn next(self, random: &mut Rng) -> Duration {
        match self {
            Self::Periodic(distance) => distance,
            Self::Poisson(mean) => {
                // Of 1 less a number below 1, so that it is never the logarithm of 0.
                let factor = -(1.0 - random.f64()).ln();
                Duration::try_from_secs_f64(mean.as_secs_f64() * factor.min(LONGEST))
                    .unwrap_or(Duration::MAX)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poisson_process_has_its_mean_and_a_deviation_as_large() {
        let mean = Duration::from_millis(10);
        let mut random = Rng::with_seed(1);
        let draw = |_| Rhythm::Poisson(mean).next(&mut random).as_secs_f64() / mean.as_secs_f64();
        let drawn: Vec<f64> = (0..100_000).map(draw).collect();
        let average = drawn.iter().sum::<f64>() / 1e5;
        let variance = drawn.iter().map(|it| (it - average).powi(2)).sum::<f64>() / 1e5;
        // Five standard errors of each.
        assert!((average - 1.0).abs() < 0.016, "{average}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
        let mut random = Rng::with_seed(1);
        assert_eq!(Rhythm::Periodic(mean).next(&mut random), mean);
    }
}
