//! Delay and loss over time, in bounded memory.

use serde::Serialize;
use wirestamp_clock::{Span, Time, Utc};

use crate::numeric::{count_to_f64, nanos_to_f64};

/// Initial width of a slot, in nanoseconds.
const MIN_WIDTH: i64 = 1_000_000;
/// Max slots; beyond that, all become twice as wide.
const MAX_SLOTS: usize = 512;

/// Delay and loss of a stream by sending time.
///
/// Time is divided into slots of 1 ms. Only slots with packets are kept; above 512 of them, slots become twice as
/// wide, repeatedly. A series takes at most 24 KiB, and little for a stream of few packets.
#[derive(Clone, Debug)]
pub struct Series {
    /// Width in nanoseconds: a power of two times [`MIN_WIDTH`].
    width: i64,
    /// In ascending order, without duplicates.
    slots: Vec<Slot>,
}

/// Packets sent in one slot of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slot {
    /// Slot number since the epoch.
    #[serde(skip)]
    place: i64,
    /// Packets that arrived.
    pub matched: u64,
    /// Packets that were lost.
    pub lost: u64,
    /// Packets of those that arrived that were too late for the de-jitter buffer.
    pub late: u64,
    /// Min delay in nanoseconds; undefined without arrivals, like the others.
    pub min: i64,
    /// Sum of the delays in nanoseconds.
    sum: f64,
    /// Max delay in nanoseconds.
    pub max: i64,
}

impl Slot {
    fn at(place: i64) -> Self {
        Self { place, matched: 0, lost: 0, late: 0, min: i64::MAX, sum: 0.0, max: i64::MIN }
    }

    /// Mean delay in nanoseconds; `None` without arrivals.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.matched > 0).then(|| self.sum / count_to_f64(self.matched))
    }

    fn merge(&mut self, other: &Self) {
        self.matched += other.matched;
        self.lost += other.lost;
        self.late += other.late;
        self.min = self.min.min(other.min);
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }
}

impl Default for Series {
    fn default() -> Self {
        Self { width: MIN_WIDTH, slots: Vec::new() }
    }
}

impl Series {
    /// Records a packet sent at `sent` with this delay.
    pub fn record(&mut self, sent: Time<Utc>, delay: Span) {
        let nanos = delay.as_nanos();
        let slot = self.slot(sent);
        slot.matched += 1;
        slot.min = slot.min.min(nanos);
        slot.sum += nanos_to_f64(nanos);
        slot.max = slot.max.max(nanos);
    }

    /// Records a packet sent at `sent` that was lost.
    pub fn record_loss(&mut self, sent: Time<Utc>) {
        self.slot(sent).lost += 1;
    }

    /// Records that a packet sent at `sent`, which arrived, was too late for the de-jitter buffer.
    pub(crate) fn record_late(&mut self, sent: Time<Utc>) {
        self.slot(sent).late += 1;
    }

    /// Adds the packets of another stream.
    pub fn merge(&mut self, other: &Self) {
        while self.width < other.width {
            self.widen();
        }
        for (begins, slot) in other.slots() {
            self.slot(begins).merge(slot);
        }
    }

    /// The series in at most `max` slots, at least two.
    #[must_use]
    pub fn thinned(&self, max: usize) -> Self {
        let mut series = self.clone();
        while series.slots.len() > max.max(2) {
            series.widen();
        }
        series
    }

    /// The series in slots of at least `width`, with at most `max` slots (at least one) from the first to the last,
    /// including empty ones.
    #[must_use]
    pub fn coarser(&self, width: Span, max: usize) -> Self {
        let mut series = self.clone();
        let max = i64::try_from(max.max(1)).unwrap_or(i64::MAX);
        while series.width < width.as_nanos() || series.extent() > max {
            series.widen();
        }
        series
    }

    /// Number of slots from the first to the last, including empty ones.
    fn extent(&self) -> i64 {
        let ends = self.slots.first().zip(self.slots.last());
        ends.map_or(0, |(first, last)| last.place.saturating_sub(first.place).saturating_add(1))
    }

    /// Slots with packets, each with its begin.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = (Time<Utc>, &Slot)> {
        self.slots
            .iter()
            .map(|slot| (Time::from_nanos(slot.place.saturating_mul(self.width)), slot))
    }

    /// Width of a slot.
    #[must_use]
    pub const fn width(&self) -> Span {
        Span::from_nanos(self.width)
    }

    fn slot(&mut self, time: Time<Utc>) -> &mut Slot {
        let mut index = self.find(time);
        if index.is_err() && self.slots.len() >= MAX_SLOTS {
            while self.slots.len() >= MAX_SLOTS {
                self.widen();
            }
            index = self.find(time);
        }
        let place = time.as_nanos().div_euclid(self.width);
        let index = index.unwrap_or_else(|index| {
            self.slots.insert(index, Slot::at(place));
            index
        });
        &mut self.slots[index]
    }

    /// Index of the slot of `time`, or of its insertion. Most packets belong to the last.
    fn find(&self, time: Time<Utc>) -> Result<usize, usize> {
        let place = time.as_nanos().div_euclid(self.width);
        match self.slots.last() {
            Some(last) if last.place == place => Ok(self.slots.len() - 1),
            Some(last) if last.place < place => Err(self.slots.len()),
            _ => self.slots.binary_search_by_key(&place, |slot| slot.place),
        }
    }

    fn widen(&mut self) {
        self.width = self.width.saturating_mul(2);
        self.slots.iter_mut().for_each(|slot| slot.place = slot.place.div_euclid(2));
        self.slots.dedup_by(|later, earlier| {
            let same = later.place == earlier.place;
            if same {
                earlier.merge(later);
            }
            same
        });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(millis: i64) -> Time<Utc> {
        Time::from_nanos(0) + Span::from_millis(millis)
    }

    #[test]
    fn slot_has_min_mean_and_max() {
        let mut series = Series::default();
        for delay in [5, 1, 9] {
            series.record(at(7), Span::from_nanos(delay));
        }
        series.record_loss(at(9));
        let slots: Vec<_> = series.slots().collect();
        let [(first, slot), (second, empty)] = slots[..] else { panic!("{slots:?}") };
        assert_eq!((first, second), (at(7), at(9)));
        assert_eq!((slot.min, slot.mean(), slot.max, slot.lost), (1, Some(5.0), 9, 0));
        assert_eq!((empty.matched, empty.mean(), empty.lost), (0, None, 1));
    }

    proptest! {
        #[test]
        fn all_packets_are_counted_at_any_length(
            packets in prop::collection::vec((any::<i32>(), any::<bool>()), 0..2000),
        ) {
            let mut series = Series::default();
            for (millis, lost) in &packets {
                match lost {
                    true => series.record_loss(at((*millis).into())),
                    false => series.record(at((*millis).into()), Span::ZERO),
                }
            }
            prop_assert!(series.slots.len() <= MAX_SLOTS);
            let (mut once, mut twice) = (Series::default(), series.clone());
            once.merge(&series);
            twice.merge(&series);
            prop_assert_eq!(&once.slots, &series.slots);
            prop_assert!(once.slots().eq(series.slots()));
            let thinned = series.thinned(7);
            prop_assert!(thinned.slots.len() <= 7);
            let coarser = series.coarser(Span::from_secs(1), 9);
            prop_assert!(coarser.extent() <= 9 && coarser.width() >= Span::from_secs(1));
            let all = |series: &Series| -> u64 {
                series.slots.iter().map(|slot| slot.matched + slot.lost).sum()
            };
            prop_assert_eq!(all(&twice), 2 * packets.len() as u64);
            prop_assert!(series.slots.is_sorted_by(|a, b| a.place < b.place));
            prop_assert_eq!(all(&series), packets.len() as u64);
            prop_assert_eq!(all(&thinned), packets.len() as u64);
            prop_assert_eq!(all(&coarser), packets.len() as u64);
            for (begins, _) in series.slots() {
                let end = begins + series.width();
                let is_in = |(millis, _): &(i32, bool)| {
                    (begins..end).contains(&at((*millis).into()))
                };
                prop_assert!(packets.iter().any(is_in));
            }
        }
    }
}
