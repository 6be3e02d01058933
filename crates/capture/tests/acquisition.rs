//! The acquiring thread allocates nothing per packet. In a test binary of its own, because it replaces the
//! allocator of the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use wirestamp_capture::capabilities::works_without_card;
use wirestamp_capture::{Capture, CapturedPacket, Config, Error, Limit, PAIRS, Pair, Sink, Stop};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::Netns;

const PORT: u16 = 5000;

/// Counts the allocations of acquiring threads.
struct CountingAllocator;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

fn is_acquiring() -> bool {
    let mut name = [0_u8; 16];
    // SAFETY: PR_GET_NAME writes up to 16 bytes (prctl(2)). The system call allocates nothing, unlike the standard
    // library.
    unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    name.starts_with(b"ws-acquire\0")
}

// SAFETY: every call goes to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(is_acquiring().into(), Ordering::Relaxed);
        // SAFETY: the caller fulfils the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller fulfils the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Records the number of allocations at the first packet and at the last.
#[derive(Default)]
struct AllocationRecorder {
    first: Option<u64>,
    last: u64,
}

impl Sink for AllocationRecorder {
    fn packet(&mut self, _: &CapturedPacket<'_>) -> Result<(), Error> {
        self.last = ALLOCATIONS.load(Ordering::Relaxed);
        self.first.get_or_insert(self.last);
        Ok(())
    }
}

/// Number of allocations between the first and the last of the packets. The capturing thread counts as acquiring,
/// which it is in captures with one thread.
fn allocations(clock: &ClockService, namespace: &Netns, pair: &Pair, packets: u64) -> u64 {
    let config = Config {
        filter: Some(format!("udp port {PORT}")),
        limit: Limit { packets: Some(packets), duration: None },
        ..Config::new("lo", pair.method, pair.stamp)
    };
    let stop = Stop::new().unwrap();
    let capture = namespace.run(|| Capture::open(config, clock)).unwrap().unwrap();
    let mut noting = AllocationRecorder::default();
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("ws-acquire".to_owned());
        let run = || capture.run(clock, &stop, &mut noting);
        let capturing = thread.spawn_scoped(scope, run).unwrap();
        let socket = namespace.run(|| UdpSocket::bind("127.0.0.1:0")).unwrap().unwrap();
        while !capturing.is_finished() {
            socket.send_to(&[0; 100], (Ipv4Addr::LOCALHOST, PORT)).unwrap();
        }
        let (ledger, outcome) = capturing.join().unwrap();
        outcome.unwrap();
        assert_eq!(ledger.delivered, packets);
    });
    noting.last - noting.first.unwrap()
}

#[test]
fn allocation_of_acquiring_thread_is_counted() {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let thread = thread::Builder::new().name("ws-acquire".to_owned());
    drop(thread.spawn(|| Box::new(7)).unwrap().join().unwrap());
    assert!(ALLOCATIONS.load(Ordering::Relaxed) > before);
}

#[test]
fn packets_are_acquired_without_allocation() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let clock = ClockService::start(Counter::select()).unwrap();
    let namespace = Netns::new().unwrap();
    let up = namespace.command("ip").args(["link", "set", "lo", "up"]).status().unwrap();
    assert!(up.success());
    for pair in PAIRS.iter().filter(|pair| works_without_card(pair)) {
        let allocations = allocations(&clock, &namespace, pair, 20_000);
        assert!(allocations < 10, "{} {}: {allocations}", pair.method, pair.stamp);
    }
}
