//! A point of a task that counts: whatever it delivers is a result at once.

use std::ops::RangeInclusive;

use wirestamp_clock::{Time, Utc};
use wirestamp_protocol::{Count, Counts};

use super::{Delivery, Settled};

/// What one point has counted.
pub struct Counting {
    acknowledged: u64,
    complete_until: Time<Utc>,
    /// What has come since it was settled last.
    counts: Vec<Count>,
    given_up: u64,
    has_grown: bool,
}

impl Counting {
    /// A point that has delivered everything before a time. The batch behind this number comes next.
    #[must_use]
    pub fn new(complete_until: Time<Utc>, acknowledged: u64) -> Self {
        let counts = Vec::new();
        Self { acknowledged, complete_until, counts, given_up: 0, has_grown: false }
    }

    /// Takes the next batch, of this number.
    pub fn take(&mut self, number: u64, counts: &Counts) -> Delivery {
        let until = counts.complete_until;
        let delivery = self.receive(&(number..=number), until);
        if delivery == Delivery::Taken {
            self.counts.extend(&counts.counts);
        }
        delivery
    }

    /// Takes note that batches of these numbers will not come, which told of so many packets until a time.
    pub fn give_up(
        &mut self,
        numbers: &RangeInclusive<u64>,
        until: Time<Utc>,
        packets: u64,
    ) -> Delivery {
        let delivery = self.receive(numbers, until);
        if delivery == Delivery::Taken {
            self.given_up = self.given_up.saturating_add(packets);
        }
        delivery
    }

    /// Takes note that a batch makes no sense.
    pub fn leave_out(&mut self, number: u64) -> Delivery {
        self.receive(&(number..=number), self.complete_until)
    }

    /// What comes next is the batch behind this number, whatever came before.
    pub fn number_anew(&mut self, behind: u64) {
        self.acknowledged = behind;
    }

    /// What is new, if there is anything.
    pub fn settle(&mut self) -> Option<Settled> {
        std::mem::take(&mut self.has_grown).then(|| Settled {
            counts: std::mem::take(&mut self.counts),
            acknowledged: [self.acknowledged, 0],
            given_up: [std::mem::take(&mut self.given_up), 0],
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

    fn at(second: i64) -> Time<Utc> {
        Time::from_nanos(0) + Span::from_secs(second)
    }

    fn counts(second: i64, packets: u64) -> Counts {
        let count = Count {
            begin: at(second),
            packets,
            bytes: 100 * packets,
            missed: 0,
            watched: Span::from_secs(1),
        };
        Counts { counts: vec![count], complete_until: at(second + 1) }
    }

    #[test]
    fn each_batch_is_a_result_once() {
        let mut counting = Counting::new(at(0), 4);
        assert_eq!(counting.take(6, &counts(2, 1)), Delivery::Expected(5));
        assert_eq!(counting.take(5, &counts(1, 7)), Delivery::Taken);
        assert_eq!(counting.take(5, &counts(1, 7)), Delivery::Known);
        assert_eq!(counting.give_up(&(6..=8), at(5), 30), Delivery::Taken);
        assert_eq!(counting.leave_out(9), Delivery::Taken);
        let settled = counting.settle().unwrap();
        assert_eq!((settled.counts, settled.until), (counts(1, 7).counts, at(5)));
        assert_eq!((settled.acknowledged, settled.given_up), ([9, 0], [30, 0]));
        assert!(counting.settle().is_none());
        counting.number_anew(0);
        assert_eq!(counting.take(1, &counts(9, 1)), Delivery::Taken);
        assert_eq!(counting.settle().unwrap().acknowledged, [1, 0]);
    }
}
