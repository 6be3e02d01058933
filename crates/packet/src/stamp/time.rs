//! Times in test packets: 64 bits in one of two formats.

use wirestamp_clock::{Span, Time, Utc};

const NANOS: i128 = 1_000_000_000;

/// Seconds from 1900, the epoch of NTP, to 1970 (RFC 868).
const NTP_TO_UNIX: i128 = 2_208_988_800;

/// Format of the 64 bits of a time (RFC 8762 section 4.2.1, the bit Z of an error estimate).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Seconds since 1900 and fractions of 2^-32 s, in UTC (RFC 5905 section 6).
    #[default]
    Ntp,
    /// Seconds since 1970 and nanoseconds (RFC 8877 section 4.3). PTP's scale is TAI, which is ahead of UTC by the
    /// number of leap seconds.
    Ptp,
}

/// A time in the format of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamped(pub u64);

impl Stamped {
    /// A time in a format, with TAI ahead of UTC by `tai`. The seconds have 32 bits: the higher bits of later and
    /// earlier times are dropped.
    #[must_use]
    pub fn of(time: Time<Utc>, format: Format, tai: Span) -> Self {
        let nanos = i128::from(time.as_nanos());
        let (seconds, low) = match format {
            Format::Ntp => {
                let nanos = nanos + NTP_TO_UNIX * NANOS;
                // To the nearest fraction, which is finer than a nanosecond.
                let fractions = ((nanos.rem_euclid(NANOS) << 32) + NANOS / 2) / NANOS;
                (nanos.div_euclid(NANOS), fractions)
            }
            Format::Ptp => {
                let nanos = nanos + i128::from(tai.as_nanos());
                (nanos.div_euclid(NANOS), nanos.rem_euclid(NANOS))
            }
        };
        Self(low_half(seconds) << 32 | low_half(low))
    }

    /// The time, to the nearest nanosecond. NTP seconds with the highest bit set are in 1968 to 2036, others in 2036
    /// to 2104 (RFC 4330 section 3); PTP seconds are in 1970 to 2106.
    #[must_use]
    pub fn time(self, format: Format, tai: Span) -> Time<Utc> {
        let (seconds, low) = (i128::from(self.0 >> 32), i128::from(self.0 & u64::from(u32::MAX)));
        let nanos = match format {
            Format::Ntp => {
                let era = if seconds >> 31 == 0 { 1_i128 << 32 } else { 0 };
                let nanos = (low * NANOS + (1 << 31)) >> 32;
                (seconds + era - NTP_TO_UNIX) * NANOS + nanos
            }
            Format::Ptp => seconds * NANOS + low - i128::from(tai.as_nanos()),
        };
        // 2^33 seconds are less than 2^63 nanoseconds.
        Time::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
}

/// The lower 32 bits.
fn low_half(number: i128) -> u64 {
    u64::try_from(number.rem_euclid(1 << 32)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEAP_SECONDS: Span = Span::from_secs(37);

    #[test]
    fn times_equal_those_of_the_standards() {
        // RFC 5905 figure 4: the first day of UTC, of Unix, and of NTP's era 1.
        let seconds = |seconds: i64| Time::from_nanos(seconds * 1_000_000_000);
        let ntp = |time| Stamped::of(time, Format::Ntp, Span::ZERO).0 >> 32;
        assert_eq!(ntp(seconds(63_072_000)), 2_272_060_800);
        assert_eq!(ntp(seconds(0)), 2_208_988_800);
        assert_eq!(ntp(seconds(2_085_978_496)), 0);
        let half = Stamped::of(Time::from_nanos(500_000_000), Format::Ntp, Span::ZERO);
        assert_eq!(half.0 & 0xffff_ffff, 1 << 31);
        let ptp = Stamped::of(seconds(1), Format::Ptp, LEAP_SECONDS);
        assert_eq!(ptp, Stamped(38 << 32));
    }

    proptest! {
        #[test]
        fn times_survive_conversion_to_the_nanosecond(
            nanos in 0..4_200_000_000_000_000_000_i64, is_ptp: bool,
        ) {
            let format = if is_ptp { Format::Ptp } else { Format::Ntp };
            let time = Time::from_nanos(nanos);
            let back = Stamped::of(time, format, LEAP_SECONDS).time(format, LEAP_SECONDS);
            prop_assert_eq!(back, time);
        }

        #[test]
        fn arbitrary_bits_are_a_time(bits: u64, nanos: i64, tai: i64) {
            for format in [Format::Ntp, Format::Ptp] {
                let _ = Stamped(bits).time(format, Span::from_nanos(tai));
                let _ = Stamped::of(Time::from_nanos(nanos), format, Span::from_nanos(tai));
            }
        }
    }
}
