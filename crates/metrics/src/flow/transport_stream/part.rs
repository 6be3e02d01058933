//! Packets of one PID.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::transport_stream::{CLOCK_RATE_HZ, TsPacket};

use super::TransportStreamReport;

/// Max time between two sections of a table (TR 101 290 indicators 1.3 and 1.5).
const MAX_TABLE_INTERVAL: Span = Span::from_millis(500);
/// Max time between two clock references (2.3a), and max step of their values (2.3b), in ticks of 27 MHz.
const MAX_CLOCK_INTERVAL: u64 = CLOCK_RATE_HZ / 10;
/// Max time between two presentation time stamps (2.5), in ticks of 90 kHz.
const MAX_PRESENTATION_INTERVAL: u64 = 63_000;

/// Clock references and presentation time stamps wrap after 33 bits of 90 kHz.
const PRESENTATION_WRAP: u64 = 1 << 33;
const CLOCK_WRAP: u64 = PRESENTATION_WRAP * 300;

/// The state of a PID.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    /// Counter of the last packet, and whether it was a repetition.
    last: Option<(u8, bool)>,
    clock: Option<u64>,
    presentation: Option<u64>,
    is_map: bool,
    table: Option<Time<Utc>>,
}

impl Part {
    /// Whether it is a program map.
    pub(super) const fn is_map(&self) -> bool {
        self.is_map
    }

    /// Notes that it is a program map. Returns whether the table is missing for too long by now; then its time begins again.
    pub(super) fn expect_map(&mut self, time: Time<Utc>) -> bool {
        let is_late = self.is_missing(time);
        if is_late || !self.is_map {
            (self.is_map, self.table) = (true, Some(time));
        }
        is_late
    }

    /// Notes that a table begins. Returns whether it was missing for too long.
    pub(super) fn begin_table(&mut self, time: Time<Utc>) -> bool {
        let is_late = self.is_missing(time);
        self.table = Some(time);
        is_late
    }

    fn is_missing(&self, time: Time<Utc>) -> bool {
        self.table.is_some_and(|last| time - last > MAX_TABLE_INTERVAL)
    }

    /// Records the next packet.
    pub(super) fn record(&mut self, packet: &TsPacket<'_>, counts: &mut TransportStreamReport) {
        counts.continuity_errors += u64::from(!self.continues(packet));
        if packet.discontinuity {
            (self.clock, self.presentation) = (None, None);
        }
        if let Some(clock) = packet.clock {
            self.record_clock(clock, counts);
        }
        if let Some(time) = packet.presentation_time() {
            // Time stamps of pictures are not in order; a step back is none of time.
            let step = step(self.presentation.replace(time), time, PRESENTATION_WRAP);
            let is_ahead = step < PRESENTATION_WRAP / 2;
            counts.pts_errors += u64::from(is_ahead && step > MAX_PRESENTATION_INTERVAL);
        }
    }

    /// A step of more than 100 ms that is small enough for a pause counts as a late reference, others as a jump.
    fn record_clock(&mut self, clock: u64, counts: &mut TransportStreamReport) {
        let step = step(self.clock.replace(clock), clock, CLOCK_WRAP);
        if step > MAX_CLOCK_INTERVAL {
            counts.pcr_discontinuity_errors += 1;
            counts.pcr_repetition_errors += u64::from(step < CLOCK_WRAP / 2);
        }
    }

    /// Whether the counter continues (ISO/IEC 13818-1 section 2.4.3.3): it counts packets with payload, and a packet may
    /// be repeated once.
    fn continues(&mut self, packet: &TsPacket<'_>) -> bool {
        let counter = packet.continuity;
        let Some((last, was_repeated)) = self.last.filter(|_| !packet.discontinuity) else {
            self.last = Some((counter, false));
            return true;
        };
        if packet.payload.is_none() {
            self.last = Some((counter, was_repeated));
            return counter == last;
        }
        let is_repeated = counter == last;
        self.last = Some((counter, is_repeated));
        if is_repeated { !was_repeated } else { counter == (last + 1) & 0x0f }
    }
}

/// The step from the last value, modulo `wrap`; 0 for the first value.
fn step(last: Option<u64>, now: u64, wrap: u64) -> u64 {
    last.map_or(0, |last| (now + wrap - last) % wrap)
}
