//! Wake-ups of a stage that waits for its queue.
//!
//! A wake-up takes some microseconds of the thread that requests it, and that delays its next stamp. So a stage with
//! frequent work is not woken: it polls its queue every [`POLL_INTERVAL`]. Only a stage without frequent work is
//! woken, once for the first item of its queue. The delivery of a packet is delayed by up to one interval a stage.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering, fence};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Time between two polls of a stage with frequent work. At 200,000 packets a second 200 collect, so that a wake-up costs some
/// nanoseconds a packet.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Max interval between two rounds of work that counts as frequent. A poll after rarer work finds nothing.
const FREQUENT: Duration = Duration::from_millis(10);

/// The stage works, or waits for something else than its queue.
const RUNNING: u8 = 0;
/// The stage sleeps until its next poll.
const POLLING: u8 = 1;
/// The stage sleeps until it is woken.
const IDLE: u8 = 2;

/// The queue of a stage when it begins to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queued {
    /// There is nothing to do.
    Nothing,
    /// There are items, or the queue has ended.
    Some,
    /// The number of items ends the sleep: the stage before would soon run out of room.
    Many,
}

/// The waiting end: belongs to the stage that takes items.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    state: Arc<AtomicU8>,
    /// When the stage last had work.
    worked: Option<Instant>,
}

/// The waking end: belongs to the stage that adds items.
#[derive(Clone, Debug)]
pub(super) struct Wakeup {
    state: Arc<AtomicU8>,
    thread: Thread,
    /// Number of waiting items that ends the sleep between two polls.
    many: usize,
}

impl Waiting {
    pub(super) fn new() -> Self {
        Self { state: Arc::new(AtomicU8::new(RUNNING)), worked: None }
    }

    /// The waking end for this stage, which runs on `thread`. The sleep between two polls ends early when `many` items wait.
    pub(super) fn wakeup(&self, thread: Thread, many: usize) -> Wakeup {
        Wakeup { state: Arc::clone(&self.state), thread, many: many.max(1) }
    }

    /// Waits on the stage's thread for at most `limit`: until the next poll if the stage `has_worked` since the last wait and
    /// works frequently, otherwise until it is woken. `queued` is called after the waking end sees that this stage
    /// waits, so that no wake-up is lost. The wait may end without a reason.
    pub(super) fn wait(
        &mut self,
        has_worked: bool,
        limit: Duration,
        queued: impl FnOnce() -> Queued,
    ) {
        let state = if has_worked && self.is_frequent() { POLLING } else { IDLE };
        self.state.store(state, Ordering::SeqCst);
        // With the fence in `Wakeup::notify`: either that call sees the state, or `queued` sees its item.
        fence(Ordering::SeqCst);
        match (state, queued()) {
            (POLLING, Queued::Nothing | Queued::Some) => {
                thread::park_timeout(POLL_INTERVAL.min(limit))
            }
            (IDLE, Queued::Nothing) => thread::park_timeout(limit),
            _ => {}
        }
        self.state.store(RUNNING, Ordering::SeqCst);
    }

    fn is_frequent(&mut self) -> bool {
        let before = self.worked.replace(Instant::now());
        before.is_some_and(|before| before.elapsed() <= FREQUENT)
    }
}

impl Wakeup {
    /// The thread of the stage.
    pub(super) fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Wakes the stage if it waits for an item. Called after items were added; `queued` of them wait now.
    #[inline]
    pub(super) fn notify(&self, queued: usize) {
        fence(Ordering::SeqCst);
        let state = self.state.load(Ordering::Relaxed);
        let wakes = state == IDLE || state == POLLING && queued >= self.many;
        // Only the call that changes the state wakes.
        if wakes
            && self
                .state
                .compare_exchange(state, RUNNING, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok()
        {
            self.thread.unpark();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn idle_stage_is_woken_once() {
        let waiting = Waiting::new();
        let wakeup = waiting.wakeup(thread::current(), 8);
        waiting.state.store(IDLE, Ordering::SeqCst);
        wakeup.notify(1);
        assert_eq!(waiting.state.load(Ordering::SeqCst), RUNNING);
        thread::park(); // returns at once, because this thread was woken
        wakeup.notify(8);
        let before = Instant::now();
        thread::park_timeout(Duration::from_millis(20));
        assert!(before.elapsed() >= Duration::from_millis(20), "a running stage was woken");
    }

    #[test]
    fn polling_stage_is_woken_only_for_many_items() {
        let waiting = Waiting::new();
        let wakeup = waiting.wakeup(thread::current(), 8);
        waiting.state.store(POLLING, Ordering::SeqCst);
        wakeup.notify(7);
        assert_eq!(waiting.state.load(Ordering::SeqCst), POLLING);
        wakeup.notify(8);
        assert_eq!(waiting.state.load(Ordering::SeqCst), RUNNING);
    }

    #[test]
    fn frequent_work_leads_to_polls() {
        let mut waiting = Waiting::new();
        assert!(!waiting.is_frequent(), "the first work");
        waiting.worked = Instant::now().checked_sub(FREQUENT * 2);
        assert!(!waiting.is_frequent());
        waiting.worked = Some(Instant::now() + LONG);
        assert!(waiting.is_frequent());
    }

    #[test]
    fn item_added_before_the_wait_ends_it() {
        let mut waiting = Waiting::new();
        waiting.wait(false, LONG, || Queued::Some);
        waiting.worked = Some(Instant::now() + LONG);
        waiting.wait(true, LONG, || Queued::Many);
    }

    /// A stage waits after each item, sometimes at once and sometimes after a poll interval, while another thread adds them at
    /// random times. A lost wake-up would hang the test.
    #[test]
    fn no_wakeup_is_lost() {
        const ITEMS: usize = 20_000;
        let added = AtomicUsize::new(0);
        let (send, receive) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut waiting = Waiting::new();
                send.send(waiting.wakeup(thread::current(), 4)).unwrap();
                let mut taken = 0;
                while taken < ITEMS {
                    let before = taken;
                    taken = added.load(Ordering::Acquire);
                    waiting.worked = None; // never polls, so that each wait needs a wake-up
                    waiting.wait(taken > before, LONG, || {
                        if taken < ITEMS && added.load(Ordering::Acquire) == taken {
                            Queued::Nothing
                        } else {
                            Queued::Some
                        }
                    });
                }
            });
            let wakeup = receive.recv().unwrap();
            for number in 0..ITEMS {
                added.fetch_add(1, Ordering::Release);
                wakeup.notify(1);
                if number % 7 == 0 {
                    thread::yield_now();
                }
            }
        });
    }
}
