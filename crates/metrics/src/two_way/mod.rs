//! What a test tells of both directions whose packets are returned, as those of STAMP are (RFC 8762).
//!
//! The sender knows what it sent and what came back, and from each answer when its packet reached the
//! reflector and left it. So each direction has the metrics of two points. What did not come back is
//! ascribed to a direction by the reflector's own numbers, where it counts what it returns: numbers that
//! never came were lost on the way back, and of the sender's packets between the same two neighbours all
//! the others on the way there. A packet that was overtaken on the way there and whose answer was lost has
//! its number among later neighbours, and is taken to be lost there.

mod direction;
mod numbers;

use std::collections::{BTreeMap, VecDeque};

use wirestamp_clock::{Span, Stamp, Time, Utc};
use wirestamp_packet::FlowKey;

use self::direction::{Departure, Direction};
use self::numbers::Numbers;
use crate::{Distribution, Quality, UndeterminedReason};

/// Packets in a row that are kept until something comes back behind them. Of more in a row the oldest are
/// ascribed to neither direction.
const LONGEST_RUN: usize = 1 << 16;

/// An answer of the reflector's.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// Which packet it answers, counted from 0.
    pub sequence: u64,
    /// Its own number, by the reflector.
    pub number: u64,
    /// When the packet came to the reflector, by its clock.
    pub received: Stamp,
    /// When the answer left the reflector, by its clock.
    pub returned: Stamp,
    /// When the answer came back.
    pub back: Stamp,
    /// Its bytes on the wire, with the link header.
    pub length: u32,
}

/// What an answer was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyKind {
    /// The first answer to its packet.
    First,
    /// Another reply to the same packet.
    Duplicate,
    /// It came after the time-out, and its packet counts as lost.
    Late,
    /// There was no such packet.
    Foreign,
}

/// How often each thing happened to the packets of a two-way test.
///
/// `sent = answered + lost` once all is decided, and `lost = lost_there + lost_back + undecided`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TwoWayCounts {
    /// Packets sent.
    pub sent: u64,
    /// Packets whose answer came within the time-out.
    pub answered: u64,
    /// Packets without one.
    pub lost: u64,
    /// Those of them that did not reach the reflector.
    pub lost_there: u64,
    /// Those whose answer was lost.
    pub lost_back: u64,
    /// Those of which it is not known where: the last ones, late ones, and all where the reflector does not
    /// count what it returns.
    pub undecided: u64,
    /// Answers that came after the time-out.
    pub late: u64,
    /// Answers to packets that were never sent.
    pub foreign: u64,
    /// Delays there that are below zero by more than both clocks' errors: one of them is not as right as it
    /// says.
    pub impossible_there: u64,
    /// The same for delays back.
    pub impossible_back: u64,
}

/// A packet whose fate is not settled.
struct Packet {
    sent: Stamp,
    length: u32,
    /// The first answer's number, and when that left.
    answer: Option<(u64, Stamp)>,
    is_late: bool,
}

/// Puts the answers of a reflector together with what was sent.
///
/// Each direction is measured as by a [`Correlator`](crate::Correlator): the delays there are of the times
/// at which packets reached the reflector, in the order of those times. Memory goes with the packets of
/// twice the time-out.
pub struct TwoWayTest {
    timeout: Span,
    /// Whether the reflector counts what it returns.
    is_counted: bool,
    /// The number of the first of `packets`.
    first: u64,
    packets: VecDeque<Packet>,
    /// Answers in the order in which their packets reached the reflector, by that time and the number.
    answers: BTreeMap<(Time<Utc>, u64), (Departure, Stamp)>,
    numbers: Numbers,
    /// The number of the last answer ahead of `run`.
    before_run: Option<u64>,
    /// The number and the time of an answer behind all packets.
    end: Option<(u64, Stamp)>,
    /// Packets in a row without an answer.
    run: VecDeque<(Departure, bool)>,
    there: Direction,
    back: Direction,
    round_trip: Distribution,
    response: Distribution,
    counts: TwoWayCounts,
}

impl TwoWayTest {
    /// A test that has sent nothing yet, between these addresses, whose packets are waited for this long.
    #[must_use]
    pub fn new(flow: FlowKey, timeout: Span) -> Self {
        let FlowKey { source, destination, protocol } = flow;
        Self {
            timeout: timeout.max(Span::ZERO),
            is_counted: false,
            first: 0,
            packets: VecDeque::new(),
            answers: BTreeMap::new(),
            numbers: Numbers::default(),
            before_run: None,
            end: None,
            run: VecDeque::new(),
            there: Direction::new(flow),
            back: Direction::new(FlowKey { source: destination, destination: source, protocol }),
            round_trip: Distribution::new(),
            response: Distribution::new(),
            counts: TwoWayCounts::default(),
        }
    }

    /// Whether the reflector is known to count what it returns, in the stateful mode of RFC 8762 section 4.2.
    /// One that copies the sender's numbers cannot be told from it while nothing is lost; one whose number
    /// is not the sender's counts, whatever was said before.
    pub fn set_counted(&mut self, is_counted: bool) {
        self.is_counted = is_counted;
    }

    /// A packet was sent; returns its number.
    pub fn send(&mut self, sent: Stamp, length: u32) -> u64 {
        self.packets.push_back(Packet { sent, length, answer: None, is_late: false });
        self.counts.sent += 1;
        self.next() - 1
    }

    fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// When a packet was sent, if it is not settled.
    #[must_use]
    pub fn sent_at(&self, sequence: u64) -> Option<Stamp> {
        let nth = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        self.packets.get(nth).map(|packet| packet.sent)
    }

    /// The packet that was sent last was not sent after all.
    pub fn unsend(&mut self) {
        if self.packets.pop_back().is_some() {
            self.counts.sent -= 1;
        }
    }

    /// A better stamp for a packet that has no answer yet; false if it has, or is settled.
    pub fn restamp(&mut self, sequence: u64, sent: Stamp) -> bool {
        let packet = self.packet(sequence).filter(|packet| packet.answer.is_none());
        packet.map(|packet| packet.sent = sent).is_some()
    }

    fn packet(&mut self, sequence: u64) -> Option<&mut Packet> {
        let nth = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        self.packets.get_mut(nth)
    }

    /// An answer came. Calls are in the order in which they came.
    pub fn take(&mut self, answer: Reply) -> ReplyKind {
        let Reply { sequence, number, received, returned, back, length } = answer;
        if sequence >= self.next() {
            self.counts.foreign += 1;
            return ReplyKind::Foreign;
        }
        let is_new = self.numbers.see(number);
        self.is_counted |= number != sequence;
        let timeout = self.timeout;
        let Some(packet) = self.packet(sequence) else {
            self.counts.late += 1;
            self.was_late(sequence);
            return ReplyKind::Late;
        };
        let there = Departure { number: sequence, stamp: packet.sent, length: packet.length };
        let way_back = Departure { number, stamp: returned, length };
        if let Some((first, _)) = packet.answer {
            if first == number || !is_new {
                self.back.repeat(way_back, back);
            } else {
                self.there.repeat(there, received);
                self.back.arrive(way_back, back);
            }
            return ReplyKind::Duplicate;
        }
        if back.utc - packet.sent.utc > timeout {
            packet.is_late = true;
            self.counts.late += 1;
            return ReplyKind::Late;
        }
        packet.answer = Some((number, returned));
        self.counts.answered += 1;
        self.answers.insert((received.utc, sequence), (there, received));
        self.back.arrive(way_back, back);
        let response = returned.utc - received.utc;
        self.response.record(response);
        self.round_trip.record(back.utc - there.stamp.utc - response);
        ReplyKind::First
    }

    /// An answer came to a packet that counts as lost already: its direction cannot be told.
    fn was_late(&mut self, sequence: u64) {
        let nth = self.run.binary_search_by_key(&sequence, |(departure, _)| departure.number);
        if let Some((_, is_late)) = nth.ok().and_then(|nth| self.run.get_mut(nth)) {
            *is_late = true;
        }
    }

    /// An answer came to a packet that is none of the test's, sent behind all of them: with its number, the
    /// last losses can be ascribed too.
    pub fn end(&mut self, number: u64, returned: Stamp) {
        if self.numbers.see(number) {
            self.end = Some((number, returned));
        }
    }

    /// Settles what can be by now, by the sender's clock.
    pub fn advance(&mut self, now: Time<Utc>) {
        // What was sent a time-out before has its answer or never will; and what had not come to the
        // reflector by then comes there behind it. So another time-out earlier, order is settled.
        let settled = now - self.timeout - self.timeout;
        while let Some((at, (departure, received))) = self.answers.pop_first() {
            // More than that is the doing of a clock that makes no sense.
            let is_settled = departure.stamp.utc < settled;
            if !is_settled && self.answers.len() < self.packets.len() {
                self.answers.insert(at, (departure, received));
                break;
            }
            self.there.arrive(departure, received);
        }
        while self.packets.front().is_some_and(|packet| packet.sent.utc < settled) {
            self.settle();
        }
    }

    /// Settles the first of the packets.
    fn settle(&mut self) {
        let Some(packet) = self.packets.pop_front() else { return };
        let departure = Departure { number: self.first, stamp: packet.sent, length: packet.length };
        self.first += 1;
        let Some((number, returned)) = packet.answer else {
            self.counts.lost += 1;
            self.run.push_back((departure, packet.is_late));
            if self.run.len() > LONGEST_RUN {
                self.give_up_oldest();
            }
            return;
        };
        self.ascribe(number, returned);
        self.before_run = Some(number);
    }

    /// Ascribes the run to a direction each, before the answer with this number.
    fn ascribe(&mut self, number: u64, returned: Stamp) {
        let begin = self.before_run.map_or(0, |before| before + 1);
        // A reflector that went on counting from an earlier test says nothing of what is before its first.
        let is_counted =
            self.is_counted && (self.before_run.is_some() || number <= self.run.len() as u64);
        let range = if is_counted { begin..number } else { 0..0 };
        let on_time = self.run.iter().filter(|(_, is_late)| !is_late).count();
        let mut unheard = self.numbers.take_unseen(range, on_time).into_iter();
        for (departure, is_late) in std::mem::take(&mut self.run) {
            if is_late || !is_counted {
                self.there.give_up(departure, UndeterminedReason::Missed);
                self.counts.undecided += 1;
            } else if let Some(number) = unheard.next() {
                self.there.give_up(departure, UndeterminedReason::Missed);
                let length = departure.length;
                self.back.lose(Departure { number, stamp: returned, length });
                self.counts.lost_back += 1;
            } else {
                self.there.lose(departure);
                self.counts.lost_there += 1;
            }
        }
    }

    fn give_up_oldest(&mut self) {
        if let Some((departure, _)) = self.run.pop_front() {
            self.there.give_up(departure, UndeterminedReason::Missed);
            self.counts.undecided += 1;
        }
    }

    /// Settles everything: nothing more will come.
    #[must_use]
    pub fn finish(mut self) -> TwoWayResult {
        for (departure, received) in std::mem::take(&mut self.answers).into_values() {
            self.there.arrive(departure, received);
        }
        while !self.packets.is_empty() {
            self.settle();
        }
        if let Some((number, returned)) = self.end {
            self.ascribe(number, returned);
        }
        while !self.run.is_empty() {
            self.give_up_oldest();
        }
        TwoWayResult {
            counts: self.counts(),
            is_counted: self.is_counted,
            there: self.there.into_quality(),
            back: self.back.into_quality(),
            round_trip: self.round_trip,
            response: self.response,
        }
    }

    /// How often each thing has happened by now. What has not come back yet is in `sent` only.
    #[must_use]
    pub fn counts(&self) -> TwoWayCounts {
        TwoWayCounts {
            impossible_there: self.there.impossible(),
            impossible_back: self.back.impossible(),
            ..self.counts
        }
    }

    /// The round-trip times so far ([`TwoWayResult::round_trip`]).
    #[must_use]
    pub fn round_trip(&self) -> &Distribution {
        &self.round_trip
    }

    /// What is settled of the way back so far.
    #[must_use]
    pub fn back(&self) -> &Quality {
        self.back.quality()
    }
}

/// What a two-way test found.
#[derive(Clone, Debug)]
pub struct TwoWayResult {
    /// How often each thing happened.
    pub counts: TwoWayCounts,
    /// Whether the reflector counts what it returns, so that losses can be ascribed to a direction.
    pub is_counted: bool,
    /// From the sender to the reflector. Packets whose answer was lost are given up in it.
    pub there: Quality,
    /// From the reflector to the sender, of what the reflector returned as far as that is known.
    pub back: Quality,
    /// Round-trip times without the time that the packets were at the reflector: differences of two times
    /// of the same clock each.
    pub round_trip: Distribution,
    /// How long packets were at the reflector.
    pub response: Distribution,
}

#[cfg(test)]
mod tests;
