//! MOS of ended streams.

use super::*;

/// A stream of this source on port `5004 + source`, with every `lost`-th packet missing; it begins at `begin` ms.
fn stream(monitor: &mut FlowMonitor, source: u16, lost: u16, begin: i64) {
    let ends = ([10, 0, 0, 1], 4000, [10, 0, 0, 2], 5004 + source);
    for number in (0..200).filter(|number| lost == 0 || number % lost != 1) {
        let payload = voice(source.into(), 0, number);
        observe(monitor, &udp(ends, &payload), at(begin + 20 * i64::from(number)));
    }
}

fn count(monitor: &mut FlowMonitor) -> EndedStreams {
    monitor.count_ended(0, usize::MAX);
    monitor.ended
}

#[test]
fn stream_counts_once_25_s_after_its_last_packet() {
    let mut monitor = monitor();
    stream(&mut monitor, 1, 0, 0);
    stream(&mut monitor, 2, 4, 4_000);
    assert_eq!(count(&mut monitor), EndedStreams::default());
    // The last packets are at 3980 and 7980 ms.
    observe(&mut monitor, &udp(ENDS, &[0; 40]), at(28_979));
    assert_eq!(count(&mut monitor).count, 0);
    observe(&mut monitor, &udp(ENDS, &[0; 40]), at(28_980));
    let EndedStreams { up_to, count: streams, sum } = count(&mut monitor);
    assert_eq!((up_to, streams), ([0; 5], 1));
    assert!(sum > 4.34, "{sum}");
    stream(&mut monitor, 1, 0, 40_000);
    let EndedStreams { up_to, count: streams, .. } = count(&mut monitor);
    assert_eq!(streams, 2, "the first stream continues, the second has ended");
    assert_eq!(up_to[4], 1);
    let mos = reports(&mut monitor)[0].rtp.as_ref().and_then(|rtp| rtp.mos).expect("a MOS");
    let expected = MOS_BOUNDS.map(|bound| u64::from(mos <= bound));
    assert_eq!(up_to, expected, "{mos}");
    assert!((monitor.ended.sum - sum - mos).abs() < 1e-9);
}

#[test]
fn evicted_stream_counts_once() {
    let mut monitor = FlowMonitor::new(FlowConfig { flows: 1, ..FlowConfig::default() });
    stream(&mut monitor, 1, 0, 0);
    stream(&mut monitor, 2, 0, 4_000);
    assert_eq!((monitor.ended.count, count(&mut monitor).count), (1, 1));
    observe(&mut monitor, &udp(ENDS, &[0; 40]), at(60_000));
    assert_eq!((monitor.ended.count, count(&mut monitor).count), (2, 2));
}

#[test]
fn stream_without_mos_is_not_counted() {
    let mut monitor = monitor();
    for number in 0..200 {
        observe(&mut monitor, &udp(ENDS, &voice(7, 97, number)), at(20 * i64::from(number)));
    }
    observe(&mut monitor, &udp(ENDS, &[0; 40]), at(60_000));
    assert_eq!(count(&mut monitor), EndedStreams::default());
}
