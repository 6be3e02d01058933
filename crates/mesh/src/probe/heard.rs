//! What ends of active tests hear: of the other end's clock, and what they refuse.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracing::warn;
use wirestamp_active::sender::Exchanges;
use wirestamp_packet::stamp::NotStamp;

use super::ChannelName;
use crate::v1;

/// What an end has heard since it was started.
#[derive(Default)]
pub(super) struct Heard {
    exchanges: Mutex<Exchanges>,
    forged: AtomicU64,
    too_short: AtomicU64,
}

impl Heard {
    /// A sender's exchanges of packets and answers.
    pub(super) fn exchanges(&self) -> MutexGuard<'_, Exchanges> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A datagram was refused. The first of them is told of: others only count.
    pub(super) fn refuse(&self, name: ChannelName, why: NotStamp) {
        let count = match why {
            NotStamp::Forged => &self.forged,
            NotStamp::TooShort(..) => &self.too_short,
        };
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            warn!("test {name} refuses and counts what somebody else sends: {why}");
        }
    }

    /// The account of that end.
    pub(super) fn account(&self, name: ChannelName) -> v1::Test {
        let [forged, too_short] =
            [&self.forged, &self.too_short].map(|it| it.load(Ordering::Relaxed));
        v1::Test { task: name.task, point: name.point, forged, too_short }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_is_counted_by_why() {
        let (heard, name) = (Heard::default(), ChannelName { task: 7, point: 1 });
        for why in [NotStamp::Forged, NotStamp::TooShort(44, 112), NotStamp::Forged] {
            heard.refuse(name, why);
        }
        let account = v1::Test { task: 7, point: 1, forged: 2, too_short: 1 };
        assert_eq!(heard.account(name), account);
    }
}
