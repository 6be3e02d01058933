//! Records of a channel for Kafka, and the reactions to the collector's answers. Without input and output, so that tests
//! can lose, repeat and delay anything.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tracing::warn;

use crate::kafka::v1::record::What;
use crate::kafka::v1::{Answer, Dropped, Inquiry, Part, Record};
use crate::probe::deliver::RESTORED;
use crate::probe::{ChannelName, Error, SharedSpool};
use crate::spool::Held;

/// How often an inquiry that begins a session is repeated.
const GREETING_INTERVAL: Duration = Duration::from_secs(5);

/// Time without an answer after which the collector is asked whether all batches arrived.
const SILENCE: Duration = Duration::from_secs(30);

/// Max bytes of a part. Brokers accept 1 MB by default. Tests have small ones.
const PART_BYTES: usize = if cfg!(test) { 100 } else { 512 << 10 };

/// Bytes read from the spool at a time.
const READ_BYTES: u64 = if cfg!(test) { 500 } else { 256 << 10 };

/// Max bytes of batches that are sent and not acknowledged by the collector.
const WINDOW_BYTES: usize = if cfg!(test) { 8000 } else { 32 << 20 };

/// Max number of these batches: when a task moves, a collector can take back the counts of more than these
/// (`collector/results/epochs.rs`).
const WINDOW_BATCHES: usize = 128;

/// A session of a channel.
pub(crate) struct Outbox {
    name: ChannelName,
    /// The fields that all records of the session have.
    head: Record,
    /// Whether the collector has answered to this session.
    is_answered: bool,
    /// The last batch sent, and the last one acknowledged.
    sent: u64,
    up_to: u64,
    /// Batches that are sent and not acknowledged: last number, and bytes.
    unsettled: VecDeque<(u64, usize)>,
    unsettled_bytes: usize,
    inquired_at: Option<Instant>,
    /// Time of the last answer, or since when one is expected; none while none is expected.
    unanswered_since: Option<Instant>,
}

/// What follows from an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    Continue,
    /// A new session must begin, with a number above this one.
    Restart(u64),
}

impl Outbox {
    /// Begins a session. Its number must be above those of earlier sessions of the channel. `epoch` is that of the task's
    /// placement, if it is known.
    pub(crate) fn open(
        spool: &SharedSpool,
        name: ChannelName,
        epoch: Option<u64>,
        session: u64,
        now: Instant,
    ) -> Result<Self, Error> {
        let (stream, first) = spool.opening(name)?;
        let (settled_until, begin) = spool.known_times(name)?;
        let ChannelName { task, point } = name;
        let instance = spool.instance;
        let head = Record {
            spool: stream,
            task,
            point,
            first,
            instance,
            session,
            what: None,
            epoch,
            settled_until,
            begin,
        };
        Ok(Self {
            name,
            head,
            is_answered: false,
            sent: 0,
            up_to: 0,
            unsettled: VecDeque::new(),
            unsettled_bytes: 0,
            inquired_at: None,
            unanswered_since: Some(now),
        })
    }

    /// Whether batches can be sent: the collector has answered to this session.
    pub(crate) fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// Since when an answer is expected and has not arrived; none while none is expected.
    pub(crate) fn unanswered_since(&self) -> Option<Instant> {
        self.unanswered_since
    }

    /// Records to be sent now; none if there are none.
    pub(crate) fn pending(
        &mut self,
        spool: &SharedSpool,
        now: Instant,
    ) -> Result<Vec<Record>, Error> {
        let since = |at: Instant| now.saturating_duration_since(at);
        if !self.is_answered {
            let is_due = self.inquired_at.is_none_or(|at| since(at) >= GREETING_INTERVAL);
            return Ok(if is_due { self.inquiry(now) } else { Vec::new() });
        }
        let room = WINDOW_BATCHES.saturating_sub(self.unsettled.len());
        let has_room = self.unsettled_bytes < WINDOW_BYTES && room > 0;
        let held =
            if has_room { spool.read(self.name, self.sent, READ_BYTES)? } else { Vec::new() };
        let mut records = Vec::new();
        for held in held.into_iter().take(room) {
            self.push(held, &mut records);
        }
        if self.sent > self.up_to {
            self.unanswered_since.get_or_insert(now);
        }
        let is_silent = |at: Option<Instant>| at.is_some_and(|at| since(at) >= SILENCE);
        let has_inquired = self.inquired_at.is_some_and(|at| since(at) < SILENCE);
        if is_silent(self.unanswered_since) && !has_inquired {
            records.extend(self.inquiry(now));
        }
        Ok(records)
    }

    /// Adds the records of a batch.
    fn push(&mut self, held: Held, records: &mut Vec<Record>) {
        let mut add = |what| records.push(Record { what: Some(what), ..self.head.clone() });
        let (last, bytes) = match held {
            Held::Batch(number, batch) => {
                let bytes = batch.body.len();
                let count = bytes.div_ceil(PART_BYTES);
                if count == 0 {
                    add(What::Part(Part { number, begin: 0, more: false, body: Vec::new() }));
                }
                for (nth, body) in batch.body.chunks(PART_BYTES).enumerate() {
                    let (begin, body) = ((nth * PART_BYTES) as u64, body.to_vec());
                    add(What::Part(Part { number, begin, more: nth + 1 < count, body }));
                }
                (number, bytes)
            }
            Held::Dropped(dropped) => {
                let (first, last) = (*dropped.sequences.start(), *dropped.sequences.end());
                let (until, packets) = (*dropped.times.end(), dropped.items);
                add(What::Dropped(Dropped { first, last, until, packets }));
                (last, size_of::<Dropped>())
            }
        };
        self.sent = last;
        self.unsettled.push_back((last, bytes));
        self.unsettled_bytes = self.unsettled_bytes.saturating_add(bytes);
    }

    fn inquiry(&mut self, now: Instant) -> Vec<Record> {
        self.inquired_at = Some(now);
        let what = Some(What::Inquiry(Inquiry { sent: self.sent }));
        vec![Record { what, ..self.head.clone() }]
    }

    /// Receives an answer for this channel.
    pub(crate) fn receive(
        &mut self,
        spool: &SharedSpool,
        answer: &Answer,
        now: Instant,
    ) -> Result<Reaction, Error> {
        // Of a collector from which the task has moved.
        let is_former = |it: u64| self.head.epoch.is_some_and(|own| own != it);
        if answer.session < self.head.session || answer.epoch.is_some_and(is_former) {
            return Ok(Reaction::Continue);
        }
        let is_own = answer.session == self.head.session && answer.spool == self.head.spool;
        if !is_own || answer.restart {
            return Ok(Reaction::Restart(answer.session));
        }
        if answer.up_to > self.up_to {
            if !spool.acknowledge(self.name, answer.up_to, answer.settled_until)? {
                warn!("task {}: {RESTORED}", self.name.task);
                return Ok(Reaction::Restart(answer.session));
            }
            self.up_to = answer.up_to;
            while let Some((_, bytes)) = self.unsettled.pop_front_if(|(it, _)| *it <= answer.up_to)
            {
                self.unsettled_bytes = self.unsettled_bytes.saturating_sub(bytes);
            }
        }
        if !self.is_answered {
            self.is_answered = true;
            self.sent = answer.next.saturating_sub(1);
        } else if answer.resend_from.is_some_and(|from| from <= self.up_to) {
            // The collector has lost its results: the spool does not have these batches any more.
            return Ok(Reaction::Restart(answer.session));
        } else if let Some(from) = answer.resend_from.filter(|from| *from <= self.sent) {
            self.sent = from.saturating_sub(1);
            while let Some((_, bytes)) = self.unsettled.pop_back_if(|(it, _)| *it >= from) {
                self.unsettled_bytes = self.unsettled_bytes.saturating_sub(bytes);
            }
        }
        self.sent = self.sent.max(self.up_to);
        self.unanswered_since = (self.sent > self.up_to).then_some(now);
        Ok(Reaction::Continue)
    }
}
