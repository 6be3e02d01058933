//! Distributes the packets of an interface or test end to its observers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};

use jiff::Timestamp;
use parking_lot::Mutex;
use tracing::warn;
use wirestamp_capture::{CaptureLoss, CapturedPacket, Error, Filter, Sink};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::{LinkType, Shard};

use super::ChannelName;
use super::answer_log::AnswerEvent;
use super::machine::Machine;
use super::observer::{ObservedPacket, Observer};
use super::purpose::Purpose;
use crate::spool::Batch;

/// Packets and purpose of an observer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ObservationSpec {
    /// In pcap syntax.
    pub(super) filter: Option<String>,
    /// None for the packets of all flows.
    pub(super) shard: Option<Shard>,
    pub(super) purpose: Purpose,
}

/// Commands to a running tap.
pub(super) enum Command {
    /// Attaches an observer of the packets that a filter passes, of a shard or of all flows.
    Attach(ChannelName, Option<Filter>, Option<Shard>, Purpose),
    /// Detaches an observer.
    Detach(ChannelName),
}

/// Batches on their way to the spool.
pub(super) type Batches = Vec<(ChannelName, Batch)>;

/// For each point, the time up to which it was reported as not observed. It does not begin again before.
pub(super) type Closed = Arc<Mutex<BTreeMap<ChannelName, Time<Utc>>>>;

/// A time further ahead than this comes from a clock that was set back since.
const MAX_CLOCK_STEP: Span = Span::from_secs(60);

/// A tap with many observers collects their batches less often: each then makes few larger batches instead of many small
/// ones. Min time between two collections, for each observer.
const PACE_PER_OBSERVER: i64 = 2_000_000;

/// Times that batches cover with few observers, of points of a delay and of counts. The time between two collections is a part
/// of the first, or of the second. It is at most the second, because results must not be late.
const COVERED: [i64; 2] = [200_000_000, 1_000_000_000];

/// The observers of an interface or test end.
pub(super) struct Tap {
    commands: Receiver<Command>,
    batches: SyncSender<Batches>,
    /// How frames begin.
    link: LinkType,
    machine: Machine,
    observers: BTreeMap<ChannelName, ActiveObserver>,
    closed: Closed,
    /// Latest stamp so far.
    newest: Time<Utc>,
    complete_until: Time<Utc>,
    /// End of the time for which batches were collected.
    collected_until: Time<Utc>,
    /// The clock was set back, and this was logged.
    is_set_back: bool,
}

/// An observer and its packets.
struct ActiveObserver {
    filter: Option<Filter>,
    shard: Option<Shard>,
    observer: Box<dyn Observer>,
}

impl Tap {
    pub(super) fn new(
        link: LinkType,
        commands: Receiver<Command>,
        batches: SyncSender<Batches>,
        machine: Machine,
        closed: Closed,
    ) -> Self {
        let beginning = Time::from_nanos(i64::MIN);
        Self {
            commands,
            batches,
            link,
            machine,
            observers: BTreeMap::new(),
            closed,
            newest: beginning,
            complete_until: beginning,
            collected_until: beginning,
            is_set_back: false,
        }
    }

    /// Updates the time up to which all packets were processed. It never goes back.
    fn advance(&mut self, until: Time<Utc>) -> Time<Utc> {
        let is_set_back = self.complete_until - until > MAX_CLOCK_STEP;
        if is_set_back && !self.is_set_back {
            let end = shown(self.complete_until);
            warn!("a clock was set back: no delay is measured before {end}, and counts are late");
        }
        self.is_set_back = is_set_back;
        self.complete_until = until.max(self.complete_until);
        self.complete_until
    }

    /// Sends a packet to all observers whose filters it passes.
    pub(super) fn pass(&mut self, packet: &ObservedPacket<'_>) {
        self.newest = self.newest.max(packet.stamp.utc);
        for ActiveObserver { filter, shard, observer } in self.observers.values_mut() {
            let is_of_it = |it: Shard| packet.shard_hash().is_some_and(|hash| it.has(hash));
            if shard.is_none_or(is_of_it)
                && filter.as_ref().is_none_or(|filter| filter.passes(packet.frame, packet.length))
            {
                observer.packet(packet);
            }
        }
    }

    /// Sends news of the answers of an active test to all observers.
    pub(super) fn answers(&mut self, event: AnswerEvent) {
        self.observers.values_mut().for_each(|it| it.observer.answers(event));
    }

    /// Executes commands, when all packets before `until` were processed.
    fn execute(&mut self, until: Time<Utc>, made: &mut Batches) {
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Attach(name, filter, shard, purpose) => {
                    // Packets after `until` may have been processed, but none after `newest`.
                    let begin = until.max(self.newest + Span::from_nanos(1));
                    let begin = self.closed.lock().get(&name).map_or(begin, |end| begin.max(*end));
                    if begin - until > MAX_CLOCK_STEP {
                        let (task, begin) = (name.task, shown(begin));
                        warn!("a clock was set back: task {task} is not observed before {begin}");
                    }
                    let observer = purpose.begin(begin);
                    self.observers.insert(name, ActiveObserver { filter, shard, observer });
                }
                Command::Detach(name) => self.close(name, until, made),
            }
        }
    }

    fn close(&mut self, name: ChannelName, until: Time<Utc>, made: &mut Batches) {
        if let Some(ActiveObserver { observer, .. }) = self.observers.remove(&name) {
            let (batches, end) = observer.close(until, self.machine.clock());
            made.extend(batches.into_iter().map(|batch| (name, batch)));
            self.closed.lock().insert(name, end);
        }
    }

    /// Whether batches are collected now. While a clock that was set back has not caught up, observers are always asked: counts
    /// are sent then, too.
    fn is_due(&self, until: Time<Utc>) -> bool {
        self.is_set_back || until - self.collected_until >= self.pace()
    }

    /// Time between two collections of batches.
    fn pace(&self) -> Span {
        let observers = i64::try_from(self.observers.len()).unwrap_or(i64::MAX);
        let least = PACE_PER_OBSERVER.saturating_mul(observers.max(1));
        let [short, long] = COVERED;
        let covered = if least <= short { short } else { long };
        Span::from_nanos(covered / (covered / least).max(1))
    }

    /// Waits if the queue is full. The kernel counts packets that it drops meanwhile.
    fn send(&self, made: Batches) {
        if !made.is_empty() {
            // The receiver is gone only when the probe ends.
            drop(self.batches.send(made));
        }
    }
}

fn shown(time: Time<Utc>) -> Timestamp {
    // Every i64 of nanoseconds is in range.
    Timestamp::from_nanosecond(time.as_nanos().into()).unwrap_or(Timestamp::MAX)
}

impl Sink for Tap {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        self.pass(&ObservedPacket::new(packet, self.link));
        Ok(())
    }

    fn missed(&mut self, missed: &CaptureLoss) -> Result<(), Error> {
        self.observers.values_mut().for_each(|it| it.observer.missed(*missed));
        Ok(())
    }

    fn complete(&mut self, until: Time<Utc>) -> Result<(), Error> {
        let (until, mut made) = (self.advance(until), Vec::new());
        self.execute(until, &mut made);
        if self.is_due(until) {
            self.collected_until = until;
            let clock = self.machine.clock();
            for (name, ActiveObserver { observer, .. }) in &mut self.observers {
                made.extend(observer.batches(until, clock).into_iter().map(|batch| (*name, batch)));
            }
        }
        self.send(made);
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        let (until, mut made) = (self.complete_until, Batches::new());
        // Detached observers report their end.
        self.execute(until, &mut made);
        let clock = self.machine.clock();
        for (name, ActiveObserver { observer, .. }) in std::mem::take(&mut self.observers) {
            let batches = observer.end(until, clock);
            made.extend(batches.into_iter().map(|batch| (name, batch)));
        }
        // Another tap may replace this one.
        for (name, batch) in &made {
            let reported_until = Time::from_nanos(*batch.times.end());
            let mut closed = self.closed.lock();
            let closed = closed.entry(*name).or_insert(reported_until);
            *closed = reported_until.max(*closed);
        }
        self.send(made);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use wirestamp_clock::{Domain, RawStamp, Stamp};
    use wirestamp_metrics::Sampling;

    use super::*;

    /// A tap with this number of observers, and where their batches arrive.
    fn tap(observers: u64, purpose: &Purpose) -> (Tap, Receiver<Batches>) {
        let (attach, commands) = mpsc::channel();
        let (sender, made) = mpsc::sync_channel(10_000);
        for task in 1..=observers {
            let name = ChannelName { task, point: 0 };
            attach.send(Command::Attach(name, None, None, purpose.clone())).unwrap();
        }
        let machine = Machine::new().unwrap();
        let tap = Tap::new(LinkType::Ethernet, commands, sender, machine, Closed::default());
        (tap, made)
    }

    /// Batches of `observers` in two seconds, and the longest time that one covers.
    fn batches(observers: u64) -> (usize, Span) {
        let (mut tap, made) = tap(observers, &Purpose::Observe(Sampling::share(1.0).unwrap()));
        for millis in (0..=2000).step_by(10) {
            tap.complete(Time::from_nanos(millis * 1_000_000)).unwrap();
        }
        drop(tap);
        let all: Vec<_> = made.iter().flatten().collect();
        let covered = |batch: &Batch| Span::from_nanos(batch.times.end() - batch.times.start());
        (all.len(), all.iter().map(|(_, batch)| covered(batch)).max().unwrap())
    }

    #[test]
    fn many_observers_make_fewer_batches_that_cover_more_time() {
        assert_eq!(batches(1), (10, Span::from_millis(200)));
        assert_eq!(batches(75), (75 * 10, Span::from_millis(200)));
        assert_eq!(batches(200), (200 * 4, Span::from_millis(500)));
        assert_eq!(batches(2000), (2000 * 2, Span::from_secs(1)));
    }

    #[test]
    fn counts_are_sent_after_the_clock_is_set_back() {
        let (mut tap, made) = tap(1, &Purpose::Count(Span::from_secs(1)));
        let at = |second: i64| Time::from_nanos(second * 1_000_000_000);
        tap.complete(at(10_000)).unwrap();
        for second in 6400..6500 {
            let raw = RawStamp { domain: Domain::Realtime, value: 0 };
            // Packets before the start of the task are not counted.
            let stamp = Stamp { raw, utc: at(second + 10_000), error: Span::ZERO };
            let packet = CapturedPacket { stamp, kernel: None, bytes: &[0; 60], length: 60 };
            tap.packet(&packet).unwrap();
            tap.complete(at(second)).unwrap();
        }
        drop(tap);
        let counted: u64 = made.iter().flatten().map(|(_, batch)| batch.items).sum();
        assert!((61..100).contains(&counted), "{counted}");
    }
}
