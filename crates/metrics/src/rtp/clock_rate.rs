//! The clock rates of static payload types.

use std::num::NonZeroU32;

/// The rate of the timestamps of a payload type, in Hz: RFC 3551 section 6, tables 4 and 5. G.722's is
/// 8000 though it samples at 16 kHz (section 4.5.2).
///
/// `None` for dynamic payload types (96 to 127), which the signalling has to tell, and for those that
/// are reserved or unassigned. Three that RFC 3551 reserves keep their old 8000: 1 and 2, which RFC 1890
/// section 6 bound to 1016 and G721, and 19, which drafts of RFC 3551 bound to comfort noise.
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
    fn the_rates_are_those_of_tables_4_and_5_and_three_older_ones() {
        let types_at = |hz: u32| -> Vec<u8> {
            let rate = NonZeroU32::new(hz);
            (0..=u8::MAX).filter(|payload_type| static_clock_rate(*payload_type) == rate).collect()
        };
        assert_eq!(types_at(8000), [0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 18, 19]);
        assert_eq!((types_at(16_000), types_at(44_100)), (vec![6], vec![10, 11]));
        assert_eq!((types_at(11_025), types_at(22_050)), (vec![16], vec![17]));
        assert_eq!(types_at(90_000), [14, 25, 26, 28, 31, 32, 33, 34]);
        // The others are dynamic, reserved or unassigned.
        assert_eq!(types_at(0).len(), 256 - 27);
    }
}
