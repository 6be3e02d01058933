//! State of a point whose batches come through Kafka.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use crate::Name;
use crate::collector::{Channel, Refused};
use crate::kafka::v1::{Answer, Part};

/// Max bytes of a batch in parts.
const MAX_BATCH_BYTES: usize = 64 << 20;

/// A session of a point.
pub(super) struct Incoming {
    pub(super) probe: Name,
    /// Epoch of the task's placement.
    pub(super) epoch: u64,
    pub(super) session: u64,
    pub(super) spool: i64,
    /// None after another delivery replaced this one, or results could not be stored: then the probe must begin a new
    /// session.
    channel: Option<Channel>,
    /// Number of the next batch that is needed.
    pub(super) next: u64,
    /// The last acknowledged batch, and the time before which all results are stored.
    up_to: u64,
    settled_until: Option<i64>,
    /// The parts of the next batch that have arrived, and the offset of the first one.
    parts: Option<(u64, Vec<u8>, i64)>,
    /// Batches that wait until the other point of the task catches up.
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    /// Batches waited for too long and were discarded: they are requested again when the other point has caught up.
    is_deferred: bool,
    /// Last number and offset of the batches that are not acknowledged.
    offsets: VecDeque<(u64, i64)>,
    /// The batch that was requested again.
    requested: Option<u64>,
    /// Whether an answer is due, and from which batch on it requests batches again.
    is_due: bool,
    resend_from: Option<u64>,
}

/// A batch, or dropped batches.
pub(super) struct Waiting {
    pub(super) numbers: RangeInclusive<u64>,
    pub(super) what: Content,
    pub(super) offset: i64,
}

pub(super) enum Content {
    Batch(Vec<u8>),
    Dropped { until: i64, packets: u64 },
}

impl Waiting {
    fn bytes(&self) -> usize {
        let body = match &self.what {
            Content::Batch(body) => body.len(),
            Content::Dropped { .. } => 0,
        };
        body + size_of::<Self>()
    }
}

/// Outcome of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accepted {
    Taken,
    Duplicate,
    Gap,
}

impl Incoming {
    pub(super) fn new(
        probe: Name,
        session: u64,
        spool: i64,
        channel: Channel,
    ) -> Result<Self, Refused> {
        let (up_to, settled_until) = channel.settled()?;
        Ok(Self {
            probe,
            epoch: channel.epoch(),
            session,
            spool,
            channel: Some(channel),
            next: up_to.saturating_add(1),
            up_to,
            settled_until,
            parts: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            is_deferred: false,
            offsets: VecDeque::new(),
            requested: None,
            is_due: true,
            resend_from: None,
        })
    }

    /// Whether the session continues.
    pub(super) fn is_open(&self) -> bool {
        self.channel.is_some()
    }

    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// The probe requests an answer, and has sent everything up to a number.
    pub(super) fn inquire(&mut self, sent: u64) {
        self.is_due = true;
        if self.is_open() && !self.is_deferred && sent >= self.next {
            self.request();
        }
    }

    /// Adds a part of a batch. Returns the whole batch after its last part; no batch and false if an earlier part is missing.
    pub(super) fn assemble(&mut self, part: Part, offset: i64) -> (Option<Waiting>, bool) {
        let Part { number, begin, more, body } = part;
        let parts = self.parts.take();
        let (mut whole, first) = match parts {
            _ if begin == 0 => (Vec::new(), offset),
            Some((of, whole, first)) if of == number && whole.len() as u64 == begin => {
                (whole, first)
            }
            _ => return (None, false),
        };
        if whole.len().saturating_add(body.len()) > MAX_BATCH_BYTES {
            return (None, false);
        }
        if whole.is_empty() {
            whole = body;
        } else {
            whole.extend_from_slice(&body);
        }
        if more {
            self.parts = Some((number, whole, first));
            return (None, true);
        }
        let what = Content::Batch(whole);
        (Some(Waiting { numbers: number..=number, what, offset: first }), true)
    }

    /// Accepts a batch if it is the next one; then it waits for [`Self::advance`].
    pub(super) fn accept(&mut self, batch: Waiting) -> Accepted {
        if *batch.numbers.end() < self.next {
            return Accepted::Duplicate;
        }
        if *batch.numbers.start() > self.next {
            self.gap();
            return Accepted::Gap;
        }
        if self.is_deferred {
            return Accepted::Gap;
        }
        self.next = batch.numbers.end().saturating_add(1);
        self.requested = None;
        self.offsets.push_back((*batch.numbers.end(), batch.offset));
        self.waiting_bytes = self.waiting_bytes.saturating_add(batch.bytes());
        self.waiting.push_back(batch);
        Accepted::Taken
    }

    /// The next batch is missing. It is requested once.
    pub(super) fn gap(&mut self) {
        if !self.is_deferred && self.requested != Some(self.next) {
            self.request();
        }
    }

    fn request(&mut self) {
        self.requested = Some(self.next);
        self.resend_from = Some(self.next);
        self.is_due = true;
    }

    /// Discards the waiting batches: they are requested again when the other point has caught up.
    pub(super) fn defer(&mut self) -> u64 {
        let Some(first) = self.waiting.front().map(|it| *it.numbers.start()) else { return 0 };
        let count = self.waiting.len() as u64;
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.parts = None;
        self.offsets.retain(|(number, _)| *number < first);
        (self.next, self.is_deferred) = (first, true);
        count
    }

    /// Passes waiting batches to the collector, unless the point is ahead of the other one. Returns whether there were
    /// any.
    pub(super) fn advance(&mut self) -> bool {
        match self.pass_on() {
            Ok(has_passed) => has_passed,
            Err(error) => {
                if !matches!(error, Refused::Superseded(_) | Refused::Moved(_)) {
                    tracing::warn!("a session of the deliveries through Kafka ends: {error}");
                }
                self.end();
                false
            }
        }
    }

    fn pass_on(&mut self) -> Result<bool, Refused> {
        let Some(channel) = &self.channel else { return Ok(false) };
        let mut has_passed = false;
        while !channel.is_ahead()? {
            let Some(batch) = self.waiting.pop_front() else { break };
            self.waiting_bytes = self.waiting_bytes.saturating_sub(batch.bytes());
            match batch.what {
                Content::Batch(body) => channel.take(*batch.numbers.start(), &body)?,
                Content::Dropped { until, packets } => {
                    channel.give_up(&batch.numbers, until, packets)?;
                }
            }
            has_passed = true;
        }
        let is_ahead = channel.is_ahead()?;
        let (up_to, settled_until) = channel.settled()?;
        if up_to > self.up_to {
            (self.up_to, self.settled_until, self.is_due) = (up_to, settled_until, true);
            while self.offsets.pop_front_if(|(number, _)| *number <= up_to).is_some() {}
        }
        if self.is_deferred && !is_ahead {
            self.is_deferred = false;
            self.request();
        }
        Ok(has_passed)
    }

    /// Ends the session: unacknowledged batches must be sent again in a new one.
    fn end(&mut self) {
        (self.channel, self.is_due) = (None, true);
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.parts = None;
        self.offsets.clear();
    }

    /// The answer to the probe, if one is due.
    pub(super) fn answer(&mut self, (task, point): (u64, u32), at: i64) -> Option<Answer> {
        let resend_from = self.resend_from.take();
        std::mem::take(&mut self.is_due).then(|| Answer {
            task,
            point,
            spool: self.spool,
            session: self.session,
            up_to: self.up_to,
            next: self.next,
            resend_from,
            restart: self.channel.is_none(),
            at,
            settled_until: self.settled_until,
            epoch: Some(self.epoch),
        })
    }

    /// An answer is due again: the last one could not be sent.
    pub(super) fn answer_again(&mut self) {
        (self.is_due, self.requested) = (true, None);
    }

    /// The lowest offset whose record is needed again after a restart; none if all are acknowledged.
    pub(super) fn needed(&self) -> Option<i64> {
        let parts = self.parts.as_ref().map(|(_, _, offset)| *offset);
        self.offsets.iter().map(|(_, offset)| *offset).chain(parts).min()
    }
}
