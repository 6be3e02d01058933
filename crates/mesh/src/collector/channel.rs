//! What points deliver, on its way to results.

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use thiserror::Error;
use tokio::sync::watch;
use tracing::{info, warn};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{Config, Point};
use wirestamp_protocol::Seen;

use super::{Delivered, Delivery, Measured, Pair, Results, Timing, side};
use crate::task::{Measure, PassiveDelay, Tasks};
use crate::{DatabaseError, Name};

/// Results are of seconds.
fn timing() -> Timing {
    Timing { window: Span::from_secs(1), matching: Config::default() }
}

/// How far a probe's clock may be ahead: the other point waits until its own has come as far.
const AHEAD: Span = Span::from_secs(3600);
const AHEAD_OF_TIME: &str = "the clock of its probe is more than an hour ahead";

/// Takes what points have seen, and keeps what comes of it.
pub struct Collector {
    results: Mutex<Results>,
    tasks: watch::Receiver<Arc<Tasks>>,
    ongoing: Mutex<HashMap<u64, Arc<Ongoing>>>,
    /// Told of all that is stored.
    stored: watch::Sender<()>,
}

/// Why something is not taken.
#[derive(Debug, Error)]
pub enum Refused {
    /// There is no such task.
    #[error("there is no task {0}")]
    NoSuchTask(u64),
    /// The probe has no part in it.
    #[error("task {task} has no point {point} at {probe}")]
    NotYours {
        /// The task.
        task: Name,
        /// Which of its points was meant.
        point: u32,
        /// Who wanted to deliver.
        probe: Name,
    },
    /// Another call delivers the same from a newer spool, or what was delivered could not be kept.
    #[error("task {0} goes on without this call: begin another")]
    Superseded(u64),
    /// A batch was left out.
    #[error("batch {0} comes next")]
    OutOfTurn(u64),
    /// Results cannot be kept.
    #[error("results cannot be kept: {0}")]
    Results(#[from] DatabaseError),
}

/// A task that is measured.
struct Ongoing {
    task: u64,
    name: Name,
    state: Mutex<State>,
    /// Told of every change of the state.
    changed: watch::Sender<()>,
}

struct State {
    pair: Pair,
    spools: [Option<i64>; 2],
    acknowledged: [u64; 2],
    /// It has come farther than what is stored, and nobody may go on from here.
    is_lost: bool,
}

/// What one point of a task delivers.
pub struct Channel {
    collector: Arc<Collector>,
    ongoing: Arc<Ongoing>,
    point: Point,
    spool: i64,
    changed: watch::Receiver<()>,
}

impl Collector {
    /// A collector that keeps its results here, and takes what belongs to these tasks.
    #[must_use]
    pub fn new(results: Results, tasks: watch::Receiver<Arc<Tasks>>) -> Self {
        let (results, ongoing) = (Mutex::new(results), Mutex::default());
        Self { results, tasks, ongoing, stored: watch::Sender::default() }
    }

    /// Tells whenever there are new results.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.stored.subscribe()
    }

    /// What was measured by a task: see [`Results::measured`].
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn measured(
        &self,
        task: u64,
        from: i64,
        until: i64,
        most: u32,
    ) -> Result<Vec<Measured>, DatabaseError> {
        self.results().measured(task, from, until, most)
    }

    /// Begins to take what a probe delivers of a point of a task, from one of its spools, which holds nothing
    /// before the batch of a number.
    ///
    /// # Errors
    /// When the probe has no part in that, or the results cannot be read or written.
    pub fn open(
        self: &Arc<Self>,
        probe: &Name,
        (task, point): (u64, u32),
        (spool, first): (i64, u64),
    ) -> Result<Channel, Refused> {
        let (name, point) = self.part(probe, task, point)?;
        let (here, behind) = (side(point), first.saturating_sub(1));
        let ongoing = loop {
            let ongoing = self.ongoing(task, &name)?;
            let mut state = lock(&ongoing.state);
            if state.is_lost {
                continue;
            }
            let before = state.spools[here];
            if before == Some(spool) && state.acknowledged[here] >= behind {
                drop(state);
                break ongoing;
            }
            info!("{probe} delivers to task {name} from batch {first} of a spool on");
            self.results().begin_spool(task, point, spool, behind)?;
            // What came of another spool and is not settled goes with it: some of it may come again.
            state.is_lost = before.is_some();
            state.spools[here] = Some(spool);
            state.acknowledged[here] = behind;
            state.pair.number_anew(point, behind);
            drop(state);
            ongoing.changed.send_replace(());
        };
        let changed = ongoing.changed.subscribe();
        Ok(Channel { collector: Arc::clone(self), ongoing, point, spool, changed })
    }

    /// The task's name, and which of its points is meant, if that is a probe's.
    fn part(&self, probe: &Name, task: u64, point: u32) -> Result<(Name, Point), Refused> {
        let tasks = self.tasks.borrow();
        let task = &tasks.get(&task).ok_or(Refused::NoSuchTask(task))?.task;
        let name = &task.name;
        let found = match (&task.measure, point) {
            (Measure::PassiveDelay(PassiveDelay { from, .. }), 0) => Some((from, Point::A)),
            (Measure::PassiveDelay(PassiveDelay { to, .. }), 1) => Some((to, Point::B)),
            _ => None,
        };
        let found = found.filter(|(of, _)| of.probe == *probe).map(|(_, point)| point);
        let not_yours = || Refused::NotYours { task: name.clone(), point, probe: probe.clone() };
        Ok((name.clone(), found.ok_or_else(not_yours)?))
    }

    fn ongoing(&self, task: u64, name: &Name) -> Result<Arc<Ongoing>, DatabaseError> {
        let mut all = lock(&self.ongoing);
        // One that is lost begins anew from what is stored.
        if let Some(ongoing) = all.get(&task).filter(|it| !lock(&it.state).is_lost) {
            return Ok(Arc::clone(ongoing));
        }
        let progress = self.results().progress(task)?;
        let acknowledged = progress.delivered.map(|it| it.acknowledged);
        let mut pair = Pair::new(timing(), progress.settled_until, acknowledged);
        for point in [Point::A, Point::B] {
            let Delivered { acknowledged, is_unknown, .. } = progress.delivered[side(point)];
            if is_unknown {
                pair.number_anew(point, acknowledged);
            }
        }
        let spools = progress.delivered.map(|it| it.spool);
        let state = Mutex::new(State { pair, spools, acknowledged, is_lost: false });
        let (name, changed) = (name.clone(), watch::Sender::default());
        let ongoing = Arc::new(Ongoing { task, name, state, changed });
        all.insert(task, Arc::clone(&ongoing));
        Ok(ongoing)
    }

    fn results(&self) -> MutexGuard<'_, Results> {
        lock(&self.results)
    }
}

impl Channel {
    /// Up to which batch none is needed again.
    ///
    /// # Errors
    /// When the task goes on without this channel.
    pub fn up_to(&self) -> Result<u64, Refused> {
        Ok(self.state()?.acknowledged[side(self.point)])
    }

    /// Whether batches had better wait until the other point has caught up.
    ///
    /// # Errors
    /// When the task goes on without this channel.
    pub fn is_ahead(&self) -> Result<bool, Refused> {
        Ok(self.state()?.pair.is_ahead(self.point))
    }

    /// Waits until something was delivered to the task, by this point or the other.
    pub async fn changed(&mut self) {
        // What would tell of it is part of this.
        drop(self.changed.changed().await);
    }

    /// Takes a batch. One that makes no sense is left out, and nothing is known of what it told of.
    ///
    /// # Errors
    /// When it is not the next, or results cannot be kept: then what was not acknowledged has to be delivered
    /// again.
    pub fn take(&self, number: u64, message: &[u8]) -> Result<(), Refused> {
        let why = match Seen::decode(message) {
            Ok(seen) if can_be(seen.complete_until) => {
                return self.deliver(|pair, point| pair.take(point, number, &seen));
            }
            Ok(_) => AHEAD_OF_TIME.to_owned(),
            Err(malformed) => malformed.to_string(),
        };
        warn!("task {}: left out batch {number}: {why}", self.ongoing.name);
        self.deliver(|pair, point| pair.leave_out(point, number))
    }

    /// Takes note that batches were given up, which told of so many packets until a time, in nanoseconds since
    /// 1970 (UTC).
    ///
    /// # Errors
    /// As of [`Self::take`].
    pub fn give_up(
        &self,
        numbers: &RangeInclusive<u64>,
        until: i64,
        packets: u64,
    ) -> Result<(), Refused> {
        // Later than any can be, it would keep the other point waiting for ever.
        let until = Time::from_nanos(until).min(latest());
        self.deliver(|pair, point| pair.give_up(point, numbers, until, packets))
    }

    fn deliver(&self, act: impl FnOnce(&mut Pair, Point) -> Delivery) -> Result<(), Refused> {
        let Ongoing { task, name, changed, .. } = &*self.ongoing;
        let mut state = self.state()?;
        // Unless all of it is done, be it because of a panic.
        state.is_lost = true;
        let delivery = act(&mut state.pair, self.point);
        if delivery == Delivery::Taken
            && let Some(settled) = state.pair.settle()
        {
            if let Err(error) = self.collector.results().store(*task, &settled) {
                changed.send_replace(());
                return Err(error.into());
            }
            state.acknowledged = settled.acknowledged;
            self.collector.stored.send_replace(());
            if settled.late > 0 {
                warn!("task {name}: {} packets came too late for their results", settled.late);
            }
        }
        state.is_lost = false;
        drop(state);
        match delivery {
            Delivery::Expected(number) => return Err(Refused::OutOfTurn(number)),
            Delivery::Known => {}
            Delivery::Taken => {
                changed.send_replace(());
            }
        }
        Ok(())
    }

    /// The state of the task, if it goes on with this channel.
    fn state(&self) -> Result<MutexGuard<'_, State>, Refused> {
        let Ongoing { task, state, .. } = &*self.ongoing;
        let state = lock(state);
        let is_newest = state.spools[side(self.point)] == Some(self.spool);
        if is_newest && !state.is_lost { Ok(state) } else { Err(Refused::Superseded(*task)) }
    }
}

/// Whether a point can have told of everything until a time.
fn can_be(complete_until: Time<Utc>) -> bool {
    complete_until <= latest()
}

fn latest() -> Time<Utc> {
    let now = Time::try_from(SystemTime::now()).unwrap_or(Time::from_nanos(0));
    now + AHEAD
}

/// What a thread left behind that panicked is looked at by others only if it was done with it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
