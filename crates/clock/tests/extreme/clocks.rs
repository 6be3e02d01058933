//! Calibrators of clocks that show anything.

use std::cell::Cell;

use proptest::prelude::*;
use wirestamp_clock::{
    CalibrationError, Calibrator, Clocks, Domain, MonotonicRaw, RawStamp, Span, Stamp, Time,
    Timeline, Utc,
};

use super::raw;

/// How a clock shows its next value.
#[derive(Clone, Copy, Debug)]
enum Shows {
    Still,
    /// Forwards by so much with each reading; wraps.
    Forwards(u64),
    Backwards(u64),
    /// Anything.
    Noise,
    /// The ends and the middle of the range.
    Ends,
}

/// A clock that shows its values in one way, and from some reading on in another.
#[derive(Clone, Copy, Debug)]
struct Clock {
    value: u64,
    shows: [Shows; 2],
    readings_to_change: u32,
}

impl Clock {
    fn next(&mut self) -> u64 {
        let shows = self.shows[usize::from(self.readings_to_change == 0)];
        self.readings_to_change = self.readings_to_change.saturating_sub(1);
        let scrambled = (self.value ^ 0x5EED).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(31);
        self.value = match shows {
            Shows::Still => self.value,
            Shows::Forwards(by) => self.value.wrapping_add(by),
            Shows::Backwards(by) => self.value.wrapping_sub(by),
            Shows::Noise => scrambled,
            Shows::Ends => {
                let ends = [0, 1, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX];
                ends[usize::from(scrambled.to_le_bytes()[0]) % ends.len()]
            }
        };
        self.value
    }
}

#[derive(Clone, Copy, Debug)]
struct Wild {
    raw: Clock,
    utc: Clock,
    monotonic_raw: Clock,
}

impl Clocks for Wild {
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

fn shows() -> impl Strategy<Value = Shows> {
    prop_oneof![
        1 => Just(Shows::Still),
        6 => (1_u64..100_000).prop_map(Shows::Forwards),
        1 => any::<u64>().prop_map(Shows::Forwards),
        1 => (1_u64..100_000).prop_map(Shows::Backwards),
        1 => Just(Shows::Noise),
        1 => Just(Shows::Ends),
    ]
}

fn clock() -> impl Strategy<Value = Clock> {
    (raw(), [shows(), shows()], 0_u32..2_000).prop_map(|(value, shows, readings_to_change)| Clock {
        value,
        shows,
        readings_to_change,
    })
}

fn wild() -> impl Strategy<Value = Wild> {
    // A clock that never passes 200 us is waited for ten million readings long: rarely.
    let steady = (raw(), 100_u64..1_000_000).prop_map(|(value, by)| Clock {
        value,
        shows: [Shows::Forwards(by); 2],
        readings_to_change: 0,
    });
    let monotonic_raw = prop_oneof![20 => steady, 1 => clock()];
    (clock(), clock(), monotonic_raw).prop_map(|(raw, utc, monotonic_raw)| Wild {
        raw,
        utc,
        monotonic_raw,
    })
}

/// Converts these values, which ascend, in every way there is.
fn every_value_has_an_answer(timeline: &Timeline, values: &[u64]) -> Vec<Stamp> {
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
    fn whatever_the_clocks_show_every_value_has_an_answer(
        clocks in wild(), step in raw(), mut values in prop::collection::vec(raw(), 1..20),
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
            let stamps = every_value_has_an_answer(&timeline, &values);
            let smooth = timeline.steps() == 0 && domain != Domain::Monotonic;
            prop_assert!(!smooth || ascends(&stamps), "time goes on where there is no step");
        }
    }
}

/// Clocks that show the same nanosecond, 20 ns later with each reading.
#[derive(Clone, Copy)]
struct Even<'a> {
    now: &'a Cell<u64>,
    /// The counter's and UTC's lead over that.
    lead: u64,
    utc: i64,
}

impl Even<'_> {
    fn read(&self) -> u64 {
        self.now.update(|now| now + 20);
        self.now.get()
    }
}

impl Clocks for Even<'_> {
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

/// `CLOCK_REALTIME` is read as the end of the range from then on.
#[test]
fn beyond_april_2262_utc_is_the_end_of_the_range() {
    let now = Cell::new(0);
    let clocks = Even { now: &now, lead: 0, utc: i64::MAX - 5 * SECOND.cast_signed() };
    let mut calibrator = Calibrator::new(Domain::Counter, clocks, 1).unwrap();
    for _ in 0..20 {
        now.update(|now| now + SECOND / 2);
        let timeline = calibrator.sample();
        let values = [0, SECOND, 4 * SECOND, 6 * SECOND, 1 << 40, u64::MAX / 2, u64::MAX];
        let stamps = every_value_has_an_answer(&timeline, &values);
        assert_eq!(stamps.last().unwrap().utc, Time::from_nanos(i64::MAX));
    }
    let early = calibrator.timeline().convert(SECOND);
    let exact = Time::from_nanos(clocks.utc + SECOND.cast_signed());
    assert!((early.utc - exact).abs() <= early.error, "{early:?}");
}

/// In a counter that firmware started near its end.
#[test]
fn a_counter_that_wraps_is_begun_afresh() {
    let now = Cell::new(0);
    let lead = u64::MAX - 3 * SECOND;
    let clocks = Even { now: &now, lead, utc: 0 };
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
    every_value_has_an_answer(&timeline, &[0, raw / 2, raw, u64::MAX]);
}

#[test]
fn clocks_that_cannot_be_calibrated_are_refused() {
    let clock = |shows| Clock { value: 1 << 40, shows: [shows; 2], readings_to_change: 0 };
    let new = |raw, monotonic_raw| {
        let clocks = Wild {
            raw: clock(raw),
            utc: clock(Shows::Forwards(20)),
            monotonic_raw: clock(monotonic_raw),
        };
        Calibrator::new(Domain::Counter, clocks, 1).err()
    };
    let forwards = Shows::Forwards(20);
    assert_eq!(new(Shows::Still, forwards), Some(CalibrationError::Stopped));
    assert_eq!(new(forwards, Shows::Still), Some(CalibrationError::Stopped));
    assert_eq!(new(forwards, Shows::Backwards(20)), Some(CalibrationError::Stopped));
    assert_eq!(new(Shows::Backwards(20), forwards), Some(CalibrationError::Backwards));
    assert_eq!(new(forwards, forwards), None);
}
