//! The running deliveries, one for each channel.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::{Carrier, ChannelName, SharedSpool};
use crate::member::{Logged, Pause};

/// How long a delivery continues after the end of its work: the last batches may not be in the spool yet.
const GRACE: Duration = Duration::from_secs(60);

/// The running deliveries. They end when this is dropped.
pub(super) struct Deliveries<C> {
    carrier: Arc<C>,
    spool: Arc<SharedSpool>,
    is_admitted: watch::Receiver<bool>,
    logged: Logged,
    running: BTreeMap<ChannelName, Delivery>,
    tasks: JoinSet<()>,
}

struct Delivery {
    task: AbortHandle,
    needed_at: Instant,
}

impl<C: Carrier> Deliveries<C> {
    /// Nothing is delivered yet. Deliveries pause while this probe is not admitted. An error that several have is logged once.
    pub(super) fn new(
        carrier: C,
        spool: Arc<SharedSpool>,
        is_admitted: watch::Receiver<bool>,
        logged: Logged,
    ) -> Self {
        let (carrier, running, tasks) = (Arc::new(carrier), BTreeMap::new(), JoinSet::new());
        Self { carrier, spool, is_admitted, logged, running, tasks }
    }

    /// Starts the deliveries of these channels that do not run yet.
    pub(super) fn need(&mut self, names: impl IntoIterator<Item = ChannelName>, now: Instant) {
        let Self { carrier, spool, is_admitted, logged, running, tasks } = self;
        for name in names {
            let start = || {
                let (carrier, spool) = (Arc::clone(carrier), Arc::clone(spool));
                let pause = Pause::sharing(logged);
                let is_admitted = is_admitted.clone();
                let task = tasks.spawn(keep_delivering(carrier, spool, name, is_admitted, pause));
                Delivery { task, needed_at: now }
            };
            running.entry(name).or_insert_with(start).needed_at = now;
        }
    }

    /// Ends the deliveries that have not been needed for some time.
    pub(super) fn end_unneeded(&mut self, now: Instant) {
        let is_over = |_: &ChannelName, it: &mut Delivery| now - it.needed_at >= GRACE;
        for (_, delivery) in self.running.extract_if(.., is_over) {
            delivery.task.abort();
        }
        while self.tasks.try_join_next().is_some() {}
    }

    /// Ends all deliveries, and waits until they have.
    pub(super) async fn end(mut self) {
        self.tasks.shutdown().await;
    }
}

/// Keeps the delivery of a channel running.
async fn keep_delivering(
    carrier: Arc<impl Carrier>,
    spool: Arc<SharedSpool>,
    name: ChannelName,
    mut is_admitted: watch::Receiver<bool>,
    mut pause: Pause,
) {
    loop {
        // The sender lives as long as the probe.
        drop(is_admitted.wait_for(|it| *it).await);
        let moved = carrier.moved(name);
        let ended = tokio::select! {
            ended = carrier.carry(&spool, name) => ended,
            _ = is_admitted.wait_for(|it| !*it) => continue,
        };
        // After a move, another collector is called at once.
        tokio::select! {
            () = pause.after(ended) => {}
            () = moved => pause.reset(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future;

    use parking_lot::Mutex;
    use tokio::task::yield_now;

    use super::*;
    use crate::probe::Error;
    use crate::spool::Spool;

    const ONE: ChannelName = ChannelName { task: 1, point: 0 };
    const OTHER: ChannelName = ChannelName { task: 2, point: 0 };

    /// Delivers nothing, and has the names of the running deliveries.
    #[derive(Clone, Default)]
    struct Endless(Arc<Mutex<Vec<ChannelName>>>);

    struct Running<'a>(&'a Endless, ChannelName);

    impl Drop for Running<'_> {
        fn drop(&mut self) {
            self.0.0.lock().retain(|name| *name != self.1);
        }
    }

    impl Carrier for Endless {
        async fn carry(&self, _: &SharedSpool, name: ChannelName) -> Result<(), Error> {
            self.0.lock().push(name);
            let _running = Running(self, name);
            future::pending().await
        }
    }

    #[tokio::test]
    async fn delivery_ends_a_minute_after_its_task() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::open(&folder.path().join("spool"), 1 << 20).unwrap();
        let carrier = Endless::default();
        let (_admitted, is_admitted) = watch::channel(true);
        let spool = Arc::new(SharedSpool::new(spool));
        let mut deliveries =
            Deliveries::new(carrier.clone(), spool, is_admitted, Logged::default());
        let begin = Instant::now();
        deliveries.need([ONE, OTHER, ONE], begin);
        yield_now().await;
        assert_eq!(*carrier.0.lock(), [ONE, OTHER]);
        deliveries.need([OTHER], begin + GRACE / 2);
        deliveries.end_unneeded(begin + GRACE / 2);
        yield_now().await;
        assert_eq!(*carrier.0.lock(), [ONE, OTHER]);
        deliveries.end_unneeded(begin + GRACE);
        yield_now().await;
        assert_eq!(*carrier.0.lock(), [OTHER]);
        // It can be needed again.
        deliveries.need([ONE], begin + GRACE);
        yield_now().await;
        assert_eq!(*carrier.0.lock(), [OTHER, ONE]);
    }
}
