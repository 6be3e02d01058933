//! Windows of results.

use std::collections::BTreeMap;

use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{Outcome, Quality};

use super::{NotSynchronised, ReturnPath};

/// Outcomes of the packets that passed A in a window, and of those that only B observed.
#[derive(Clone, Debug)]
pub struct Window {
    /// Delay, loss and other metrics, by the clocks as they were.
    pub quality: Quality,
    /// Max offset between the clocks of the two machines.
    pub offset: Result<Span, NotSynchronised>,
    /// Min upper bound of a delay, from the stamps of both ends; none without delays.
    pub(crate) least: Option<Span>,
    /// Answers of an active test; none if the sender does not report them.
    pub(crate) return_path: Option<ReturnPath>,
}

impl Window {
    /// Max error of the delays: stamp errors plus clock offset.
    ///
    /// # Errors
    /// When the clocks are not synchronised; then only delay differences are valid.
    pub fn error(&self) -> Result<Span, NotSynchronised> {
        let of_stamps = self.quality.clock_error().map_or(Span::ZERO, |error| error.max);
        Ok(of_stamps + self.offset?)
    }

    /// Whether a negative delay contradicts the stated clock errors.
    #[must_use]
    pub fn contradicts_the_clocks(&self) -> bool {
        let offset = self.offset.ok();
        offset.zip(self.least).is_some_and(|(offset, least)| least + offset < Span::ZERO)
    }
}

/// Open windows by begin.
pub(super) struct Windows {
    length: Span,
    open: BTreeMap<Time<Utc>, Open>,
    /// Everything before this time was settled before a restart.
    begun_at: Time<Utc>,
    settled_until: Time<Utc>,
    late: u64,
}

/// An open window: its metrics, and the min upper bound of its delays.
type Open = (Quality, Option<Span>);

impl Windows {
    pub(super) fn new(length: Span, settled_until: Time<Utc>) -> Self {
        let length = length.max(Span::from_nanos(1));
        let mut windows =
            Self { length, open: BTreeMap::new(), begun_at: settled_until, settled_until, late: 0 };
        // The window length may have changed: no window begins in settled time.
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

    /// Begin of the window that contains a time.
    pub(super) fn begin(&self, time: Time<Utc>) -> Time<Utc> {
        time.interval_begin(self.length)
    }

    /// Records an outcome, unless its window is settled.
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

    /// Returns and resets the number of outcomes that were too late for their windows.
    pub(super) fn take_late(&mut self) -> u64 {
        std::mem::take(&mut self.late)
    }

    /// Closes the windows that begin before `until`.
    pub(super) fn settle(&mut self, until: Time<Utc>) -> BTreeMap<Time<Utc>, Open> {
        self.settled_until = until;
        let open = self.open.split_off(&until);
        std::mem::replace(&mut self.open, open)
    }
}

/// Time of a packet: at A, if it was observed there.
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
