//! One point of a task that another point is compared with: what it sees becomes batches.

use crate::protocol::{MachineClock, Seen};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Observation, Sampling};

use super::look::{Look, Passing};
use crate::spool::Batch;

/// A batch tells of so much time, or of so many packets.
const INTERVAL: Span = Span::from_millis(200);
const PACKETS: usize = 16_384;

/// How far the time goes on when nobody looks any more: then the collector decides on everything that was seen
/// before, at both points, and needs nothing of it again.
const CLOSING: Span = Span::from_secs(30);

/// How far stamps may go back. If they go farther, somebody has set the clock.
const TOLERANCE: Span = Span::from_millis(100);

/// A point of a task.
pub(super) struct Watch {
    sampling: Sampling,
    /// Since when it looks.
    begin: Time<Utc>,
    seen: Vec<Observation>,
    missed: Vec<CaptureLoss>,
    /// Everything before is in batches.
    told_until: Option<Time<Utc>>,
    /// Packets came that belong to what is told of already.
    is_astray: bool,
}

impl Watch {
    /// A point that looks at a sample from a time on.
    pub(super) fn new(sampling: Sampling, begin: Time<Utc>) -> Self {
        let (seen, missed) = (Vec::new(), Vec::new());
        Self { sampling, begin, seen, missed, told_until: None, is_astray: false }
    }

    /// Takes note of a packet.
    pub(super) fn see(&mut self, observation: &Observation) {
        let time = observation.stamp.utc;
        if self.told_until.is_some_and(|told_until| time < told_until - TOLERANCE) {
            self.is_astray = true;
        } else if time >= self.begin && self.sampling.chooses(observation) {
            self.seen.push(*observation);
        }
    }

    fn take(&mut self, until: Time<Utc>, clock: MachineClock) -> Vec<Batch> {
        let mut from = self.told_until.replace(until).unwrap_or(self.begin);
        let (mut observations, later): (Vec<_>, _) =
            self.seen.drain(..).partition(|it| it.stamp.utc < until);
        self.seen = later;
        // One that reaches farther is told of with the packets behind it.
        let (mut missed, later): (Vec<_>, _) =
            self.missed.drain(..).partition(|it| it.until <= until);
        self.missed = later;
        let mut begin = (from == self.begin).then_some(self.begin);
        if std::mem::take(&mut self.is_astray) {
            // Of which packets passed when, nothing is known.
            (observations, missed, begin) = (Vec::new(), Vec::new(), Some(until));
        }
        let mut batches = Vec::new();
        if observations.len() > PACKETS {
            observations.sort_by_key(|it| it.stamp.utc);
        }
        while observations.len() > PACKETS {
            let rest = observations.split_off(PACKETS);
            let complete_until = rest[0].stamp.utc.max(from);
            let observations = std::mem::replace(&mut observations, rest);
            let begin = begin.take();
            let seen = Seen { observations, missed: Vec::new(), complete_until, begin, clock };
            batches.push(batch(from, &seen));
            from = complete_until;
        }
        let seen = Seen { observations, missed, complete_until: until, begin, clock };
        batches.push(batch(from, &seen));
        batches
    }
}

impl Look for Watch {
    fn packet(&mut self, packet: &Passing<'_>) {
        if let Some(observation) = packet.observation() {
            self.see(observation);
        }
    }

    fn missed(&mut self, missed: CaptureLoss) {
        if missed.until >= self.begin {
            self.missed.push(CaptureLoss { from: missed.from.max(self.begin), ..missed });
        }
    }

    fn batches(&mut self, until: Time<Utc>, clock: MachineClock) -> Vec<Batch> {
        let from = self.told_until.unwrap_or(self.begin);
        let is_due = until - from >= INTERVAL || (self.seen.len() >= PACKETS && until > from);
        if is_due { self.take(until, clock) } else { Vec::new() }
    }

    fn end(mut self: Box<Self>, until: Time<Utc>, clock: MachineClock) -> Vec<Batch> {
        let from = self.told_until.unwrap_or(self.begin);
        if until > from { self.take(until, clock) } else { Vec::new() }
    }

    /// One batch more says that nobody looks.
    fn close(self: Box<Self>, until: Time<Utc>, clock: MachineClock) -> (Vec<Batch>, Time<Utc>) {
        if self.told_until.is_none() && until <= self.begin {
            // It has not begun, and need not say that it ends.
            return (Vec::new(), self.begin);
        }
        let last = self.told_until.unwrap_or(self.begin).max(until);
        let mut batches = self.end(until, clock);
        let end = last + CLOSING;
        batches.push(absence(last, end, clock));
        (batches, end)
    }
}

/// That nobody looks from one time until another.
pub(super) fn absence(from: Time<Utc>, until: Time<Utc>, clock: MachineClock) -> Batch {
    let (observations, missed) = (Vec::new(), Vec::new());
    batch(from, &Seen { observations, missed, complete_until: until, begin: Some(until), clock })
}

fn batch(from: Time<Utc>, seen: &Seen) -> Batch {
    let missed: u64 = seen.missed.iter().map(|it| it.packets).sum();
    Batch {
        items: missed.saturating_add(seen.observations.len() as u64),
        times: from.as_nanos()..=seen.complete_until.as_nanos(),
        body: seen.encode(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use wirestamp_clock::{Domain, RawStamp, Stamp};
    use wirestamp_packet::{FlowKey, PacketId};

    use super::*;

    const CLOCK: MachineClock = MachineClock { machine: [1; 16], error: None };

    fn at(millis: i64) -> Time<Utc> {
        Time::from_nanos(millis * 1_000_000)
    }

    fn observation(millis: i64) -> Observation {
        let end = SocketAddr::from(([192, 0, 2, 1], 5004));
        let raw = RawStamp { domain: Domain::Realtime, value: 0 };
        Observation {
            id: PacketId(millis.unsigned_abs()),
            flow: FlowKey { source: end, destination: end, protocol: 17 },
            length: 100,
            stamp: Stamp { raw, utc: at(millis), error: Span::ZERO },
        }
    }

    fn watch(begin: i64) -> Watch {
        Watch::new(Sampling::share(1.0).unwrap(), at(begin))
    }

    fn look(watch: &mut Watch, millis: impl IntoIterator<Item = i64>) {
        millis.into_iter().for_each(|millis| watch.see(&observation(millis)));
    }

    fn one(batches: Vec<Batch>) -> Batch {
        let [batch] = batches.try_into().unwrap();
        batch
    }

    /// When packets of a batch passed.
    fn passed(batch: &Batch) -> (Vec<i64>, Seen) {
        let seen = Seen::decode(&batch.body).unwrap();
        let times = seen.observations.iter().map(|it| it.stamp.utc.as_nanos() / 1_000_000);
        (times.collect(), seen)
    }

    #[test]
    fn each_packet_is_in_one_batch_and_none_in_one_that_is_complete_before_it() {
        let mut watch = watch(100);
        // The first two passed before it looked.
        look(&mut watch, [98, 99, 100, 250, 349, 350, 351]);
        assert_eq!(watch.batches(at(299), CLOCK), []);
        let first = one(watch.batches(at(350), CLOCK));
        let (times, seen) = passed(&first);
        assert_eq!((times, seen.begin), (vec![100, 250, 349], Some(at(100))));
        assert_eq!((first.items, first.times), (3, 100_000_000..=350_000_000));
        look(&mut watch, [400]);
        let second = one(watch.batches(at(550), CLOCK));
        let (times, seen) = passed(&second);
        assert_eq!((times, seen.begin, seen.complete_until), (vec![350, 351, 400], None, at(550)));
        assert_eq!(second.times, 350_000_000..=550_000_000);
    }

    #[test]
    fn what_was_missed_is_told_of_when_its_stretch_is_over() {
        let mut watch = watch(100);
        let missed = |from, until| CaptureLoss { from: at(from), until: at(until), packets: 2 };
        // Before it looked, when it began to, and later.
        for it in [missed(50, 99), missed(90, 110), missed(290, 310)] {
            watch.missed(it);
        }
        let (_, seen) = passed(&one(watch.batches(at(300), CLOCK)));
        assert_eq!(seen.missed, [missed(100, 110)]);
        let (_, seen) = passed(&one(watch.batches(at(500), CLOCK)));
        assert_eq!(seen.missed, [missed(290, 310)]);
    }

    #[test]
    fn many_packets_make_batches_sooner_and_none_is_too_large() {
        let mut watch = watch(100);
        look(&mut watch, std::iter::repeat_n(100, PACKETS));
        assert_eq!(watch.batches(at(100), CLOCK), []);
        assert_eq!(one(watch.batches(at(101), CLOCK)).items, PACKETS as u64);
        let most = i64::try_from(PACKETS).unwrap();
        let many = (0..2 * most).map(|nth| 110 + nth / 1000).chain([105]);
        look(&mut watch, many);
        let batches = watch.batches(at(200), CLOCK);
        let sizes: Vec<_> = batches.iter().map(|it| it.items).collect();
        assert_eq!(sizes, [PACKETS as u64, PACKETS as u64, 1]);
        let times: Vec<_> = batches.iter().map(|it| it.times.clone()).collect();
        assert_eq!(times[0].start(), &101_000_000);
        assert!(times.windows(2).all(|it| it[0].end() == it[1].start()), "{times:?}");
        assert_eq!((passed(&batches[0]).0[0], times[2].end()), (105, &200_000_000));
    }

    #[test]
    fn a_clock_that_was_set_back_leaves_a_time_of_which_nothing_is_known() {
        let mut watch = watch(1000);
        look(&mut watch, [1100]);
        one(watch.batches(at(1200), CLOCK));
        look(&mut watch, [1150, 900, 901, 1300]);
        let (times, seen) = passed(&one(watch.batches(at(1400), CLOCK)));
        assert_eq!((times, seen.begin), (vec![], Some(at(1400))));
        look(&mut watch, [1500]);
        let (times, seen) = passed(&one(watch.batches(at(1600), CLOCK)));
        assert_eq!((times, seen.begin), (vec![1500], None));
    }

    #[test]
    fn who_stops_to_look_says_so() {
        let mut watch = watch(100);
        look(&mut watch, [120, 160]);
        let (batches, end) = Box::new(watch).close(at(150), CLOCK);
        let [(times, last), (nothing, closing)] = [passed(&batches[0]), passed(&batches[1])];
        assert_eq!((times, last.begin, last.complete_until), (vec![120], Some(at(100)), at(150)));
        assert_eq!((nothing, end), (vec![], at(150) + CLOSING));
        assert_eq!((closing.begin, closing.complete_until), (Some(end), end));
        // Who was to look from then on, and is told to stop before, keeps nobody from it.
        let next = Watch::new(Sampling::share(1.0).unwrap(), end);
        assert_eq!(Box::new(next).close(at(200), CLOCK), (vec![], end));
    }
}
