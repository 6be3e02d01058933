//! Results of a stretch of time.

use std::collections::BTreeMap;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{Outcome, Quality};

use super::NotSynchronised;

/// What became of the packets that passed A in a window, and of those that only B saw in it.
#[derive(Clone, Debug)]
pub struct Window {
    /// Delay, loss and everything else, by the clocks as they were.
    pub quality: Quality,
    /// How far the clocks of the two machines may have been apart.
    pub offset: Result<Span, NotSynchronised>,
    /// The least of what each delay may be at the most, by the stamps of both ends; none without delays.
    pub(crate) least: Option<Span>,
}

impl Window {
    /// How far any of the delays can be off: by the stamps of both ends, and by the clocks of the machines.
    ///
    /// # Errors
    /// When the clocks are not synchronised: then only differences of delays mean something.
    pub fn error(&self) -> Result<Span, NotSynchronised> {
        let of_stamps = self.quality.clock_error().map_or(Span::ZERO, |error| error.max);
        Ok(of_stamps + self.offset?)
    }

    /// Whether a delay is so far below zero that one of the clocks is worse than it says.
    #[must_use]
    pub fn contradicts_the_clocks(&self) -> bool {
        let offset = self.offset.ok();
        offset.zip(self.least).is_some_and(|(offset, least)| least + offset < Span::ZERO)
    }
}

/// Windows that are not settled, by when they begin.
pub(super) struct Windows {
    length: Span,
    open: BTreeMap<Time<Utc>, Open>,
    /// Everything before was settled by somebody who is gone.
    begun_at: Time<Utc>,
    settled_until: Time<Utc>,
    late: u64,
}

/// A window that is not settled: its quality, and the least of what each delay may be at the most.
type Open = (Quality, Option<Span>);

impl Windows {
    pub(super) fn new(length: Span, settled_until: Time<Utc>) -> Self {
        let length = length.max(Span::from_nanos(1));
        let mut windows =
            Self { length, open: BTreeMap::new(), begun_at: settled_until, settled_until, late: 0 };
        // Windows had another length before: none begins in what is settled.
        if windows.begin(settled_until) < settled_until {
            windows.settled_until = windows.begin(settled_until) + length;
        }
        windows
    }

    pub(super) fn length(&self) -> Span {
        self.length
    }

    pub(super) fn settled_until(&self) -> Time<Utc> {
        self.settled_until
    }

    /// When the window of a time begins.
    pub(super) fn begin(&self, time: Time<Utc>) -> Time<Utc> {
        time.interval_begin(self.length)
    }

    /// Adds an outcome, if its window was not settled before.
    pub(super) fn record(&mut self, outcome: &Outcome) {
        let time = time(outcome);
        if time < self.settled_until {
            self.late += u64::from(time >= self.begun_at);
            return;
        }
        let (quality, least) = self.open.entry(self.begin(time)).or_default();
        quality.record(outcome);
        if let Outcome::Matched { delay, error, .. } = outcome {
            let most = *delay + *error;
            *least = Some(least.map_or(most, |least| least.min(most)));
        }
    }

    /// How many outcomes came too late for their windows since this was asked last.
    pub(super) fn take_late(&mut self) -> u64 {
        std::mem::take(&mut self.late)
    }

    /// Settles the windows that begin before a time.
    pub(super) fn settle(&mut self, until: Time<Utc>) -> BTreeMap<Time<Utc>, Open> {
        self.settled_until = until;
        let open = self.open.split_off(&until);
        std::mem::replace(&mut self.open, open)
    }
}

/// When a packet passed: A, if it was seen there.
fn time(outcome: &Outcome) -> Time<Utc> {
    let seen = match outcome {
        Outcome::Matched { sent, .. }
        | Outcome::Lost { sent, .. }
        | Outcome::Duplicated { sent, .. }
        | Outcome::Identical { sent } => sent,
        Outcome::Unexpected { received } => received,
        Outcome::Undetermined { observation, .. } => observation,
    };
    seen.stamp.utc
}
