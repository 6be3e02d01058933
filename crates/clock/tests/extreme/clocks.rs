//! Calibrators of clocks with arbitrary values.

use std::cell::Cell;

use proptest::prelude::*;
use wirestamp_clock::{
    CalibrationError, Calibrator, Clocks, Domain, MonotonicRaw, RawStamp, Span, Stamp, Time,
    Timeline, Utc,
};

use super::raw;

/// Sequence of a clock's values.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    Still,
    /// Forwards by this much with each reading; wraps.
    Forwards(u64),
    Backwards(u64),
    /// Arbitrary values.
    Noise,
    /// The ends and the middle of the range.
    Ends,
}

/// A clock with one sequence of values, and another one from some reading on.
#[derive(Clone, Copy, Debug)]
struct Clock {
    value: u64,
    pattern: [Pattern; 2],
    readings_to_change: u32,
}

impl Clock {
    fn next(&mut self) -> u64 {
        let pattern = self.pattern[usize::from(self.readings_to_change == 0)];
        self.readings_to_change = self.readings_to_change.saturating_sub(1);
        let scrambled = (self.value ^ 0x5EED).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31);
        self.value = match pattern {
            Pattern::Still => self.value,
            Pattern::Forwards(by) => self.value.wrapping_add(by),
            Pattern::Backwards(by) => self.value.wrapping_sub(by),
            Pattern::Noise => scrambled,
            Pattern::Ends => {
                let ends = [0, 1, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX];
                ends[usize::from(scrambled.to_le_bytes()[0]) % ends.len()]
            }
        };
        self.value
    }
}

#[derive(Clone, Copy, Debug)]
struct RandomClocks {
    raw: Clock,
    utc: Clock,
    monotonic_raw: Clock,
}

impl Clocks for RandomClocks {
    fn raw(&mut self) -> u64 {
        self.raw.next()
    }
    fn utc(&mut self) -> Time<Utc> {
        Time::from_nanos(self.utc.next().cast_signed())
    }
    fn monotonic_raw(&mut self) -> Time<MonotonicRaw> {
        Time::from_nanos(self.monotonic_raw.next().cast_signed())
    }
}

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        1 => Just(Pattern::Still),
        6 => (1_u64..100_000).prop_map(Pattern::Forwards),
        1 => any::<u64>().prop_map(Pattern::Forwards),
        1 => (1_u64..100_000).prop_map(Pattern::Backwards),
        1 => Just(Pattern::Noise),
        1 => Just(Pattern::Ends),
    ]
}

fn clock() -> impl Strategy<Value = Clock> {
    (raw(), [pattern(), pattern()], 0_u32..2_000).prop_map(
        |(value, pattern, readings_to_change)| Clock { value, pattern, readings_to_change },
    )
}

fn random_clocks() -> impl Strategy<Value = RandomClocks> {
    // A clock that never advances by 200 us takes ten million readings, so such clocks are rare.
    let steady = (raw(), 100_u64..1_000_000).prop_map(|(value, by)| Clock {
        value,
        pattern: [Pattern::Forwards(by); 2],
        readings_to_change: 0,
    });
    let monotonic_raw = prop_oneof![20 => steady, 1 => clock()];
    (clock(), clock(), monotonic_raw).prop_map(|(raw, utc, monotonic_raw)| RandomClocks {
        raw,
        utc,
        monotonic_raw,
    })
}

/// Converts these ascending values in every way.
fn convert_all(timeline: &Timeline, values: &[u64]) -> Vec<Stamp> {
    let mut stamps = Vec::new();
    timeline.convert_batch(values, &mut stamps);
    let difference = timeline.difference();
    assert!(difference.rate_error_ppm() >= 0.0 && difference.frequency_hz() >= 0.0);
    for (stamp, &value) in stamps.iter().zip(values) {
        assert_eq!(*stamp, timeline.convert(value), "one by one as all at once");
        assert!(stamp.error >= Span::ZERO);
        let first = RawStamp { value: values[0], ..stamp.raw };
        let span = difference.span(first, stamp.raw).unwrap();
        assert!(span >= Span::ZERO && difference.error(span) >= Span::ZERO);
        assert_eq!(difference.span(stamp.raw, first), Some(-span), "the same both ways");
    }
    stamps
}

fn ascends(stamps: &[Stamp]) -> bool {
    stamps.is_sorted_by_key(|stamp| stamp.utc)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn arbitrary_clocks_convert_every_value(
        clocks in random_clocks(), step in raw(), mut values in prop::collection::vec(raw(), 1..20),
        domain in prop::sample::select(vec![Domain::Counter, Domain::Monotonic, Domain::Realtime]),
    ) {
        values.sort_unstable();
        let Ok(mut calibrator) = Calibrator::new(domain, clocks, step) else { return Ok(()) };
        for sample in 0..6 {
            let timeline = if sample == 3 { calibrator.disrupt() } else { calibrator.sample() };
            let anchors: Vec<u64> = timeline.anchors().map(|anchor| anchor.raw).collect();
            let around = anchors.iter().flat_map(|&raw| [raw.saturating_sub(1), raw, raw / 2]);
            let mut values: Vec<u64> = values.iter().copied().chain(around).collect();
            values.sort_unstable();
            let stamps = convert_all(&timeline, &values);
            let smooth = timeline.steps() == 0 && domain != Domain::Monotonic;
            prop_assert!(!smooth || ascends(&stamps), "time ascends without a step");
        }
    }
}

/// Clocks with equal values, 20 ns later with each reading.
#[derive(Clone, Copy)]
struct UniformClocks<'a> {
    now: &'a Cell<u64>,
    /// Lead of the counter and of UTC.
    lead: u64,
    utc: i64,
}

impl UniformClocks<'_> {
    fn read(&self) -> u64 {
        self.now.update(|now| now + 20);
        self.now.get()
    }
}

impl Clocks for UniformClocks<'_> {
    fn raw(&mut self) -> u64 {
        self.read().wrapping_add(self.lead)
    }
    fn utc(&mut self) -> Time<Utc> {
        Time::from_nanos(self.utc.saturating_add_unsigned(self.read()))
    }
    fn monotonic_raw(&mut self) -> Time<MonotonicRaw> {
        Time::from_nanos(self.read().cast_signed())
    }
}

const SECOND: u64 = 1_000_000_000;

/// From then on `CLOCK_REALTIME` reads as the end of the range.
#[test]
fn utc_saturates_in_2262() {
    let now = Cell::new(0);
    let clocks = UniformClocks { now: &now, lead: 0, utc: i64::MAX - 5 * SECOND.cast_signed() };
    let mut calibrator = Calibrator::new(Domain::Counter, clocks, 1).unwrap();
    for _ in 0..20 {
        now.update(|now| now + SECOND / 2);
        let timeline = calibrator.sample();
        let values = [0, SECOND, 4 * SECOND, 6 * SECOND, 1 << 40, u64::MAX / 2, u64::MAX];
        let stamps = convert_all(&timeline, &values);
        assert_eq!(stamps.last().unwrap().utc, Time::from_nanos(i64::MAX));
    }
    let early = calibrator.timeline().convert(SECOND);
    let exact = Time::from_nanos(clocks.utc + SECOND.cast_signed());
    assert!((early.utc - exact).abs() <= early.error, "{early:?}");
}

/// For a counter that firmware started near its end.
#[test]
fn counter_wrap_restarts_the_calibration() {
    let now = Cell::new(0);
    let lead = u64::MAX - 3 * SECOND;
    let clocks = UniformClocks { now: &now, lead, utc: 0 };
    let mut calibrator = Calibrator::new(Domain::Counter, clocks, 1).unwrap();
    for _ in 0..20 {
        now.update(|now| now + SECOND / 2);
        calibrator.sample();
    }
    let timeline = calibrator.timeline();
    assert_eq!(timeline.steps(), 1);
    let raw = now.get().wrapping_add(lead);
    let stamp = timeline.convert(raw);
    assert!((stamp.utc - Time::from_nanos(now.get().cast_signed())).abs() <= stamp.error);
    assert!(stamp.error < Span::from_nanos(1_000), "{stamp:?}");
    convert_all(&timeline, &[0, raw / 2, raw, u64::MAX]);
}

#[test]
fn unusable_clocks_are_rejected() {
    let clock = |pattern| Clock { value: 1 << 40, pattern: [pattern; 2], readings_to_change: 0 };
    let new = |raw, monotonic_raw| {
        let clocks = RandomClocks {
            raw: clock(raw),
            utc: clock(Pattern::Forwards(20)),
            monotonic_raw: clock(monotonic_raw),
        };
        Calibrator::new(Domain::Counter, clocks, 1).err()
    };
    let forwards = Pattern::Forwards(20);
    assert_eq!(new(Pattern::Still, forwards), Some(CalibrationError::Stopped));
    assert_eq!(new(forwards, Pattern::Still), Some(CalibrationError::Stopped));
    assert_eq!(new(forwards, Pattern::Backwards(20)), Some(CalibrationError::Stopped));
    assert_eq!(new(Pattern::Backwards(20), forwards), Some(CalibrationError::Backwards));
    assert_eq!(new(forwards, forwards), None);
}
