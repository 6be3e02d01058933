//! Delay and loss over time, in bounded memory.

use serde::Serialize;
use wirestamp_clock::{Span, Time, Utc};

use crate::numeric::{count_to_f64, nanos_to_f64};

/// The width of a slot at first, in nanoseconds.
const FINEST: i64 = 1_000_000;
/// So many slots are kept; where there would be more, all become twice as wide.
const MOST: usize = 512;

/// What became of the packets of a stream by the time at which they were sent.
///
/// Time is cut into slots of 1 ms. Only slots in which packets were sent are kept; where these would
/// be more than 512, slots become twice as wide, again and again. A series therefore takes 24 KiB
/// at the most, and little for a stream of few packets.
#[derive(Clone, Debug)]
pub struct Series {
    /// In nanoseconds: a power of two times [`FINEST`].
    width: i64,
    /// Ascending; no two with the same place.
    slots: Vec<Slot>,
}

/// The packets that were sent in one slot of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slot {
    /// Its number from the epoch on.
    #[serde(skip)]
    place: i64,
    /// Packets that arrived.
    pub matched: u64,
    /// Packets that were lost.
    pub lost: u64,
    /// The least delay in nanoseconds; of no meaning without packets that arrived, as the others.
    pub min: i64,
    /// The sum of the delays in nanoseconds.
    sum: f64,
    /// The greatest delay in nanoseconds.
    pub max: i64,
}

impl Slot {
    fn at(place: i64) -> Self {
        Self { place, matched: 0, lost: 0, min: i64::MAX, sum: 0.0, max: i64::MIN }
    }

    /// The mean delay in nanoseconds; `None` if no packet arrived.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.matched > 0).then(|| self.sum / count_to_f64(self.matched))
    }

    fn merge(&mut self, other: &Self) {
        self.matched += other.matched;
        self.lost += other.lost;
        self.min = self.min.min(other.min);
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }
}

impl Default for Series {
    fn default() -> Self {
        Self { width: FINEST, slots: Vec::new() }
    }
}

impl Series {
    /// Takes a packet that was sent at `sent` and took `delay`.
    pub fn record(&mut self, sent: Time<Utc>, delay: Span) {
        let nanos = delay.as_nanos();
        let slot = self.slot(sent);
        slot.matched += 1;
        slot.min = slot.min.min(nanos);
        slot.sum += nanos_to_f64(nanos);
        slot.max = slot.max.max(nanos);
    }

    /// Takes a packet that was sent at `sent` and lost.
    pub fn record_loss(&mut self, sent: Time<Utc>) {
        self.slot(sent).lost += 1;
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

    /// The same in at most so many slots, at least two.
    #[must_use]
    pub fn thinned(&self, most: usize) -> Self {
        let mut series = self.clone();
        while series.slots.len() > most.max(2) {
            series.widen();
        }
        series
    }

    /// The same in slots that are at least so long, and of which at most so many, at least one, lie between
    /// the first and the last, those without packets included.
    #[must_use]
    pub fn coarser(&self, width: Span, most: usize) -> Self {
        let mut series = self.clone();
        let most = i64::try_from(most.max(1)).unwrap_or(i64::MAX);
        while series.width < width.as_nanos() || series.extent() > most {
            series.widen();
        }
        series
    }

    /// How many slots there are from the first to the last, those without packets included.
    fn extent(&self) -> i64 {
        let ends = self.slots.first().zip(self.slots.last());
        ends.map_or(0, |(first, last)| last.place.saturating_sub(first.place).saturating_add(1))
    }

    /// The slots that have packets, each with the time at which it begins.
    pub fn slots(&self) -> impl ExactSizeIterator<Item = (Time<Utc>, &Slot)> {
        self.slots
            .iter()
            .map(|slot| (Time::from_nanos(slot.place.saturating_mul(self.width)), slot))
    }

    /// How long a slot is.
    #[must_use]
    pub const fn width(&self) -> Span {
        Span::from_nanos(self.width)
    }

    fn slot(&mut self, time: Time<Utc>) -> &mut Slot {
        let mut index = self.find(time);
        if index.is_err() && self.slots.len() >= MOST {
            while self.slots.len() >= MOST {
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

    /// Where the slot of `time` is, or where it belongs. Most packets belong to the last.
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
    fn a_slot_has_the_extremes_and_the_mean_of_its_packets() {
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
        fn no_packet_is_missing_however_long_it_goes_on(
            packets in prop::collection::vec((any::<i32>(), any::<bool>()), 0..2000),
        ) {
            let mut series = Series::default();
            for (millis, lost) in &packets {
                match lost {
                    true => series.record_loss(at((*millis).into())),
                    false => series.record(at((*millis).into()), Span::ZERO),
                }
            }
            prop_assert!(series.slots.len() <= MOST);
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
