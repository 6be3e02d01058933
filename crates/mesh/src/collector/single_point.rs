//! Results of a single point: each batch is a complete result.

use std::ops::RangeInclusive;

use wirestamp_clock::{Time, Utc};

use super::{Delivery, PointResults, Settled};

/// Results of a single point.
pub struct SinglePoint {
    acknowledged: u64,
    complete_until: Time<Utc>,
    /// Results since the last settlement.
    point_results: PointResults,
    dropped: u64,
    has_grown: bool,
}

impl SinglePoint {
    /// A point that has delivered everything before `complete_until`, up to batch `acknowledged`.
    #[must_use]
    pub fn new(complete_until: Time<Utc>, acknowledged: u64) -> Self {
        let point_results = PointResults::default();
        Self { acknowledged, complete_until, point_results, dropped: 0, has_grown: false }
    }

    /// Takes the next batch, with everything before `until`.
    pub fn take(&mut self, number: u64, until: Time<Utc>, point_results: PointResults) -> Delivery {
        let delivery = self.receive(&(number..=number), until);
        if delivery == Delivery::Taken {
            self.point_results.counts.extend(point_results.counts);
            self.point_results.flows.extend(point_results.flows);
        }
        delivery
    }

    /// Skips batches that the probe dropped, with `packets` packets before `until`.
    pub fn give_up(
        &mut self,
        numbers: &RangeInclusive<u64>,
        until: Time<Utc>,
        packets: u64,
    ) -> Delivery {
        let delivery = self.receive(numbers, until);
        if delivery == Delivery::Taken {
            self.dropped = self.dropped.saturating_add(packets);
        }
        delivery
    }

    /// Skips a malformed batch.
    pub fn leave_out(&mut self, number: u64) -> Delivery {
        self.receive(&(number..=number), self.complete_until)
    }

    /// The next batch follows number `behind`, whatever came before.
    pub fn number_anew(&mut self, behind: u64) {
        self.acknowledged = behind;
    }

    /// New results, if any.
    pub fn settle(&mut self) -> Option<Settled> {
        std::mem::take(&mut self.has_grown).then(|| Settled {
            point_results: std::mem::take(&mut self.point_results),
            acknowledged: [self.acknowledged, 0],
            dropped: [std::mem::take(&mut self.dropped), 0],
            ..Settled::nothing(self.complete_until)
        })
    }

    fn receive(&mut self, numbers: &RangeInclusive<u64>, until: Time<Utc>) -> Delivery {
        let delivery = Delivery::of(numbers, self.acknowledged.saturating_add(1));
        if delivery == Delivery::Taken {
            self.acknowledged = *numbers.end();
            self.complete_until = until.max(self.complete_until);
            self.has_grown = true;
        }
        delivery
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Span;

    use super::*;
    use crate::protocol::Count;

    fn at(second: i64) -> Time<Utc> {
        Time::from_nanos(0) + Span::from_secs(second)
    }

    fn counts(packets: u64) -> PointResults {
        let watched = Span::from_secs(1);
        let count = Count { begin: at(1), packets, bytes: 100 * packets, missed: 0, watched };
        PointResults { counts: vec![count], flows: Vec::new() }
    }

    #[test]
    fn each_batch_counts_once() {
        let mut single = SinglePoint::new(at(0), 4);
        assert_eq!(single.take(6, at(3), counts(1)), Delivery::Expected(5));
        assert_eq!(single.take(5, at(2), counts(7)), Delivery::Taken);
        assert_eq!(single.take(5, at(2), counts(7)), Delivery::Duplicate);
        assert_eq!(single.give_up(&(6..=8), at(5), 30), Delivery::Taken);
        assert_eq!(single.leave_out(9), Delivery::Taken);
        let settled = single.settle().unwrap();
        assert_eq!((settled.point_results, settled.until), (counts(7), at(5)));
        assert_eq!((settled.acknowledged, settled.dropped), ([9, 0], [30, 0]));
        assert!(single.settle().is_none());
        single.number_anew(0);
        assert_eq!(single.take(1, at(6), counts(1)), Delivery::Taken);
        assert_eq!(single.settle().unwrap().acknowledged, [1, 0]);
    }
}
