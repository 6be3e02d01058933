//! Accuracy of clock references (PCR): TR 101 290 indicator 2.4.
//!
//! The definition applies to streams of constant bitrate. There, the reference in packet n is due at clock 0 plus n times the
//! duration of a packet (ISO/IEC 13818-1 section 2.4.2.2). Both are unknown, and are computed from [`WINDOW`] references of
//! a PID:
//!
//! - Duration of a packet: the median over the pairs of references that are half a window apart. All packets of the stream
//!   count, also null packets.
//! - Clock 0: the median of what remains.
//! - Deviation of a reference: its value minus what is due. More than 500 ns is an error.
//!
//! The method is only valid where the bitrate is constant and the positions are known:
//!
//! - At least three quarters of the references have to be within an eighth of a packet's duration, or within 500 ns if
//!   that is more. Otherwise the bitrate is variable, or most references are inaccurate, or null packets are lost in the
//!   middle of the window: it is not counted, and the next one begins with its second half. At a variable bitrate a
//!   reference is displaced by whole packets.
//! - After a continuity error or a loss of synchronisation, the positions are unknown: a new window begins. It also begins
//!   at discontinuities of the clock.
//! - A deviation of half a packet's duration or more that an adjacent reference has as well is a shift of the positions: of
//!   lost null packets, which have no counters. It is not counted.
//!
//! A reference is judged with both of its neighbours, so that the first and the last of a sequence are not.

use std::collections::BTreeMap;

use wirestamp_packet::transport_stream::{CLOCK_RATE_HZ, PACKET_BYTES};

use super::part::CLOCK_WRAP;
use super::unknown::UnknownTransportStreamValue;
use crate::numeric::count_to_f64;

/// Clock references of a window.
const WINDOW: usize = 32;
/// Those that may be away from the line: a quarter.
const MAX_AWAY: usize = WINDOW / 4;
/// Max windows of a PID in a row that are not counted at a constant bitrate: null packets are lost in one.
const MAX_FAILURES: u32 = 1;
/// Max PIDs with clock references that are observed.
const MAX_PIDS: usize = 16;
/// Max deviation: 500 ns in ticks of 27 MHz.
const MAX_DEVIATION: f64 = 13.5;

/// The accuracy of a stream's clock references.
#[derive(Clone, Debug, Default)]
pub(super) struct ClockAccuracy {
    windows: BTreeMap<u16, Window>,
    references: u64,
    checked: u64,
    errors: u64,
    max_deviation: f64,
    variable_windows: u64,
    interruptions: u64,
    /// Duration of a packet in ticks of 27 MHz, in the newest window; none where the bitrate is variable.
    packet_duration: Option<f64>,
}

/// The newest clock references of a PID.
#[derive(Clone, Debug, Default)]
struct Window {
    references: Vec<Reference>,
    /// Windows in a row that were not counted.
    failures: u32,
}

/// A clock reference.
#[derive(Clone, Copy, Debug)]
struct Reference {
    /// Number of its packet in the stream.
    packet: u64,
    /// Its value in ticks of 27 MHz.
    clock: u64,
}

/// Result of [`ClockAccuracy`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AccuracyResult {
    /// References with an error; none if none was checked.
    pub(super) errors: Result<u64, UnknownTransportStreamValue>,
    /// References checked.
    pub(super) checked: u64,
    /// Max deviation in nanoseconds.
    pub(super) max_deviation_ns: Option<f64>,
}

impl ClockAccuracy {
    /// Records the clock reference in the packet with this number. `is_continuous` if the clock continues since the one before.
    pub(super) fn record(&mut self, pid: u16, packet: u64, clock: u64, is_continuous: bool) {
        self.references += 1;
        if !self.windows.contains_key(&pid) && self.windows.len() >= MAX_PIDS {
            return;
        }
        let window = self.windows.entry(pid).or_default();
        if !is_continuous {
            window.references.clear();
        }
        window.references.push(Reference { packet, clock });
        if window.references.len() < WINDOW {
            return;
        }
        let Some(line) = Line::through(&window.references) else {
            window.references.drain(..WINDOW / 2);
            window.failures += 1;
            self.variable_windows += 1;
            if window.failures > MAX_FAILURES {
                self.packet_duration = None;
            }
            return;
        };
        window.references.drain(..WINDOW - 2);
        window.failures = 0;
        self.packet_duration = Some(line.packet_duration);
        let inner = WINDOW - 2;
        self.checked += inner as u64;
        for deviation in (1..=inner).filter_map(|place| line.deviation(place)) {
            self.errors += u64::from(deviation > MAX_DEVIATION);
            self.max_deviation = self.max_deviation.max(deviation);
        }
    }

    /// Packets are missing: the positions of the next ones are unknown.
    pub(super) fn interrupt(&mut self) {
        let has_references = self.windows.values().any(|it| !it.references.is_empty());
        self.interruptions += u64::from(has_references);
        self.windows.values_mut().for_each(|it| it.references.clear());
    }

    /// The result so far.
    pub(super) fn result(&self) -> AccuracyResult {
        let is_checked = self.checked > 0;
        AccuracyResult {
            errors: if is_checked { Ok(self.errors) } else { Err(self.unknown()) },
            checked: self.checked,
            max_deviation_ns: is_checked
                .then(|| self.max_deviation * 1e9 / count_to_f64(CLOCK_RATE_HZ)),
        }
    }

    /// The constant bitrate in bytes per second, in the newest window of any PID.
    pub(super) fn rate(&self) -> Result<f64, UnknownTransportStreamValue> {
        let ticks = self.packet_duration.ok_or_else(|| self.unknown())?;
        Ok(count_to_f64(PACKET_BYTES as u64 * CLOCK_RATE_HZ) / ticks)
    }

    /// Why no reference was checked, or why the bitrate is unknown.
    fn unknown(&self) -> UnknownTransportStreamValue {
        if self.references == 0 {
            UnknownTransportStreamValue::NoClockReferences
        } else if self.variable_windows > 0 {
            UnknownTransportStreamValue::VariableBitrate
        } else if self.interruptions > 0 {
            UnknownTransportStreamValue::PacketsLost
        } else {
            UnknownTransportStreamValue::TooFewClockReferences
        }
    }
}

/// The clock at a constant bitrate, and the deviations of a window's references from it, in ticks of 27 MHz.
#[derive(Debug)]
struct Line {
    packet_duration: f64,
    deviations: Vec<f64>,
}

impl Line {
    /// None if too many references are away from it.
    fn through(window: &[Reference]) -> Option<Self> {
        let first = window.first()?;
        // The clock may wrap.
        let clock =
            |it: &Reference| count_to_f64((it.clock + CLOCK_WRAP - first.clock) % CLOCK_WRAP);
        let packet = |it: &Reference| count_to_f64(it.packet - first.packet);
        let (one, other) = window.split_at(window.len() / 2);
        let durations = one.iter().zip(other);
        let packet_duration = median(
            durations.map(|(a, b)| (clock(b) - clock(a)) / (packet(b) - packet(a))).collect(),
        );
        let remains: Vec<_> =
            window.iter().map(|it| clock(it) - packet_duration * packet(it)).collect();
        let begin = median(remains.clone());
        let line = Self {
            packet_duration,
            deviations: remains.into_iter().map(|it| it - begin).collect(),
        };
        let near = (packet_duration / 8.0).max(MAX_DEVIATION);
        let away = line.deviations.iter().filter(|it| it.abs() > near).count();
        (packet_duration > 0.0 && away <= MAX_AWAY).then_some(line)
    }

    /// Absolute deviation of the reference at a place with two neighbours; none for a shift of the positions.
    fn deviation(&self, place: usize) -> Option<f64> {
        let [before, deviation, after] = *self.deviations.get(place - 1..)?.first_chunk()?;
        let near = (self.packet_duration / 8.0).max(MAX_DEVIATION);
        let is_shift = deviation.abs() >= (self.packet_duration / 2.0).max(MAX_DEVIATION)
            && [before, after].into_iter().any(|it| (it - deviation).abs() <= near);
        (!is_shift).then_some(deviation.abs())
    }
}

/// The median; of an even number, the mean of the middle two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.get(middle) {
        Some(upper) if values.len().is_multiple_of(2) => f64::midpoint(values[middle - 1], *upper),
        Some(value) => *value,
        None => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Packets from one reference to the next, and ticks of a packet at 5 Mbit/s.
    const STEP: u64 = 66;
    const TICKS: f64 = 188.0 * 8.0 * 27e6 / 5e6;

    /// A stream with one reference in [`STEP`] packets, each with this deviation in ticks and with packets lost before it.
    fn accuracy(references: impl IntoIterator<Item = (i64, u64)>) -> ClockAccuracy {
        let (mut accuracy, mut lost) = (ClockAccuracy::default(), 0);
        for (number, (deviation, lost_before)) in (0..).zip(references) {
            lost += lost_before;
            let packet = number * STEP;
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
            let exact = (count_to_f64(packet) * TICKS) as u64;
            let clock = (CLOCK_WRAP - 5_000_000 + exact).wrapping_add_signed(deviation);
            accuracy.record(0x100, 1000 + packet - lost, clock % CLOCK_WRAP, true);
        }
        accuracy
    }

    fn result(references: impl IntoIterator<Item = (i64, u64)>) -> AccuracyResult {
        accuracy(references).result()
    }

    #[test]
    fn exact_references_have_no_errors_also_where_the_clock_wraps() {
        let found = result((0..200).map(|_| (0, 0)));
        // Five windows of 30 new references and two that overlap.
        assert_eq!((found.errors, found.checked), (Ok(0), 180));
        assert!(found.max_deviation_ns.is_some_and(|it| it < 80.0), "{found:?}");
    }

    #[test]
    fn deviations_above_500_ns_are_counted() {
        let found = result((0..200).map(|number| (if number % 10 == 5 { 16 } else { 0 }, 0)));
        assert_eq!(found.errors, Ok(18), "of 180 checked");
        let found = result((0..200).map(|number| (if number % 10 == 5 { -11 } else { 0 }, 0)));
        assert_eq!(found.errors, Ok(0), "407 ns");
        // All are inaccurate, by less than an eighth of a packet.
        let found = result((0..200).map(|number| ([900, 0, -900, 0][number % 4], 0)));
        assert_eq!(found.errors, Ok(90), "33 µs");
    }

    #[test]
    fn variable_bitrate_is_not_judged() {
        let packets = |number: i64| (number * 7919 % 13 - 6) * 8000;
        let found = result((0..200).map(|number| (packets(number), 0)));
        assert_eq!(found.errors, Err(UnknownTransportStreamValue::VariableBitrate));
        assert_eq!((found.checked, found.max_deviation_ns), (0, None));
    }

    #[test]
    fn losses_without_counters_are_no_inaccuracy() {
        for place in 0..100 {
            let found = result((0..100).map(|number| (0, if number == place { 7 } else { 0 })));
            assert_eq!(found.errors, Ok(0), "lost before {place}");
        }
    }

    #[test]
    fn bitrate_is_known_in_spite_of_lost_null_packets() {
        let rates = |numbers: i64, deviation: &dyn Fn(i64) -> i64, lost: &dyn Fn(i64) -> u64| {
            let references = (0..numbers).map(|number| (deviation(number), lost(number)));
            accuracy(references).rate().map(|rate| (8.0 * rate).round())
        };
        for place in 40..80 {
            let lost = |number| if number == place { 7 } else { 0 };
            assert_eq!(rates(100, &|_| 0, &lost), Ok(5e6), "lost before {place}");
        }
        // From 100 on, the bitrate is variable.
        let variable = |number: i64| if number < 100 { 0 } else { number * 7919 % 13 * 8000 };
        assert_eq!(rates(100, &variable, &|_| 0), Ok(5e6));
        let why = Err(UnknownTransportStreamValue::VariableBitrate);
        assert_eq!(rates(200, &variable, &|_| 0), why);
    }

    #[test]
    fn windows_begin_again_after_interruptions() {
        let mut accuracy = ClockAccuracy::default();
        for packet in 0..1000 {
            if packet % 31 == 0 {
                accuracy.interrupt();
            }
            accuracy.record(0x100, packet, packet * 8000, true);
        }
        assert_eq!(accuracy.result().errors, Err(UnknownTransportStreamValue::PacketsLost));
        let of = |packets| {
            let mut accuracy = ClockAccuracy::default();
            (0..packets).for_each(|it| accuracy.record(0x100, it, it * 8000, true));
            accuracy.result().errors
        };
        assert_eq!(of(0), Err(UnknownTransportStreamValue::NoClockReferences));
        assert_eq!(of(31), Err(UnknownTransportStreamValue::TooFewClockReferences));
        assert_eq!(of(32), Ok(0));
    }

    proptest! {
        #[test]
        fn any_references_are_judged_without_panic(
            references in prop::collection::vec((0..3_u16, 0..1000_u64, 0..CLOCK_WRAP), 0..200),
        ) {
            let (mut accuracy, mut packet) = (ClockAccuracy::default(), 0);
            for (pid, step, clock) in references {
                packet += step + 1;
                accuracy.record(pid, packet, clock, step != 7);
            }
            let found = accuracy.result();
            prop_assert!(found.errors.unwrap_or(0) <= found.checked);
        }
    }
}
