//! The packets of an interface, or of an end of a test, go to the points that look there.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tracing::warn;
use wirestamp_capture::{CaptureLoss, CapturedPacket, Error, Filter, Sink};
use wirestamp_clock::{Span, Time, Utc};

use super::ChannelName;
use super::look::{Look, Passing, Purpose};
use super::machine::Machine;
use crate::spool::Batch;

/// What a point looks at.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sight {
    /// In pcap syntax.
    pub(super) filter: Option<String>,
    pub(super) purpose: Purpose,
}

/// What a tap is told while it runs.
pub(super) enum Command {
    /// Somebody looks, at what passes a filter.
    Look(ChannelName, Option<Filter>, Purpose),
    /// Nobody looks any more.
    LookAway(ChannelName),
}

/// Batches on their way to the spool.
pub(super) type Batches = Vec<(ChannelName, Batch)>;

/// Until when points have told that nobody looks: they do not begin again before.
pub(super) type Closed = Arc<Mutex<BTreeMap<ChannelName, Time<Utc>>>>;

/// A time that lies so far ahead was told by a clock that has been set back since.
const FAR_AHEAD: Span = Span::from_secs(60);

/// The points that look at an interface, or at an end of a test.
pub(super) struct Tap {
    commands: Receiver<Command>,
    batches: SyncSender<Batches>,
    machine: Machine,
    looking: BTreeMap<ChannelName, Looking>,
    closed: Closed,
    /// The latest stamp so far.
    newest: Time<Utc>,
    complete_until: Time<Utc>,
    /// It has said that the clock was set back.
    is_silent: bool,
}

/// Somebody who looks at what passes a filter.
struct Looking {
    filter: Option<Filter>,
    look: Box<dyn Look>,
}

impl Tap {
    pub(super) fn new(
        commands: Receiver<Command>,
        batches: SyncSender<Batches>,
        machine: Machine,
        closed: Closed,
    ) -> Self {
        let beginning = Time::from_nanos(i64::MIN);
        Self {
            commands,
            batches,
            machine,
            looking: BTreeMap::new(),
            closed,
            newest: beginning,
            complete_until: beginning,
            is_silent: false,
        }
    }

    /// Until when everything was handed over. That never goes back, and who looks is not told before it goes on.
    fn advance(&mut self, until: Time<Utc>) -> Time<Utc> {
        let is_silent = self.complete_until - until > FAR_AHEAD;
        if is_silent && !self.is_silent {
            let end = shown(self.complete_until);
            warn!("a clock was set back: no delay is observed before {end}, and counts come late");
        }
        self.is_silent = is_silent;
        self.complete_until = until.max(self.complete_until);
        self.complete_until
    }

    /// Has a packet looked at by all whose filters it passes.
    pub(super) fn pass(&mut self, packet: &Passing<'_>) {
        self.newest = self.newest.max(packet.stamp.utc);
        for Looking { filter, look } in self.looking.values_mut() {
            if filter.as_ref().is_none_or(|filter| filter.passes(packet.frame)) {
                look.packet(packet);
            }
        }
    }

    /// Does what it is told, all of what came before a time having been handed over.
    fn obey(&mut self, until: Time<Utc>, made: &mut Batches) {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Look(name, filter, purpose) => {
                    // Some packets behind that time may have been handed over, none behind the newest.
                    let begin = until.max(self.newest + Span::from_nanos(1));
                    let begin = self.closed().get(&name).map_or(begin, |end| begin.max(*end));
                    if begin - until > FAR_AHEAD {
                        let (task, begin) = (name.task, shown(begin));
                        warn!(
                            "a clock was set back: nothing is seen for task {task} before {begin}"
                        );
                    }
                    self.looking.insert(name, Looking { filter, look: purpose.begin(begin) });
                }
                Command::LookAway(name) => self.close(name, until, made),
            }
        }
    }

    fn close(&mut self, name: ChannelName, until: Time<Utc>, made: &mut Batches) {
        if let Some(Looking { look, .. }) = self.looking.remove(&name) {
            let (batches, end) = look.close(until, self.machine.clock());
            made.extend(batches.into_iter().map(|batch| (name, batch)));
            self.closed().insert(name, end);
        }
    }

    fn closed(&self) -> MutexGuard<'_, BTreeMap<ChannelName, Time<Utc>>> {
        self.closed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room, if there is none: what the kernel has no room for meanwhile, it counts.
    fn pass_on(&self, made: Batches) {
        if !made.is_empty() {
            // Nobody wants it any more only if the probe is at its end.
            drop(self.batches.send(made));
        }
    }
}

fn shown(time: Time<Utc>) -> Timestamp {
    // All that a number of nanoseconds can say is within its range.
    Timestamp::from_nanosecond(time.as_nanos().into()).unwrap_or(Timestamp::MAX)
}

impl Sink for Tap {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        self.pass(&Passing::new(packet));
        Ok(())
    }

    fn missed(&mut self, missed: &CaptureLoss) -> Result<(), Error> {
        self.looking.values_mut().for_each(|it| it.look.missed(*missed));
        Ok(())
    }

    fn complete(&mut self, until: Time<Utc>) -> Result<(), Error> {
        let (until, mut made) = (self.advance(until), Vec::new());
        self.obey(until, &mut made);
        let clock = self.machine.clock();
        for (name, Looking { look, .. }) in &mut self.looking {
            made.extend(look.batches(until, clock).into_iter().map(|batch| (*name, batch)));
        }
        self.pass_on(made);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        let (until, mut made) = (self.complete_until, Batches::new());
        // Who was told to look away says so.
        self.obey(until, &mut made);
        let clock = self.machine.clock();
        for (name, Looking { look, .. }) in std::mem::take(&mut self.looking) {
            let batches = look.end(until, clock);
            made.extend(batches.into_iter().map(|batch| (name, batch)));
        }
        // Another tap may take the place of this one.
        for (name, batch) in &made {
            let told_until = Time::from_nanos(*batch.times.end());
            let mut closed = self.closed();
            let closed = closed.entry(*name).or_insert(told_until);
            *closed = told_until.max(*closed);
        }
        self.pass_on(made);
        Ok(())
    }
}
