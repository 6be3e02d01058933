//! One point of a task that counts.

use std::collections::BTreeMap;

use crate::protocol::{Count, Counts, MachineClock};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::CaptureLoss;

use super::look::{Look, Passing};
use crate::spool::Batch;

/// A batch tells of so much time.
const BATCH: Span = Span::from_secs(1);

/// If time goes on by more at once, the machine slept, or somebody has set the clock, and nobody looked.
const LONGEST: Span = Span::from_secs(60);

/// Intervals that are told of at the latest, also where a clock was set back and has not caught up.
const MANY: usize = 60;

/// Counts packets and bytes by intervals of time.
pub(super) struct Tally {
    interval: Span,
    /// Since when it looks.
    begin: Time<Utc>,
    told_until: Time<Utc>,
    /// What is not told of yet.
    counts: BTreeMap<Time<Utc>, Count>,
}

impl Tally {
    /// Counts from a time on.
    pub(super) fn new(interval: Span, begin: Time<Utc>) -> Self {
        Self { interval, begin, told_until: begin, counts: BTreeMap::new() }
    }

    fn at(&mut self, time: Time<Utc>) -> &mut Count {
        let begin = time.interval_begin(self.interval);
        let none = Count { begin, packets: 0, bytes: 0, missed: 0, watched: Span::ZERO };
        self.counts.entry(begin).or_insert(none)
    }

    /// What has been counted so far: packets behind the time may be among it, because counts only add up.
    fn take(&mut self, until: Time<Utc>) -> Batch {
        let from = std::mem::replace(&mut self.told_until, until);
        if until - from <= LONGEST {
            self.watch(from, until);
        }
        let counts: Vec<_> = std::mem::take(&mut self.counts).into_values().collect();
        Batch {
            items: counts.iter().map(|it| it.packets.saturating_add(it.missed)).sum(),
            times: from.as_nanos()..=until.as_nanos(),
            body: Counts { counts, complete_until: until }.encode(),
        }
    }

    /// Somebody has looked from one time until another.
    fn watch(&mut self, mut from: Time<Utc>, until: Time<Utc>) {
        while from < until {
            let end = until.min(from.interval_begin(self.interval) + self.interval);
            self.at(from).watched += end - from;
            from = end;
        }
    }
}

impl Look for Tally {
    fn packet(&mut self, packet: &Passing<'_>) {
        let time = packet.stamp.utc;
        if time >= self.begin {
            let count = self.at(time);
            count.packets += 1;
            count.bytes += u64::from(packet.length);
        }
    }

    /// They are of the interval in which the stretch begins.
    fn missed(&mut self, missed: CaptureLoss) {
        if missed.until >= self.begin {
            let from = missed.from.max(self.begin);
            let count = self.at(from);
            count.missed = count.missed.saturating_add(missed.packets);
        }
    }

    fn batches(&mut self, until: Time<Utc>, _: MachineClock) -> Vec<Batch> {
        let is_due = until - self.told_until >= BATCH || self.counts.len() > MANY;
        if is_due { vec![self.take(until.max(self.told_until))] } else { Vec::new() }
    }

    fn end(mut self: Box<Self>, until: Time<Utc>, _: MachineClock) -> Vec<Batch> {
        let is_more = until > self.told_until || !self.counts.is_empty();
        if is_more { vec![self.take(until.max(self.told_until))] } else { Vec::new() }
    }

    fn close(self: Box<Self>, until: Time<Utc>, clock: MachineClock) -> (Vec<Batch>, Time<Utc>) {
        let end = self.told_until.max(until);
        (self.end(until, clock), end)
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_capture::CapturedPacket;
    use wirestamp_clock::{Domain, RawStamp, Stamp};

    use super::*;

    const CLOCK: MachineClock = MachineClock { machine: [1; 16], error: None };

    fn at(millis: i64) -> Time<Utc> {
        Time::from_nanos(millis * 1_000_000)
    }

    fn look(tally: &mut Tally, millis: impl IntoIterator<Item = i64>) {
        for millis in millis {
            let raw = RawStamp { domain: Domain::Realtime, value: 0 };
            let stamp = Stamp { raw, utc: at(millis), error: Span::ZERO };
            let captured = CapturedPacket { stamp, kernel: None, bytes: &[], length: 100 };
            tally.packet(&Passing::new(&captured));
        }
    }

    /// Intervals by when they begin: packets, bytes, packets missed, and for how many milliseconds somebody looked.
    fn told(batch: &Batch) -> Vec<(i64, [u64; 3], i64)> {
        let counts = Counts::decode(&batch.body).unwrap().counts;
        let millis = |nanos: i64| nanos / 1_000_000;
        let told = counts.iter().map(|it| {
            let counts = [it.packets, it.bytes, it.missed];
            (millis(it.begin.as_nanos()), counts, millis(it.watched.as_nanos()))
        });
        told.collect()
    }

    #[test]
    fn each_packet_is_counted_once_in_its_interval() {
        let mut tally = Tally::new(Span::from_secs(1), at(500));
        // The first passed before it looked, and the last are ahead of what is complete.
        look(&mut tally, [499, 500, 999, 1000, 1510, 2100]);
        assert_eq!(tally.batches(at(1499), CLOCK), []);
        let first = tally.batches(at(1500), CLOCK);
        assert_eq!(
            told(&first[0]),
            [(0, [2, 200, 0], 500), (1000, [2, 200, 0], 500), (2000, [1, 100, 0], 0)]
        );
        assert_eq!((first[0].items, &first[0].times), (5, &(500_000_000..=1_500_000_000)));
        look(&mut tally, [2200]);
        let last = Box::new(tally).close(at(2300), CLOCK);
        assert_eq!(told(&last.0[0]), [(1000, [0, 0, 0], 500), (2000, [1, 100, 0], 300)]);
        assert_eq!(last.1, at(2300));
    }

    #[test]
    fn what_was_missed_is_told_of_and_nobody_looks_while_the_machine_sleeps() {
        let mut tally = Tally::new(Span::from_secs(1), at(500));
        let missed = |from, until| CaptureLoss { from: at(from), until: at(until), packets: 2 };
        for it in [missed(100, 400), missed(400, 600), missed(1990, 2010)] {
            tally.missed(it);
        }
        assert_eq!(
            told(&tally.batches(at(2500), CLOCK)[0]),
            [(0, [0, 0, 2], 500), (1000, [0, 0, 2], 1000), (2000, [0, 0, 0], 500)]
        );
        assert_eq!(told(&tally.batches(at(100_000), CLOCK)[0]), []);
        assert_eq!(told(&tally.batches(at(101_000), CLOCK)[0]), [(100_000, [0, 0, 0], 1000)]);
    }

    #[test]
    fn what_a_clock_counts_that_was_set_back_is_told_of_before_it_has_caught_up() {
        let mut tally = Tally::new(Span::from_secs(1), at(0));
        tally.batches(at(1_000_000), CLOCK);
        let seconds = i64::try_from(MANY).unwrap();
        look(&mut tally, (0..seconds).map(|second| 5000 + second * 1000));
        assert_eq!(tally.batches(at(65_000), CLOCK), []);
        look(&mut tally, [66_000]);
        let batches = tally.batches(at(66_001), CLOCK);
        assert_eq!((batches[0].items, batches[0].times.end()), (61, &1_000_000_000_000));
        assert!(told(&batches[0]).iter().all(|(_, _, watched)| *watched == 0));
        look(&mut tally, [67_000]);
        let last = Box::new(tally).end(at(67_001), CLOCK);
        assert_eq!(told(&last[0]), [(67_000, [1, 100, 0], 0)]);
    }
}
