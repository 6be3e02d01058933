//! Packets of one PID.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::transport_stream::{CLOCK_RATE_HZ, TsPacket};

use super::TransportStreamReport;

/// Max time between two sections of a table (TR 101 290 indicators 1.3 and 1.5).
const MAX_TABLE_INTERVAL: Span = Span::from_millis(500);
/// Max time between two clock references (2.3a).
const MAX_CLOCK_INTERVAL: Span = Span::from_millis(100);
/// Max step of the values of clock references (2.3b), in ticks of 27 MHz.
const MAX_CLOCK_STEP: u64 = CLOCK_RATE_HZ / 10;
/// Max time between two presentation time stamps (2.5).
const MAX_PRESENTATION_INTERVAL: Span = Span::from_millis(700);

/// Clock references wrap after 33 bits of 90 kHz.
const CLOCK_WRAP: u64 = (1 << 33) * 300;

/// The state of a PID.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    last: Option<Last>,
    /// Value of the last clock reference.
    clock: Option<u64>,
    clock_due: Due,
    presentation_due: Due,
    /// A program map, or the program association table.
    is_table: bool,
    table_due: Due,
}

/// The last packet.
#[derive(Clone, Copy, Debug)]
struct Last {
    counter: u8,
    /// Of the payload.
    digest: u64,
    is_repetition: bool,
}

/// Something that has to be repeated.
#[derive(Clone, Copy, Debug, Default)]
struct Due {
    last: Option<Time<Utc>>,
}

impl Due {
    /// Counts 1 if it is missing for longer than `max` by now; then its time begins again.
    fn missing(&mut self, now: Time<Utc>, max: Span) -> u64 {
        let is_missing = self.last.is_some_and(|last| now - last > max);
        if is_missing {
            self.last = Some(now);
        }
        u64::from(is_missing)
    }

    /// Notes that it came, and counts as [`Self::missing`].
    fn came(&mut self, now: Time<Utc>, max: Span) -> u64 {
        let missing = self.missing(now, max);
        self.last = Some(now);
        missing
    }
}

impl Part {
    /// Whether it has had packets.
    pub(super) const fn has_packets(&self) -> bool {
        self.last.is_some()
    }

    /// Whether it is a program map, or the program association table.
    pub(super) const fn is_table(&self) -> bool {
        self.is_table
    }

    /// Notes that it is a table, which is due from this time on.
    pub(super) fn expect_table(&mut self, time: Time<Utc>) {
        if !self.is_table {
            self.is_table = true;
            self.table_due.last.get_or_insert(time);
        }
    }

    /// Notes that a table begins; counts 1 if it was missing for too long.
    pub(super) fn begin_table(&mut self, time: Time<Utc>) -> u64 {
        self.table_due.came(time, MAX_TABLE_INTERVAL)
    }

    /// Counts what is missing by now; returns the errors of its table.
    pub(super) fn check(&mut self, time: Time<Utc>, counts: &mut TransportStreamReport) -> u64 {
        counts.pcr_repetition_errors += self.clock_due.missing(time, MAX_CLOCK_INTERVAL);
        counts.pts_errors += self.presentation_due.missing(time, MAX_PRESENTATION_INTERVAL);
        if self.is_table { self.table_due.missing(time, MAX_TABLE_INTERVAL) } else { 0 }
    }

    /// A damaged packet came: its counter is unknown.
    pub(super) fn interrupt(&mut self) {
        self.last = None;
    }

    /// Records the next packet.
    pub(super) fn record(
        &mut self,
        packet: &TsPacket<'_>,
        time: Time<Utc>,
        counts: &mut TransportStreamReport,
    ) {
        counts.continuity_errors += u64::from(!self.continues(packet));
        if packet.discontinuity {
            self.clock = None;
        }
        if let Some(clock) = packet.clock {
            counts.pcr_repetition_errors += self.clock_due.came(time, MAX_CLOCK_INTERVAL);
            let step = self
                .clock
                .replace(clock)
                .map_or(0, |last| (clock + CLOCK_WRAP - last) % CLOCK_WRAP);
            counts.pcr_discontinuity_errors += u64::from(step > MAX_CLOCK_STEP);
        }
        if packet.presentation_time().is_some() {
            counts.pts_errors += self.presentation_due.came(time, MAX_PRESENTATION_INTERVAL);
        }
    }

    /// Whether the counter continues (ISO/IEC 13818-1 section 2.4.3.3): it counts packets with payload, and a packet may
    /// be repeated once, with the same payload.
    fn continues(&mut self, packet: &TsPacket<'_>) -> bool {
        let counter = packet.continuity;
        let digest = packet.payload.map_or(0, digest);
        let Some(last) = self.last.filter(|_| !packet.discontinuity) else {
            self.last = Some(Last { counter, digest, is_repetition: false });
            return true;
        };
        if packet.payload.is_none() {
            self.last = Some(Last { counter, ..last });
            return counter == last.counter;
        }
        let is_repetition = counter == last.counter && digest == last.digest;
        self.last = Some(Last { counter, digest, is_repetition });
        if is_repetition { !last.is_repetition } else { counter == (last.counter + 1) & 0x0f }
    }
}

/// A number that payloads with other bytes hardly share.
fn digest(payload: &[u8]) -> u64 {
    let (words, rest) = payload.as_chunks();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let rest = rest.iter().map(|byte| u64::from(*byte));
    words
        .chain(rest)
        .fold(1, |sum: u64, word| (sum.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
