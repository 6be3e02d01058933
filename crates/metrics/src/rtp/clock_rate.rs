//! The clock rates of static payload types.

use std::num::NonZeroU32;

/// The rate of the timestamps of a payload type, in Hz: RFC 3551 section 6, tables 4 and 5. G.722's is
/// 8000 though it samples at 16 kHz (section 4.5.2).
///
/// `None` for dynamic payload types (96 to 127), which the signalling has to tell, and for those that
/// are reserved or unassigned; 1, 2 and 19, assigned before RFC 3551 reserved them, keep their 8000.
#[must_use]
pub const fn static_clock_rate(payload_type: u8) -> Option<NonZeroU32> {
    NonZeroU32::new(match payload_type {
        0..=5 | 7..=9 | 12 | 13 | 15 | 18 | 19 => 8000,
        6 => 16_000,
        10 | 11 => 44_100,
        16 => 11_025,
        17 => 22_050,
        14 | 25 | 26 | 28 | 31..=34 => 90_000,
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn audio_and_video_have_their_rates_and_dynamic_types_none() {
        let rates =
            [0, 8, 18, 11, 33, 96, 127].map(|it| static_clock_rate(it).map(NonZeroU32::get));
        let expected = [8000, 8000, 8000, 44_100, 90_000].map(Some);
        assert_eq!(rates[..5], expected);
        assert_eq!(rates[5..], [None, None]);
    }
}
