//! Packets of one PID.

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::transport_stream::{CLOCK_RATE_HZ, SectionAssembler, TsPacket};

use super::due::Due;
use super::report::TransportStreamReport;

/// Max time between two sections of a table (TR 101 290 indicators 1.3 and 1.5).
const MAX_TABLE_INTERVAL: Span = Span::from_millis(500);
/// Max time between two clock references (2.3a).
const MAX_CLOCK_INTERVAL: Span = Span::from_millis(100);
/// Max step of the values of clock references (2.3b), in ticks of 27 MHz.
const MAX_CLOCK_STEP: u64 = CLOCK_RATE_HZ / 10;
/// Max time between two presentation time stamps (2.5).
const MAX_PRESENTATION_INTERVAL: Span = Span::from_millis(700);

/// Clock references wrap after 33 bits of 90 kHz.
pub(super) const CLOCK_WRAP: u64 = (1 << 33) * 300;

/// The state of a PID.
#[derive(Clone, Debug, Default)]
pub(super) struct Part {
    pub(super) has_packets: bool,
    last: Option<Last>,
    /// Value of the last clock reference.
    clock: Option<u64>,
    clock_due: Due,
    presentation_due: Due,
    /// Section of the program association table that lists it as the PID of a program map.
    pub(super) listed_in: Option<u8>,
    table_due: Due,
    /// PID and program of the map that refers to it.
    pub(super) mapped_by: Option<(u16, u16)>,
    /// Those of the map that refers to it as audio or video.
    pub(super) referred_by: Option<(u16, u16)>,
    /// Whether no map refers to it any longer, so that neither clock references nor presentation times are due.
    has_left: bool,
    packet_due: Due,
    pub(super) sections: SectionAssembler,
}

/// The last packet.
#[derive(Clone, Copy, Debug)]
struct Last {
    counter: u8,
    /// Of the payload.
    digest: u64,
    is_repetition: bool,
}

/// How a packet follows the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continuity {
    Continues,
    /// The same packet again, which is permitted once.
    Repeated,
    /// This number of packets is missing, modulo 16; 0 if a packet came more than twice.
    Broken {
        missing: u8,
    },
}

/// What [`Part::record`] found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recorded {
    pub(super) continuity: Continuity,
    /// Whether the clock continues since the last clock reference.
    pub(super) is_clock_continuous: bool,
}

/// What is missing by now.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Missing {
    /// Intervals without a section of its table.
    pub(super) table: u64,
    /// Periods without a packet.
    pub(super) packet: u64,
}

impl Part {
    /// Its table is due from this time on.
    pub(super) fn expect_table(&mut self, time: Time<Utc>) {
        self.table_due.begin(time);
    }

    /// Notes that a section of its table came; counts what was missing before.
    pub(super) fn table_came(&mut self, time: Time<Utc>) -> u64 {
        let missing = self.table_due.each(time, MAX_TABLE_INTERVAL);
        self.table_due.came(time);
        missing
    }

    /// Its table is not due.
    pub(super) fn leave_association(&mut self) {
        self.listed_in = None;
        self.table_due.stop();
        self.sections.interrupt();
    }

    /// A program map refers to it; packets of audio and video have to come.
    pub(super) fn refer(&mut self, by: (u16, u16), is_continuous: bool, time: Time<Utc>) {
        self.mapped_by.get_or_insert(by);
        self.has_left = false;
        if is_continuous {
            self.referred_by.get_or_insert(by);
            self.packet_due.begin(time);
        }
    }

    /// No program map refers to it.
    pub(super) fn leave_map(&mut self) {
        self.mapped_by = None;
        self.has_left = true;
        self.clock_due.stop();
        self.presentation_due.stop();
    }

    /// No program map refers to it as audio or video.
    pub(super) fn leave_media(&mut self) {
        self.referred_by = None;
        self.packet_due.stop();
    }

    /// Counts what is missing by now.
    pub(super) fn check(
        &mut self,
        time: Time<Utc>,
        period: Span,
        counts: &mut TransportStreamReport,
    ) -> Missing {
        counts.pcr_repetition_errors += self.clock_due.once(time, MAX_CLOCK_INTERVAL);
        counts.pts_errors += self.presentation_due.once(time, MAX_PRESENTATION_INTERVAL);
        Missing {
            table: self.table_due.each(time, MAX_TABLE_INTERVAL),
            packet: self.packet_due.each(time, period),
        }
    }

    /// A damaged packet came: its counter and content are unknown.
    pub(super) fn interrupt(&mut self) {
        self.last = None;
        self.sections.interrupt();
    }

    /// The synchronisation is lost: nothing is due.
    pub(super) fn lose(&mut self) {
        self.interrupt();
        self.clock = None;
        for due in [
            &mut self.clock_due,
            &mut self.presentation_due,
            &mut self.table_due,
            &mut self.packet_due,
        ] {
            due.stop();
        }
    }

    /// The synchronisation is acquired again: tables and packets are due from this time on.
    pub(super) fn resume(&mut self, time: Time<Utc>) {
        if self.listed_in.is_some() {
            self.table_due.begin(time);
        }
        if self.referred_by.is_some() {
            self.packet_due.begin(time);
        }
    }

    /// Records the next packet.
    pub(super) fn record(
        &mut self,
        packet: &TsPacket<'_>,
        time: Time<Utc>,
        period: Span,
        counts: &mut TransportStreamReport,
    ) -> Recorded {
        self.has_packets = true;
        let continuity = self.continues(packet);
        if matches!(continuity, Continuity::Broken { .. }) {
            counts.continuity_errors += 1;
            self.sections.interrupt();
        }
        if self.referred_by.is_some() {
            counts.pid_errors += self.packet_due.each(time, period);
            self.packet_due.came(time);
        }
        if packet.discontinuity {
            self.clock = None;
        }
        let mut is_clock_continuous = true;
        if let Some(clock) = packet.clock {
            counts.pcr_repetition_errors += self.clock_due.once(time, MAX_CLOCK_INTERVAL);
            self.clock_due.came(time);
            let last = self.clock.replace(clock);
            let step = last.map_or(0, |last| (clock + CLOCK_WRAP - last) % CLOCK_WRAP);
            let jumps = step > MAX_CLOCK_STEP;
            counts.pcr_discontinuity_errors += u64::from(jumps);
            is_clock_continuous = last.is_some() && !jumps;
        }
        if packet.presentation_time().is_some() {
            counts.pts_errors += self.presentation_due.once(time, MAX_PRESENTATION_INTERVAL);
            self.presentation_due.came(time);
        }
        if packet.scrambled || self.has_left {
            // The next ones are unreadable (2.5), or the map that announced them has ended.
            self.presentation_due.stop();
        }
        if self.has_left {
            self.clock_due.stop();
        }
        Recorded { continuity, is_clock_continuous }
    }

    /// Whether the counter continues (ISO/IEC 13818-1 section 2.4.3.3): it counts packets with payload, and a packet may
    /// be repeated once, with the same payload.
    fn continues(&mut self, packet: &TsPacket<'_>) -> Continuity {
        let counter = packet.continuity;
        let digest = packet.payload.map_or(0, digest);
        let Some(last) = self.last.filter(|_| !packet.discontinuity) else {
            self.last = Some(Last { counter, digest, is_repetition: false });
            return Continuity::Continues;
        };
        let follows = |expected: u8| match counter.wrapping_sub(expected) & 0x0f {
            0 => Continuity::Continues,
            missing => Continuity::Broken { missing },
        };
        if packet.payload.is_none() {
            self.last = Some(Last { counter, ..last });
            return follows(last.counter);
        }
        let is_repetition = counter == last.counter && digest == last.digest;
        self.last = Some(Last { counter, digest, is_repetition });
        match (is_repetition, last.is_repetition) {
            (true, true) => Continuity::Broken { missing: 0 },
            (true, false) => Continuity::Repeated,
            (false, _) => follows(last.counter + 1),
        }
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
