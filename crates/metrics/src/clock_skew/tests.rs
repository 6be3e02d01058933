use proptest::prelude::*;

use super::*;

/// Sending time and queueing delay of a packet, in nanoseconds.
type Packet = (i64, i64);

/// Estimate for these packets over a path of 3 ms, if B's clock gains `ppm` on A's and was a day ahead at the start.
fn estimate(packets: &[Packet], ppm: f64) -> Option<SkewEstimate> {
    let mut skew = ClockSkew::default();
    for &(sent, queued) in packets {
        skew.record(Time::from_nanos(sent), Span::from_nanos(delay(sent, queued, ppm)));
    }
    skew.estimate()
}

#[expect(clippy::cast_possible_truncation, reason = "a drift of seconds")]
fn delay(sent: i64, queued: i64, ppm: f64) -> i64 {
    86_400_000_000_000 + 3_000_000 + queued + (nanos_to_f64(sent) * ppm / 1e6).round() as i64
}

/// Max error of the line for these queueing delays. The line is below the true floor plus the delay of each packet, and
/// at the mean time not below the floor. So the error of its slope is at most the min of delay over distance from the
/// mean, on each side of the mean.
fn bound_ppm(packets: &[Packet]) -> f64 {
    let count = count_to_f64(packets.len() as u64);
    let mean = packets.iter().map(|(sent, _)| nanos_to_f64(*sent)).sum::<f64>() / count;
    let side = |sign: f64| {
        let away = packets.iter().map(|(sent, wait)| (sign * (nanos_to_f64(*sent) - mean), *wait));
        // A nanosecond is lost to rounding at either end.
        away.filter(|(away, _)| *away > 1.0)
            .map(|(away, wait)| (nanos_to_f64(wait) + 2.0) / away)
            .fold(f64::INFINITY, f64::min)
    };
    side(1.0).max(side(-1.0)) * 1e6
}

/// Queueing delays at a queue that is empty for one packet in five: zero or exponential.
fn waits() -> impl Strategy<Value = i64> {
    let waits = (0.0..1.0_f64).prop_map(|share| {
        #[expect(clippy::cast_possible_truncation, reason = "some milliseconds")]
        let wait = (-2e6 * (1.0 - share).ln()) as i64;
        wait
    });
    prop_oneof![1 => Just(0), 4 => waits]
}

/// Packets about every 20 ms, a few out of order.
fn packets() -> impl Strategy<Value = Vec<Packet>> {
    prop::collection::vec((0i64..60_000_000, waits()), 8..800).prop_map(|packets| {
        let sent = (0..).step_by(20_000_000).zip(packets);
        sent.map(|(slot, (off, wait))| (slot + off, wait)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn estimate_error_is_within_the_bound(
        packets in packets(),
        ppm in -500.0..500.0_f64,
    ) {
        let found = estimate(&packets, ppm).expect("eight packets at different times");
        let off = (found.ppm - ppm).abs();
        prop_assert!(off <= bound_ppm(&packets) + 1e-6, "{off} {}", bound_ppm(&packets));
    }
}

/// A pseudo-random shift register (taps of x^32 + x^22 + x^2 + x + 1, which is primitive).
fn random(mut state: u32) -> impl FnMut() -> f64 {
    move || {
        for _ in 0..32 {
            let bit = (state ^ (state >> 10) ^ (state >> 30) ^ (state >> 31)) & 1;
            state = (state >> 1) | (bit << 31);
        }
        f64::from(state) / f64::from(u32::MAX)
    }
}

/// The worst case for the method: no packet finds an empty queue.
#[test]
fn stated_error_covers_the_true_skew() {
    let covered = (1..=200_u32).filter(|seed| {
        let mut random = random(seed * 7919);
        let packets: Vec<_> = (0..2000)
            .map(|number| {
                #[expect(clippy::cast_possible_truncation, reason = "some milliseconds")]
                let wait = (-2e6 * (1.0 - 0.999 * random()).ln()) as i64;
                (number * 20_000_000, wait)
            })
            .collect();
        let found = estimate(&packets, 37.5).expect("a skew");
        assert!((found.ppm - 37.5).abs() < 1.0, "{found:?}");
        (found.ppm - 37.5).abs() <= found.error_ppm
    });
    let covered = covered.count();
    assert!(covered >= 190, "{covered} of 200");
}

#[test]
fn empty_network_gives_the_exact_skew() {
    let packets: Vec<_> = (0..3000).map(|number| (number * 20_000_000, 0)).collect();
    let found = estimate(&packets, -12.0).expect("a skew");
    assert!((found.ppm + 12.0).abs() < 1e-4 && found.error_ppm < 1e-3, "{found:?}");
    assert!(found.is_certain());
    assert_eq!((found.since.as_nanos(), found.floor.as_nanos()), (0, delay(0, 0, 0.0)));
    let none = estimate(&packets, 0.0).expect("a skew");
    assert!(!none.is_certain(), "{none:?}");
}

#[test]
fn too_few_packets_give_no_skew() {
    assert_eq!(estimate(&[(0, 0), (1_000_000_000, 0)], 5.0), None);
    assert_eq!(estimate(&[(7, 0); 100], 5.0), None);
    assert_eq!(ClockSkew::default().estimate(), None);
    let ends = [(i64::MIN, i64::MAX), (i64::MAX, i64::MIN)];
    let mut skew = ClockSkew::default();
    for (sent, delay) in ends.into_iter().cycle().take(16) {
        skew.record(Time::from_nanos(sent), Span::from_nanos(delay));
    }
    let _ = skew.estimate();
}
