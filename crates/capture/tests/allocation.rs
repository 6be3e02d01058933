//! The writer takes packets without allocation.

mod captured;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use captured::{give, read, stamp, writer};
use wirestamp_capture::Ledger;
use wirestamp_capture::file::{Destination, Format};
use wirestamp_clock::Domain;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct CountingAllocator;

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller fulfils the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) };
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn packets_are_written_without_allocation() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let packet = vec![7; 262_144];
    for format in [Format::Pcapng, Format::Pcap] {
        for (zstd, raw) in [(false, false), (false, true), (true, false)] {
            let to = Destination { format, zstd, ..Destination::new(&path) };
            let mut writer = writer(&to).unwrap();
            if raw {
                writer = writer.keep_raw(Domain::Counter, "tsc");
            }
            let lengths = (0..=packet.len()).step_by(1021).chain([262_143, 262_144]);
            let count = lengths.clone().count();
            let before = ALLOCATIONS.get();
            for length in lengths {
                // Every second packet has a larger error than the interface block.
                let error = if length % 2 == 0 { 0 } else { i64::MAX };
                give(&mut writer, stamp(0, error), &packet[..length]).unwrap();
            }
            assert_eq!(ALLOCATIONS.get() - before, 0, "{format}, zstd {zstd}, raw {raw}");
            writer.finish(&Ledger::default()).unwrap();
            let content = read(&path);
            content.end.unwrap();
            assert_eq!((content.packets.len(), content.interfaces.len()), (count, 1));
        }
    }
}
