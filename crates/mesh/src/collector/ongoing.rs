//! Processing state of a task, shared by the deliveries of its points.

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::Point;

use super::observed::Unacknowledged;
use super::processor::Processor;
use super::{Progress, side};
use crate::Name;
use crate::task::Task;

/// A task with deliveries.
pub(super) struct Ongoing {
    pub(super) task: u64,
    pub(super) name: Name,
    /// Held by a delivery over gRPC that uses the state. Others wait for it without a thread.
    pub(super) turn: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    /// Published after each change, so that a delivery can read it while another one waits for the disk.
    standing: watch::Sender<Standing>,
}

pub(super) struct State {
    pub(super) processor: Processor,
    /// Batches to be archived when they are acknowledged.
    pub(super) unacknowledged: Unacknowledged,
    /// Everything before this time is stored.
    pub(super) settled_until: Time<Utc>,
    pub(super) spools: [Option<i64>; 2],
    /// Runs of the probes that delivered last; 0 if unknown.
    pub(super) instances: [u64; 2],
    pub(super) acknowledged: [u64; 2],
    /// The state is ahead of the stored results and must be discarded.
    pub(super) is_lost: bool,
}

/// What a delivery needs to know of the state.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) spools: [Option<i64>; 2],
    pub(super) acknowledged: [u64; 2],
    pub(super) settled_until: Time<Utc>,
    /// Whether batches of a point should wait until the other point catches up.
    pub(super) is_ahead: [bool; 2],
    pub(super) is_lost: bool,
}

impl Ongoing {
    /// Continues from the stored progress.
    pub(super) fn new(number: u64, task: &Task, progress: &Progress) -> Self {
        let state = State {
            processor: Processor::new(&task.measure, progress),
            unacknowledged: Unacknowledged::new(&task.measure),
            settled_until: progress.settled_until,
            spools: progress.delivered.map(|it| it.spool),
            instances: [0; 2],
            acknowledged: progress.delivered.map(|it| it.acknowledged),
            is_lost: false,
        };
        let standing = watch::Sender::new(state.standing());
        let (name, turn) = (task.name.clone(), tokio::sync::Mutex::default());
        Self { task: number, name, turn, state: Mutex::new(state), standing }
    }

    /// The state; a caller that changes it publishes the change.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Publishes changes to the deliveries.
    pub(super) fn publish(&self, state: &State) {
        let now = state.standing();
        self.standing.send_if_modified(|standing| std::mem::replace(standing, now) != now);
    }

    /// Discards the state: what is not stored is delivered again.
    pub(super) fn discard(&self) {
        let mut state = self.state();
        state.is_lost = true;
        self.publish(&state);
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }
}

impl State {
    fn standing(&self) -> Standing {
        let Self { spools, acknowledged, settled_until, is_lost, .. } = *self;
        let mut is_ahead = [false; 2];
        for point in [Point::A, Point::B] {
            is_ahead[side(point)] = self.processor.is_ahead(point);
        }
        Standing { spools, acknowledged, settled_until, is_ahead, is_lost }
    }
}
