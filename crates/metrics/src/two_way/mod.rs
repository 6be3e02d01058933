//! Metrics of both directions of a test whose packets are returned, such as STAMP (RFC 8762).
//!
//! The sender has its own packets and the replies. Each reply states when its packet reached the reflector and when
//! the reply left. So each direction has the metrics of two points.
//!
//! A missing reply is assigned to a direction by the numbers of the reflector, where it counts its replies: numbers
//! that never arrived were lost on the way back; of the sender's packets between the same two neighbours, all others
//! were lost on the way there. A packet that was overtaken on the way there and whose reply was lost has its number
//! among later neighbours, and counts as lost there.

mod direction;
mod numbers;

use std::collections::{BTreeMap, VecDeque};

use wirestamp_clock::{Span, Stamp, Time, Utc};
use wirestamp_packet::FlowKey;

use self::direction::{Departure, Direction};
use self::numbers::Numbers;
use crate::{Distribution, Quality, UndeterminedReason};

/// Max consecutive packets kept until a later reply arrives. Beyond that, the oldest are assigned to neither
/// direction.
const MAX_RUN: usize = 1 << 16;

/// A reply of the reflector.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// Number of the packet that it answers, from 0.
    pub sequence: u64,
    /// Number of the reply, set by the reflector.
    pub number: u64,
    /// Arrival of the packet at the reflector, by its clock.
    pub received: Stamp,
    /// Departure of the reply from the reflector, by its clock.
    pub returned: Stamp,
    /// Arrival of the reply at the sender.
    pub back: Stamp,
    /// Bytes of the reply on the wire, with the link header.
    pub length: u32,
}

/// Classification of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyKind {
    /// First reply to its packet.
    First,
    /// Another reply to the same packet.
    Duplicate,
    /// After the timeout; its packet counts as lost.
    Late,
    /// To a packet that was never sent.
    Foreign,
}

/// Packets of a two-way test by outcome.
///
/// Once all is decided, `sent = answered + lost` and `lost = lost_there + lost_back + undecided`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TwoWayCounts {
    /// Packets sent.
    pub sent: u64,
    /// Packets with a reply within the timeout.
    pub answered: u64,
    /// Packets without a reply within the timeout.
    pub lost: u64,
    /// Lost packets that did not reach the reflector.
    pub lost_there: u64,
    /// Lost packets whose reply was lost.
    pub lost_back: u64,
    /// Lost packets of unknown direction: the last ones, late ones, and all if the reflector does not count its
    /// replies.
    pub undecided: u64,
    /// Replies after the timeout.
    pub late: u64,
    /// Replies to packets never sent.
    pub foreign: u64,
    /// Negative delays there beyond both clock errors: one of the clocks has a larger error than stated.
    pub impossible_there: u64,
    /// Negative delays back beyond both clock errors.
    pub impossible_back: u64,
}

/// An undecided packet.
struct Packet {
    sent: Stamp,
    length: u32,
    /// Number and departure of the first reply.
    answer: Option<(u64, Stamp)>,
    is_late: bool,
}

/// Matches the replies of a reflector to the packets sent.
///
/// Each direction is measured as by a [`Correlator`](crate::Correlator): arrivals at the reflector are recorded in the
/// order of its stamps. Memory is proportional to the packets of twice the timeout.
pub struct TwoWayTest {
    timeout: Span,
    /// Whether the reflector counts its replies.
    is_counted: bool,
    /// Number of the first of `packets`.
    first: u64,
    packets: VecDeque<Packet>,
    /// Replies in the order in which their packets reached the reflector, by that time and the number.
    answers: BTreeMap<(Time<Utc>, u64), (Departure, Stamp)>,
    numbers: Numbers,
    /// Number of the last reply before `run`.
    before_run: Option<u64>,
    /// Number and time of a reply after all packets.
    end: Option<(u64, Stamp)>,
    /// Consecutive packets without a reply.
    run: VecDeque<(Departure, bool)>,
    there: Direction,
    back: Direction,
    /// Round-trip times so far ([`TwoWayResult::round_trip`]).
    pub round_trip: Distribution,
    response: Distribution,
    counts: TwoWayCounts,
}

impl TwoWayTest {
    /// A test between these addresses without packets, with this timeout.
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

    /// Sets whether the reflector counts its replies (stateful mode, RFC 8762 section 4.2). While nothing is lost, a
    /// reflector that copies the sender's numbers is indistinguishable from one that counts. A reply with another
    /// number proves that it counts, whatever was set.
    pub fn set_counted(&mut self, is_counted: bool) {
        self.is_counted = is_counted;
    }

    /// Records a packet sent; returns its number.
    pub fn send(&mut self, sent: Stamp, length: u32) -> u64 {
        self.packets.push_back(Packet { sent, length, answer: None, is_late: false });
        self.counts.sent += 1;
        self.next() - 1
    }

    fn next(&self) -> u64 {
        self.first + self.packets.len() as u64
    }

    /// Send stamp of an undecided packet.
    #[must_use]
    pub fn sent_at(&self, sequence: u64) -> Option<Stamp> {
        let nth = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        self.packets.get(nth).map(|packet| packet.sent)
    }

    /// Removes the last packet: it was not sent.
    pub fn unsend(&mut self) {
        if self.packets.pop_back().is_some() {
            self.counts.sent -= 1;
        }
    }

    /// Replaces the stamp of a packet without a reply. Returns false if it has one or is decided.
    pub fn restamp(&mut self, sequence: u64, sent: Stamp) -> bool {
        let packet = self.packet(sequence).filter(|packet| packet.answer.is_none());
        packet.map(|packet| packet.sent = sent).is_some()
    }

    fn packet(&mut self, sequence: u64) -> Option<&mut Packet> {
        let nth = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        self.packets.get_mut(nth)
    }

    /// Records a reply, in the order of arrival.
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
        let reply_departure = Departure { number, stamp: returned, length };
        if let Some((first, _)) = packet.answer {
            if first == number || !is_new {
                self.back.record_duplicate(reply_departure, back);
            } else {
                self.there.record_duplicate(there, received);
                self.back.record_arrival(reply_departure, back);
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
        self.back.record_arrival(reply_departure, back);
        let response = returned.utc - received.utc;
        self.response.record(response);
        self.round_trip.record(back.utc - there.stamp.utc - response);
        ReplyKind::First
    }

    /// Records a reply to a packet already counted as lost, whose direction is then unknown.
    fn was_late(&mut self, sequence: u64) {
        let nth = self.run.binary_search_by_key(&sequence, |(departure, _)| departure.number);
        if let Some((_, is_late)) = nth.ok().and_then(|nth| self.run.get_mut(nth)) {
            *is_late = true;
        }
    }

    /// Records the reply to a closing packet sent after all others: its number assigns the last losses.
    pub fn end(&mut self, number: u64, returned: Stamp) {
        if self.numbers.see(number) {
            self.end = Some((number, returned));
        }
    }

    /// Decides all packets that can be decided at `now`, by the sender's clock.
    pub fn advance(&mut self, now: Time<Utc>) {
        // Packets older than one timeout have their reply or never will; packets that had not reached the reflector by
        // then are ordered after it. So the order of packets older than two timeouts is final.
        let decided = now - self.timeout - self.timeout;
        while let Some((at, (departure, received))) = self.answers.pop_first() {
            // More replies than packets result from an invalid clock.
            let is_decided = departure.stamp.utc < decided;
            if !is_decided && self.answers.len() < self.packets.len() {
                self.answers.insert(at, (departure, received));
                break;
            }
            self.there.record_arrival(departure, received);
        }
        while self.packets.front().is_some_and(|packet| packet.sent.utc < decided) {
            self.decide_first();
        }
    }

    /// Decides the first packet.
    fn decide_first(&mut self) {
        let Some(packet) = self.packets.pop_front() else { return };
        let departure = Departure { number: self.first, stamp: packet.sent, length: packet.length };
        self.first += 1;
        let Some((number, returned)) = packet.answer else {
            self.counts.lost += 1;
            self.run.push_back((departure, packet.is_late));
            if self.run.len() > MAX_RUN {
                self.release_oldest();
            }
            return;
        };
        self.ascribe(number, returned);
        self.before_run = Some(number);
    }

    /// Assigns each packet of the run to a direction, before the reply with this number.
    fn ascribe(&mut self, number: u64, returned: Stamp) {
        let begin = self.before_run.map_or(0, |before| before + 1);
        // The first number of a reflector that continued counting from an earlier test has no meaning.
        let is_counted =
            self.is_counted && (self.before_run.is_some() || number <= self.run.len() as u64);
        let range = if is_counted { begin..number } else { 0..0 };
        let on_time = self.run.iter().filter(|(_, is_late)| !is_late).count();
        let mut unseen = self.numbers.take_unseen(range, on_time).into_iter();
        for (departure, is_late) in std::mem::take(&mut self.run) {
            if is_late || !is_counted {
                self.there.record_undetermined(departure, UndeterminedReason::Missed);
                self.counts.undecided += 1;
            } else if let Some(number) = unseen.next() {
                self.there.record_undetermined(departure, UndeterminedReason::Missed);
                let length = departure.length;
                self.back.record_loss(Departure { number, stamp: returned, length });
                self.counts.lost_back += 1;
            } else {
                self.there.record_loss(departure);
                self.counts.lost_there += 1;
            }
        }
    }

    fn release_oldest(&mut self) {
        if let Some((departure, _)) = self.run.pop_front() {
            self.there.record_undetermined(departure, UndeterminedReason::Missed);
            self.counts.undecided += 1;
        }
    }

    /// Decides all packets: no more replies will come.
    #[must_use]
    pub fn finish(mut self) -> TwoWayResult {
        for (departure, received) in std::mem::take(&mut self.answers).into_values() {
            self.there.record_arrival(departure, received);
        }
        while !self.packets.is_empty() {
            self.decide_first();
        }
        if let Some((number, returned)) = self.end {
            self.ascribe(number, returned);
        }
        while !self.run.is_empty() {
            self.release_oldest();
        }
        TwoWayResult {
            counts: self.counts(),
            is_counted: self.is_counted,
            there: self.there.quality,
            back: self.back.quality,
            round_trip: self.round_trip,
            response: self.response,
        }
    }

    /// Counts so far. Packets without a reply yet are only in `sent`.
    #[must_use]
    pub fn counts(&self) -> TwoWayCounts {
        TwoWayCounts {
            impossible_there: self.there.impossible,
            impossible_back: self.back.impossible,
            ..self.counts
        }
    }

    /// Quality of the way back, for the decided packets.
    #[must_use]
    pub fn back(&self) -> &Quality {
        &self.back.quality
    }
}

/// Result of a two-way test.
#[derive(Clone, Debug)]
pub struct TwoWayResult {
    /// Counts by outcome.
    pub counts: TwoWayCounts,
    /// Whether the reflector counts its replies.
    pub is_counted: bool,
    /// From the sender to the reflector. Packets whose reply was lost are undetermined in it.
    pub there: Quality,
    /// From the reflector to the sender, of the replies that are known.
    pub back: Quality,
    /// Round-trip times without the time at the reflector: differences of two times of one clock each.
    pub round_trip: Distribution,
    /// Time of the packets at the reflector.
    pub response: Distribution,
}

#[cfg(test)]
mod tests;
