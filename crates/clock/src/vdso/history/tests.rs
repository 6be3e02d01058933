use proptest::prelude::*;

use super::*;
use crate::{Domain, Timeline};

const NOMINAL: u32 = 1 << 24;

/// A line at 1 GHz with this factor, which shows `nanos` at `cycle_last`.
fn line(cycle_last: u64, mult: u32, nanos: u64) -> KernelLine {
    KernelLine { cycle_last, mult, shift: 24, seconds: 0, shifted_nanos: nanos << 24 }
}

fn error_at(history: &LineHistory, raw: u64) -> Span {
    let pieces: Vec<_> = history.pieces().collect();
    pieces.iter().rfind(|piece| piece.start <= raw).unwrap().error(raw)
}

#[test]
fn lines_that_continue_are_one_segment() {
    let mut history = LineHistory::default();
    assert_eq!(history.observe(line(1_000, NOMINAL, 5_000), 1_100), Change::Began);
    for tick in 2..100 {
        let next = line(tick * 1_000, NOMINAL, 4_000 + tick * 1_000);
        assert_eq!(history.observe(next, tick * 1_000 + 100), Change::None);
    }
    assert_eq!(history.pieces().count(), 1);
    assert_eq!(error_at(&history, 50_000), EXACT);
}

#[test]
fn step_is_in_the_error_of_its_gap_only() {
    let mut history = LineHistory::default();
    history.observe(line(1_000, NOMINAL, 5_000), 1_100);
    assert_eq!(
        history.observe(line(2_000, NOMINAL, 9_000), 2_100),
        Change::By(Span::from_nanos(3_000))
    );
    history.observe(line(3_000, NOMINAL, 10_000), 3_100);
    assert!(error_at(&history, 2_050) >= Span::from_nanos(3_000));
    assert_eq!((error_at(&history, 2_100), error_at(&history, 3_000)), (EXACT, EXACT));
}

#[test]
fn change_of_rate_is_in_the_error_of_its_gap() {
    let mut history = LineHistory::default();
    let slewed = NOMINAL + NOMINAL / 2_000;
    history.observe(line(0, NOMINAL, 0), 1_000_000);
    let change = history.observe(line(2_000_000, slewed, 2_000_000), 3_000_000);
    assert_eq!(change, Change::By(Span::from_nanos(500)), "500 ppm of a million");
    assert!(error_at(&history, 1_500_000) >= Span::from_nanos(500));
    assert_eq!(error_at(&history, 3_000_000), EXACT);
}

#[test]
fn counter_that_is_set_back_begins_a_new_history() {
    let mut history = LineHistory::default();
    history.observe(line(1_000, NOMINAL, 5_000), 1_100);
    assert_eq!(history.observe(line(10, NOMINAL, 9_000), 20), Change::Began);
    assert_eq!(history.pieces().count(), 1);
}

#[test]
fn oldest_segments_are_forgotten() {
    let mut history = LineHistory::default();
    for step in 0..2_000 {
        history.observe(line(step * 1_000, NOMINAL, step * 2_000), step * 1_000 + 10);
    }
    assert_eq!(history.pieces().count(), CAPACITY);
}

/// What the kernel does at a tick.
#[derive(Clone, Copy, Debug)]
enum Event {
    Nothing,
    /// Alternates between two factors, as with a time daemon.
    Alternate,
    /// The rate changes by this many parts in 2^24.
    Slew(i32),
    /// The clock is set, by this many nanoseconds.
    Step(i64),
}

/// A kernel with a counter of 1 GHz.
struct Kernel {
    /// Its lines, and the counter values from which on each is in force.
    lines: Vec<(u64, KernelLine)>,
    alternates: bool,
}

/// Counter value and UTC at the start.
const START: u64 = 1 << 40;
const START_UTC: u64 = 1_790_000_000_000_000_000;
const TICK: u64 = 4_000_000;

impl Kernel {
    fn new() -> Self {
        let seconds = START_UTC / 1_000_000_000;
        let line = KernelLine { seconds, ..line(START, NOMINAL, 0) };
        Self { lines: vec![(START, line)], alternates: false }
    }

    /// The line in force at a counter value.
    fn line_at(&self, raw: u64) -> KernelLine {
        self.lines[self.lines.partition_point(|&(from, _)| from <= raw) - 1].1
    }

    /// A tick, which is handled `late` nanoseconds after it is due.
    fn tick(&mut self, late: u64, event: Event) {
        let (_, last) = *self.lines.last().unwrap();
        let due = last.cycle_last + TICK;
        let shifted = last.shifted_nanos + TICK * u64::from(last.mult);
        let mut next = KernelLine { cycle_last: due, shifted_nanos: shifted, ..last };
        self.alternates = matches!(event, Event::Alternate) && !self.alternates;
        let change = match event {
            Event::Alternate => {
                if self.alternates {
                    1
                } else {
                    -1
                }
            }
            Event::Slew(change) => change,
            Event::Nothing | Event::Step(_) => 0,
        };
        next.mult = next.mult.checked_add_signed(change).unwrap();
        // The clock does not jump when its rate changes.
        next.shifted_nanos =
            next.shifted_nanos.checked_add_signed(-i64::from(change) * late.cast_signed()).unwrap();
        if let Event::Step(nanos) = event {
            next.shifted_nanos = next.shifted_nanos.checked_add_signed(nanos << 24).unwrap();
        }
        next.seconds += next.shifted_nanos / (1_000_000_000 << 24);
        next.shifted_nanos %= 1_000_000_000 << 24;
        self.lines.push((due + late, next));
    }
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        40 => Just(Event::Nothing),
        40 => Just(Event::Alternate),
        1 => (-8_000..8_000_i32).prop_map(Event::Slew),
        1 => (0..2_000_000_000_i64).prop_map(Event::Step),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// One event in 50 ms, or alternation in every tick; observations every 4 ms to 50 ms.
    #[test]
    fn past_and_live_stamps_are_within_their_errors(
        events in prop::collection::vec((event(), 0..TICK / 2, 1..12_usize), 10..60),
    ) {
        let mut kernel = Kernel::new();
        let mut history = LineHistory::default();
        let by_anchors = Timeline::identity_after(Domain::Counter, 0);
        let mut converted = 0;
        for (event, late, ticks) in events {
            kernel.tick(late, event);
            let alternates = matches!(event, Event::Alternate);
            for _ in 0..ticks {
                kernel.tick(0, if alternates { Event::Alternate } else { Event::Nothing });
            }
            let now = kernel.lines.last().unwrap().0 + TICK / 2;
            let check = |timeline: &Timeline, raw| {
                let (stamp, truth) = (timeline.convert(raw), kernel.line_at(raw).nanos(raw));
                let off = (stamp.utc.as_nanos() - truth).abs();
                assert!(off <= stamp.error.as_nanos(), "{off} ns off: {stamp:?}");
            };
            let observed = history.segments.front().map(|segment| segment.start);
            let raws = |oldest| (0..400).map(|back| now - back * 1_234_567).filter(move |raw| *raw >= oldest);
            if let Some(oldest) = observed {
                let before = by_anchors.with_kernel_lines(history.lines().unwrap(), None);
                let live = before.extended(&kernel.line_at(now), now).unwrap();
                raws(oldest).for_each(|raw| check(&live, raw));
            }
            history.observe(kernel.line_at(now), now);
            let past = by_anchors.with_kernel_lines(history.lines().unwrap(), None);
            let oldest = history.segments.front().unwrap().start;
            raws(oldest).for_each(|raw| { converted += 1; check(&past, raw) });
        }
        prop_assert!(converted > 0);
    }
}

proptest! {
    #[test]
    fn raw_value_of_a_kernel_stamp_gives_the_same_stamp(
        mult in 1_u32 << 20..1 << 27,
        ticks in 0_u64..1 << 40,
        age in 0_u64..1 << 40,
    ) {
        let seconds = START_UTC / 1_000_000_000;
        let line = KernelLine { seconds, ..line(START, mult, 0) };
        let mut history = LineHistory::default();
        history.observe(line, START);
        // The same line with a later beginning, as after some ticks.
        let shifted = u128::from(age) * u128::from(mult);
        let later = KernelLine {
            cycle_last: START + age,
            seconds: seconds + u64::try_from((shifted >> 24) / 1_000_000_000).unwrap(),
            shifted_nanos: u64::try_from(shifted % (1_000_000_000 << 24)).unwrap(),
            ..line
        };
        prop_assert_eq!(history.observe(later, START + (1 << 40)), Change::None);
        let lines = history.lines().unwrap();
        let timeline = Timeline::identity_after(Domain::Counter, 0).with_kernel_lines(lines, None);
        let stamp = line.nanos(START + ticks);
        let raw = timeline.raw_at(Time::from_nanos(stamp)).unwrap();
        prop_assert_eq!((raw.domain, line.nanos(raw.value)), (Domain::Counter, stamp));
        let after = timeline.convert(START + (2 << 40)).utc;
        prop_assert_eq!(timeline.raw_at(after), None, "not covered yet");
    }
}

#[test]
fn raw_value_of_a_repeated_time_is_the_later_one() {
    let mut history = LineHistory::default();
    history.observe(line(1_000_000, NOMINAL, 9_000_000), 1_000_000);
    history.observe(line(1_000_000, NOMINAL, 9_000_000), 2_000_000);
    // Set back by 500 us.
    history.observe(line(2_000_000, NOMINAL, 9_500_000), 2_000_100);
    history.observe(line(2_000_000, NOMINAL, 9_500_000), 4_000_000);
    let lines = history.lines().unwrap();
    let timeline = Timeline::identity_after(Domain::Counter, 0).with_kernel_lines(lines, None);
    let raw = |utc| timeline.raw_at(Time::from_nanos(utc)).map(|raw| raw.value);
    assert_eq!(raw(9_300_000), Some(1_300_000));
    assert_eq!(raw(9_700_000), Some(2_200_000));
}

#[test]
fn repeated_time_of_a_recent_stamp_is_uncertain() {
    let mut history = LineHistory::default();
    history.observe(line(1_000_000, NOMINAL, 9_000_000), 1_000_000);
    history.observe(line(1_000_000, NOMINAL, 9_000_000), 2_000_000);
    let before = history.lines().unwrap();
    // Set back by 500 us.
    let set_back = line(2_000_000, NOMINAL, 9_500_000);
    let extended = before.extended(&set_back, 2_000_100).unwrap();
    history.observe(set_back, 2_000_100);
    let observed = history.lines().unwrap();
    for lines in [extended, observed] {
        let error = |nanos| match lines.counter_at(nanos, 4_000_000) {
            CounterAt::Uncertain(error) => Some(error),
            CounterAt::Value(_) | CounterAt::Unknown => None,
        };
        assert_eq!(error(9_700_000), Some(Span::from_nanos(500_000)));
        assert!(error(10_000_050) >= Some(Span::from_nanos(500_000)), "in the gap or later");
        // The newer line is not in force at 2.2 ms yet.
        assert_eq!(lines.counter_at(9_700_000, 2_100_000), CounterAt::Value(1_700_000));
        assert_eq!(lines.counter_at(9_300_000, 4_000_000), CounterAt::Value(1_300_000));
        assert_eq!(lines.counter_at(10_100_000, 4_000_000), CounterAt::Value(2_600_000));
        // No stamp of the old line is left after some seconds.
        let later = 10_000_000_000;
        assert_eq!(lines.counter_at(9_700_000, later), CounterAt::Value(2_200_000));
    }
}

#[test]
fn raw_values_around_a_step_are_uncertain() {
    let mut history = LineHistory::default();
    history.observe(line(1_000_000, NOMINAL, 9_000_000), 1_000_000);
    history.observe(line(1_000_000, NOMINAL, 9_000_000), 2_000_000);
    // Set forward by 500 us at some time in the next 100 us, which are both on the old line and on the new one.
    history.observe(line(2_050_000, NOMINAL, 10_550_000), 2_100_000);
    history.observe(line(2_050_000, NOMINAL, 10_550_000), 4_000_000);
    let lines = history.lines().unwrap();
    let error = |nanos| match lines.counter_at(nanos, lines.until()) {
        CounterAt::Uncertain(error) => Some(error >= Span::from_nanos(500_000)),
        CounterAt::Value(_) | CounterAt::Unknown => None,
    };
    assert_eq!([10_050_000, 10_530_000].map(error), [Some(true), Some(true)]);
    let counter_at = |nanos| lines.counter_at(nanos, lines.until());
    assert_eq!(counter_at(9_500_000), CounterAt::Value(1_500_000));
    assert_eq!(counter_at(11_000_000), CounterAt::Value(2_500_000));
    assert_eq!(counter_at(10_300_000), CounterAt::Unknown, "the clock never showed it");
}

#[test]
fn extended_lines_equal_observed_ones() {
    let mut history = LineHistory::default();
    history.observe(line(0, NOMINAL, 0), 1_000_000);
    let before = history.lines().unwrap();
    let slewed = line(2_000_000, NOMINAL + 100, 2_000_000);
    let extended = before.extended(&slewed, 3_000_000).unwrap();
    history.observe(slewed, 3_000_000);
    let observed = history.lines().unwrap();
    let segments =
        |lines: &Lines| lines.older().chain([lines.newest()]).copied().collect::<Vec<_>>();
    assert_eq!(segments(&extended), segments(&observed));
    for nanos in (1_000_000..3_000_000).step_by(10_007) {
        assert_eq!(extended.counter_at(nanos, 3_000_000), observed.counter_at(nanos, 3_000_000));
    }
    assert!(before.extended(&slewed, 999_999).is_none(), "the counter was set back");
}
