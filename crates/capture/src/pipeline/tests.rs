//! Captures of a fake receiver.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use wirestamp_clock::Counter;

use super::*;
use crate::receiver::{Frame, FrameMemory, KernelCounts, Ticket};

const PACKETS: usize = 5;

struct NoMemory;

impl FrameMemory for NoMemory {
    fn release(&self, _: Ticket) {}
}

/// A receiver at which [`PACKETS`] packets have arrived.
struct FakeReceiver {
    waiting: usize,
    /// Never requested: no event reports packets.
    quiet: Stop,
}

impl FakeReceiver {
    fn new() -> Self {
        Self { waiting: PACKETS, quiet: Stop::new().unwrap() }
    }
}

impl Receiver for FakeReceiver {
    fn frame_memory(&self) -> Arc<dyn FrameMemory> {
        Arc::new(NoMemory)
    }

    fn acquire(&mut self, room: usize, take: impl FnMut(Frame)) -> usize {
        let count = self.waiting.min(room);
        self.waiting -= count;
        (0..count).map(|_| Frame::empty(0, None)).for_each(take);
        count
    }

    fn is_exhausted(&self) -> bool {
        false
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.quiet.event().as_fd()
    }

    fn close_intake(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn counts(&mut self) -> io::Result<KernelCounts> {
        Ok(KernelCounts { seen: PACKETS as u64, ..KernelCounts::default() })
    }
}

/// Counts the calls.
#[derive(Default)]
struct CountingSink {
    packets: u64,
    ends: u64,
}

impl Sink for CountingSink {
    fn packet(&mut self, _: &CapturedPacket<'_>) -> Result<(), Error> {
        self.packets += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        self.ends += 1;
        Ok(())
    }
}

#[test]
fn packets_are_counted_if_a_later_lane_cannot_start() {
    let clock = ClockService::start(Counter::select()).unwrap();
    // The converting or the acquiring thread of the second lane, or the first thread.
    for (startable, lanes) in [(2, 1), (3, 1), (0, 0)] {
        let stop = Stop::new().unwrap();
        let context = PipelineContext {
            clock: &clock,
            domain: Domain::Counter,
            fallback: None,
            stamped: false,
            lanes: &[Cores::default(); 2],
            wait: Wait::Block { realtime: false },
            limit: Limit::default(),
            shared_count: None,
            stop: &stop,
            interface: &Interface::open("lo").unwrap(),
            wait_for_interface: false,
            snaplen: 1,
            opened: now(),
            live: &LiveLedger::new(Arc::new(Interface::open("lo").unwrap()), 0),
        };
        let mut sink = CountingSink::default();
        let receivers = vec![FakeReceiver::new(), FakeReceiver::new()];
        lane::STARTABLE.set(startable);
        let (ledger, outcome) = run(receivers, &context, None, &mut sink);
        lane::STARTABLE.set(u32::MAX);
        let packets = lanes * PACKETS as u64;
        let counts = (ledger.seen, ledger.consumer_dropped, ledger.balances());
        assert_eq!(counts, (packets, packets, true), "{startable}: {ledger:?}");
        assert_eq!((sink.packets, sink.ends), (0, 1), "{startable}");
        let error = outcome.unwrap_err().to_string();
        assert!(error.contains("start a thread"), "{error}");
    }
}
