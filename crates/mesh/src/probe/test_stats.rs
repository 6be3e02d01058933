//! Statistics of an end of an active test: clock offsets and datagrams that are rejected or not answered.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tracing::warn;
use wirestamp_active::sender::ClockExchanges;
use wirestamp_packet::stamp::NotStamp;

use super::ChannelName;
use crate::v1;

/// Statistics of an end since its start.
#[derive(Default)]
pub(super) struct TestStats {
    exchanges: Mutex<ClockExchanges>,
    forged: AtomicU64,
    too_short: AtomicU64,
    answers: AtomicU64,
    limited: AtomicU64,
}

impl TestStats {
    /// The sender's exchanges of test packets and answers.
    pub(super) fn exchanges(&self) -> MutexGuard<'_, ClockExchanges> {
        self.exchanges.lock()
    }

    /// Counts a rejected datagram. Only the first one is logged.
    pub(super) fn refuse(&self, name: ChannelName, why: NotStamp) {
        let count = match why {
            NotStamp::Forged => &self.forged,
            NotStamp::TooShort(..) => &self.too_short,
            NotStamp::Answer => &self.answers,
        };
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            warn!("test {name} rejected a datagram: {why}; more are only counted");
        }
    }

    /// Counts a test packet that is not answered because its session exceeds the max rate. Only the first one is logged.
    pub(super) fn limit(&self, name: ChannelName) {
        if self.limited.fetch_add(1, Ordering::Relaxed) == 0 {
            warn!(
                "test {name} exceeds its max rate of answers; packets without an answer are counted"
            );
        }
    }

    /// The statistics as sent to the controller.
    pub(super) fn account(&self, name: ChannelName) -> v1::Test {
        let counts = [&self.forged, &self.too_short, &self.answers, &self.limited];
        let [forged, too_short, answers, limited] = counts.map(|it| it.load(Ordering::Relaxed));
        v1::Test { task: name.task, point: name.point, forged, too_short, answers, limited }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_packets_are_counted_by_reason() {
        let (stats, name) = (TestStats::default(), ChannelName { task: 7, point: 1 });
        let answers = [NotStamp::Answer; 3];
        for why in [NotStamp::Forged, NotStamp::TooShort(44, 112), NotStamp::Forged]
            .into_iter()
            .chain(answers)
        {
            stats.refuse(name, why);
        }
        (0..4).for_each(|_| stats.limit(name));
        let account =
            v1::Test { task: 7, point: 1, forged: 2, too_short: 1, answers: 3, limited: 4 };
        assert_eq!(stats.account(name), account);
    }
}
