//! Send times of packets.

use std::time::Duration;

use fastrand::Rng;

/// Intervals between packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketSchedule {
    /// Equal intervals (RFC 3432).
    Periodic(Duration),
    /// A Poisson process with this mean interval (RFC 2330 section 11.1.1): unbiased samples, also of a
    /// path with periodic behaviour.
    Poisson(Duration),
}

/// Max interval as a multiple of the mean: one in five hundred million would be longer.
const MAX_FACTOR: f64 = 20.0;

impl PacketSchedule {
    /// The mean interval.
    #[must_use]
    pub const fn mean(self) -> Duration {
        match self {
            Self::Periodic(mean) | Self::Poisson(mean) => mean,
        }
    }

    /// The interval to the next packet.
    pub(super) fn next(self, random: &mut Rng) -> Duration {
        match self {
            Self::Periodic(interval) => interval,
            Self::Poisson(mean) => {
                // 1 minus a number below 1, so never the logarithm of 0.
                let factor = -(1.0 - random.f64()).ln();
                Duration::try_from_secs_f64(mean.as_secs_f64() * factor.min(MAX_FACTOR))
                    .unwrap_or(Duration::MAX)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_deviation_equals_the_mean() {
        let mean = Duration::from_millis(10);
        let mut random = Rng::with_seed(1);
        let draw =
            |_| PacketSchedule::Poisson(mean).next(&mut random).as_secs_f64() / mean.as_secs_f64();
        let drawn: Vec<f64> = (0..100_000).map(draw).collect();
        let average = drawn.iter().sum::<f64>() / 1e5;
        let variance = drawn.iter().map(|it| (it - average).powi(2)).sum::<f64>() / 1e5;
        // Five standard errors of each.
        assert!((average - 1.0).abs() < 0.016, "{average}");
        assert!((variance - 1.0).abs() < 0.05, "{variance}");
        let mut random = Rng::with_seed(1);
        assert_eq!(PacketSchedule::Periodic(mean).next(&mut random), mean);
    }
}
