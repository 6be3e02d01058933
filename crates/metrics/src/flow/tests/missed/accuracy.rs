//! Network loss and MOS of simulated streams are exact, or within the reported bounds.

use proptest::prelude::*;

use super::simulation::{
    Random, add_unnumbered, capture, intervals, observed, sent, truth, with_rough_times,
};
use super::*;

/// Bounds of the MOS.
fn bounds(rtp: &RtpReport) -> std::ops::RangeInclusive<f64> {
    // Floating-point sums in another order.
    rtp.mos_lowest.unwrap() - 1e-9..=rtp.mos_highest.unwrap() + 1e-9
}

/// Asserts that the true values of a stream are within the reported bounds.
fn check_bounds(found: &FlowReport, truth: &FlowReport) {
    let off = found.lost.unwrap().abs_diff(truth.lost.unwrap());
    let (found, truth) = (found.rtp.as_ref().unwrap(), truth.rtp.as_ref().unwrap());
    let uncertain = found.lost_uncertainty;
    assert!(off <= uncertain, "{off} with {uncertain} uncertain");
    let bounds = bounds(found);
    for mos in [found.mos, truth.mos].map(Option::unwrap) {
        assert!(bounds.contains(&mos), "{mos} in {bounds:?}");
    }
}

fn lost(reports: &[FlowReport]) -> Vec<u64> {
    reports.iter().filter_map(|report| report.lost).collect()
}

/// Includes cases where the network loses several in a hundred during the capture loss.
#[test]
fn mos_is_near_the_truth_despite_capture_loss() {
    let (mut streams, mut certain, mut max_error) = (0, 0, 0.0_f64);
    for seed in 0..300 {
        let mut random = Random(seed);
        let mut sent = sent(1 + u16::try_from(seed % 7).unwrap(), seed % 8, &mut random);
        let intervals = intervals(&mut random, 1 + seed % 199);
        let missed = capture(&mut sent, &intervals, 0);
        for (found, truth) in observed(&sent, &missed, 0).iter().zip(&truth(&sent)) {
            let (found, truth) = (found.rtp.as_ref().unwrap(), truth.rtp.as_ref().unwrap());
            streams += 1;
            certain += u32::from(found.mos_highest.unwrap() - found.mos_lowest.unwrap() < 0.05);
            max_error = max_error.max((found.mos.unwrap() - truth.mos.unwrap()).abs());
        }
    }
    assert!(4 * certain > 3 * streams, "{certain} of {streams}");
    assert!(max_error < 0.05, "{max_error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Exact for all streams together, and within the stated bounds for each. The bounds of the MOS differ by less
    /// than 0.05 where at most one packet is uncertain.
    #[test]
    fn total_network_loss_is_exact(
        seed: u64, streams in 1..8u16, percent in 0..8u64, longest in 1..200u64,
        report_delay in 0..200_000i64,
    ) {
        let mut random = Random(seed);
        let mut sent = sent(streams, percent, &mut random);
        let intervals = intervals(&mut random, longest);
        let missed = capture(&mut sent, &intervals, 0);
        let (found, truth) = (observed(&sent, &missed, report_delay), truth(&sent));
        prop_assert_eq!(lost(&found).iter().sum::<u64>(), lost(&truth).iter().sum::<u64>());
        for (found, truth) in found.iter().zip(&truth) {
            check_bounds(found, truth);
            let found = found.rtp.as_ref().unwrap();
            let (uncertain, bounds) = (found.lost_uncertainty, bounds(found));
            let width = bounds.end() - bounds.start();
            prop_assert!(uncertain > 1 || width < 0.05, "{:?} with {} uncertain", bounds, uncertain);
        }
    }

    /// Exact for all streams together; exact for each, too, if the network lost no packet near the intervals.
    #[test]
    fn bounds_hold_with_roughly_dated_losses(
        seed: u64, streams in 1..8u16, percent in 0..8u64, longest in 1..200u64,
        report_delay in 0..200_000i64, lost_by_both: bool,
    ) {
        let mut random = Random(seed);
        let (sent, missed) = with_rough_times(streams, percent, longest, lost_by_both, &mut random);
        let (found, truth) = (observed(&sent, &missed, report_delay), truth(&sent));
        prop_assert_eq!(lost(&found).iter().sum::<u64>(), lost(&truth).iter().sum::<u64>());
        for (found, truth) in found.iter().zip(&truth) {
            check_bounds(found, truth);
            let rtp = found.rtp.as_ref().unwrap();
            prop_assert!(lost_by_both || rtp.mos_lowest == rtp.mos_highest, "{:?}", found);
        }
    }

    #[test]
    fn bounds_hold_with_other_traffic(
        seed: u64, streams in 1..8u16, percent in 0..8u64, longest in 1..200u64,
        report_delay in 0..200_000i64, every in 2..50u16,
    ) {
        let mut random = Random(seed);
        let mut sent = sent(streams, percent, &mut random);
        add_unnumbered(&mut sent, every, &mut random);
        let intervals = intervals(&mut random, longest);
        let missed = capture(&mut sent, &intervals, 0);
        let (found, truth) = (observed(&sent, &missed, report_delay), truth(&sent));
        prop_assert_eq!(found.len(), usize::from(streams));
        found.iter().zip(&truth).for_each(|(found, truth)| check_bounds(found, truth));
    }

    /// Includes cases where the capture lost many packets outside RTP, if the network lost none near the intervals.
    #[test]
    fn network_loss_of_each_stream_is_exact(
        seed: u64, streams in 1..8u16, percent in 0..8u64, longest in 1..200u64,
        report_delay in 0..200_000i64, others in 0..1000u64,
    ) {
        let mut random = Random(seed);
        let mut sent = sent(streams, percent, &mut random);
        let intervals = intervals(&mut random, longest);
        for it in &mut sent {
            let near = |(from, until): &(i64, i64)| (from - 8000..until + 8000).contains(&it.micros);
            it.by_network &= !intervals.iter().any(near);
        }
        let missed = capture(&mut sent, &intervals, others);
        let (found, truth) = (observed(&sent, &missed, report_delay), truth(&sent));
        prop_assert_eq!(lost(&found), lost(&truth));
        for (found, truth) in found.iter().zip(&truth) {
            let (found, truth) = (found.rtp.as_ref().unwrap(), truth.rtp.as_ref().unwrap());
            prop_assert_eq!(found.mos, truth.mos);
            prop_assert!(bounds(found).contains(&truth.mos.unwrap()));
            prop_assert!(others > 0 || found.mos_lowest == found.mos_highest, "{:?}", found);
        }
    }
}
