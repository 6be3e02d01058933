//! Observer of a task that counts packets.

use std::collections::BTreeMap;

use crate::protocol::{Count, Counts, MachineClock};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::CaptureLoss;

use super::observer::{ObservedPacket, Observer};
use crate::spool::Batch;

/// Length of time that a batch covers.
const BATCH: Span = Span::from_secs(1);

/// A larger jump of the clock means that the machine slept or the clock was set: that time is not observed.
const MAX_GAP: Span = Span::from_secs(60);

/// Max intervals before a batch is sent, even while a clock that was set back has not caught up.
const MAX_INTERVALS: usize = 60;

/// Max intervals and max time over which the packets of a loss are spread. The collector rejects counts that are a day from
/// the end of their batch.
const MOST_INTERVALS_OF_A_LOSS: i64 = 3600;
const MOST_TIME_OF_A_LOSS: Span = Span::from_secs(12 * 3600);

/// Counts packets and bytes per interval.
pub(super) struct PacketCounter {
    interval: Span,
    /// Start of the observation.
    begin: Time<Utc>,
    reported_until: Time<Utc>,
    /// Counts that are not reported yet.
    counts: BTreeMap<Time<Utc>, Count>,
}

impl PacketCounter {
    /// Counts from `begin` on.
    pub(super) fn new(interval: Span, begin: Time<Utc>) -> Self {
        Self { interval, begin, reported_until: begin, counts: BTreeMap::new() }
    }

    fn at(&mut self, time: Time<Utc>) -> &mut Count {
        let begin = time.interval_begin(self.interval);
        let none = Count { begin, packets: 0, bytes: 0, missed: 0, watched: Span::ZERO };
        self.counts.entry(begin).or_insert(none)
    }

    /// The counts so far. They may include packets after `until`: counts of several batches add up.
    fn take(&mut self, until: Time<Utc>) -> Batch {
        let from = std::mem::replace(&mut self.reported_until, until);
        if until - from <= MAX_GAP {
            self.watch(from, until);
        }
        let counts: Vec<_> = std::mem::take(&mut self.counts).into_values().collect();
        Batch {
            items: counts.iter().map(|it| it.packets.saturating_add(it.missed)).sum(),
            times: from.as_nanos()..=until.as_nanos(),
            body: Counts { counts, complete_until: until }.encode(),
        }
    }

    /// Adds observed time to the intervals.
    fn watch(&mut self, mut from: Time<Utc>, until: Time<Utc>) {
        while from < until {
            let end = until.min(from.interval_begin(self.interval) + self.interval);
            self.at(from).watched += end - from;
            from = end;
        }
    }
}

/// `packets` times `part` over `whole`, rounded down.
fn part(packets: u64, part: Span, whole: Span) -> u64 {
    let [part, whole] = [part, whole].map(|span| u128::from(span.as_nanos().unsigned_abs()));
    u64::try_from(u128::from(packets) * part / whole).map_or(packets, |share| share.min(packets))
}

impl Observer for PacketCounter {
    fn packet(&mut self, packet: &ObservedPacket<'_>) {
        let time = packet.stamp.utc;
        if time >= self.begin {
            let count = self.at(time);
            count.packets += 1;
            count.bytes += u64::from(packet.length);
        }
    }

    /// Counts missed packets in the intervals of the loss, in equal parts of its time: when they passed is not known.
    fn missed(&mut self, missed: CaptureLoss) {
        if missed.until < self.begin {
            return;
        }
        let from = missed.from.max(self.begin);
        let whole = (missed.until - from).max(Span::from_nanos(1));
        // Of a longer loss, the last interval has the rest.
        let most = self.interval.as_nanos().saturating_mul(MOST_INTERVALS_OF_A_LOSS);
        let last = from + Span::from_nanos(most).min(MOST_TIME_OF_A_LOSS);
        let (mut time, mut counted) = (from, 0);
        while counted < missed.packets {
            let next = time.interval_begin(self.interval) + self.interval;
            let is_last = next >= missed.until || next > last;
            let until_now =
                if is_last { missed.packets } else { part(missed.packets, next - from, whole) };
            if until_now > counted {
                let count = self.at(time);
                count.missed = count.missed.saturating_add(until_now - counted);
            }
            (time, counted) = (next, until_now);
        }
    }

    fn batches(&mut self, until: Time<Utc>, _: MachineClock) -> Vec<Batch> {
        let is_due = until - self.reported_until >= BATCH || self.counts.len() > MAX_INTERVALS;
        if is_due { vec![self.take(until.max(self.reported_until))] } else { Vec::new() }
    }

    fn end(mut self: Box<Self>, until: Time<Utc>, _: MachineClock) -> Vec<Batch> {
        let is_more = until > self.reported_until || !self.counts.is_empty();
        if is_more { vec![self.take(until.max(self.reported_until))] } else { Vec::new() }
    }

    fn close(self: Box<Self>, until: Time<Utc>, clock: MachineClock) -> (Vec<Batch>, Time<Utc>) {
        let end = self.reported_until.max(until);
        (self.end(until, clock), end)
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_capture::CapturedPacket;
    use wirestamp_clock::{Domain, RawStamp, Stamp};
    use wirestamp_packet::LinkType;

    use super::*;

    const CLOCK: MachineClock = MachineClock { machine: [1; 16], error: None };

    fn at(millis: i64) -> Time<Utc> {
        Time::from_nanos(millis * 1_000_000)
    }

    fn look(counter: &mut PacketCounter, millis: impl IntoIterator<Item = i64>) {
        for millis in millis {
            let raw = RawStamp { domain: Domain::Realtime, value: 0 };
            let stamp = Stamp { raw, utc: at(millis), error: Span::ZERO };
            let captured = CapturedPacket { stamp, kernel: None, bytes: &[], length: 100 };
            counter.packet(&ObservedPacket::new(&captured, LinkType::Ethernet));
        }
    }

    /// Intervals by begin: packets, bytes, missed packets, and observed milliseconds.
    fn decoded_counts(batch: &Batch) -> Vec<(i64, [u64; 3], i64)> {
        let counts = Counts::decode(&batch.body).unwrap().counts;
        let millis = |nanos: i64| nanos / 1_000_000;
        let decoded_counts = counts.iter().map(|it| {
            let counts = [it.packets, it.bytes, it.missed];
            (millis(it.begin.as_nanos()), counts, millis(it.watched.as_nanos()))
        });
        decoded_counts.collect()
    }

    #[test]
    fn each_packet_is_counted_once_in_its_interval() {
        let mut counter = PacketCounter::new(Span::from_secs(1), at(500));
        // The first packet passed before the observer began; the last ones are newer than the complete time.
        look(&mut counter, [499, 500, 999, 1000, 1510, 2100]);
        assert_eq!(counter.batches(at(1499), CLOCK), []);
        let first = counter.batches(at(1500), CLOCK);
        assert_eq!(
            decoded_counts(&first[0]),
            [(0, [2, 200, 0], 500), (1000, [2, 200, 0], 500), (2000, [1, 100, 0], 0)]
        );
        assert_eq!((first[0].items, &first[0].times), (5, &(500_000_000..=1_500_000_000)));
        look(&mut counter, [2200]);
        let last = Box::new(counter).close(at(2300), CLOCK);
        assert_eq!(decoded_counts(&last.0[0]), [(1000, [0, 0, 0], 500), (2000, [1, 100, 0], 300)]);
        assert_eq!(last.1, at(2300));
    }

    #[test]
    fn missed_packets_and_suspended_time_are_reported() {
        let mut counter = PacketCounter::new(Span::from_secs(1), at(500));
        let missed = |from, until| CaptureLoss { from: at(from), until: at(until), packets: 2 };
        for it in [missed(100, 400), missed(400, 600), missed(1990, 2010)] {
            counter.missed(it);
        }
        assert_eq!(
            decoded_counts(&counter.batches(at(2500), CLOCK)[0]),
            [(0, [0, 0, 2], 500), (1000, [0, 0, 1], 1000), (2000, [0, 0, 1], 500)]
        );
        assert_eq!(decoded_counts(&counter.batches(at(100_000), CLOCK)[0]), []);
        assert_eq!(
            decoded_counts(&counter.batches(at(101_000), CLOCK)[0]),
            [(100_000, [0, 0, 0], 1000)]
        );
    }

    #[test]
    fn long_loss_is_spread_over_its_intervals() {
        let mut counter = PacketCounter::new(Span::from_secs(1), at(0));
        counter.missed(CaptureLoss { from: at(500), until: at(30_500), packets: 6001 });
        let counts = decoded_counts(&counter.batches(at(31_000), CLOCK)[0]);
        let missed: Vec<_> = counts.iter().map(|(_, [.., missed], _)| *missed).collect();
        assert_eq!((missed.len(), missed.iter().sum::<u64>()), (31, 6001));
        assert!(missed[1..30].iter().all(|missed| (200..=201).contains(missed)), "{missed:?}");
        // A clock that was set makes a loss endless.
        counter.missed(CaptureLoss {
            from: at(31_000),
            until: at(i64::MAX / 1_000_000),
            packets: 7,
        });
        let counts = decoded_counts(&counter.batches(at(40_000), CLOCK)[0]);
        assert_eq!(counts.iter().map(|(_, [.., missed], _)| missed).sum::<u64>(), 7);
        assert!(counts.len() <= 3610, "{}", counts.len());
    }

    #[test]
    fn counts_continue_after_clock_is_set_back() {
        let mut counter = PacketCounter::new(Span::from_secs(1), at(0));
        counter.batches(at(1_000_000), CLOCK);
        let seconds = i64::try_from(MAX_INTERVALS).unwrap();
        look(&mut counter, (0..seconds).map(|second| 5000 + second * 1000));
        assert_eq!(counter.batches(at(65_000), CLOCK), []);
        look(&mut counter, [66_000]);
        let batches = counter.batches(at(66_001), CLOCK);
        assert_eq!((batches[0].items, batches[0].times.end()), (61, &1_000_000_000_000));
        assert!(decoded_counts(&batches[0]).iter().all(|(_, _, watched)| *watched == 0));
        look(&mut counter, [67_000]);
        let last = Box::new(counter).end(at(67_001), CLOCK);
        assert_eq!(decoded_counts(&last[0]), [(67_000, [1, 100, 0], 0)]);
    }
}
