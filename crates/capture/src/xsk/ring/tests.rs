//! Both ends of a ring, as this process and the kernel have them.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsFd;
use std::thread;

use proptest::prelude::*;

use wirestamp_sys::mmap::Access;

use super::*;

const LAYOUT: Layout = Layout { producer: 0, consumer: 64, flags: 68, entries: 128 };

/// Both ends of a ring whose positions begin at `start`.
fn ends<T: Entry>(size: u32, start: u32) -> (Producer<T>, Consumer<T>) {
    let bytes = 128 + size as usize * size_of::<T>();
    let file: File = tempfile::tempfile().unwrap();
    file.set_len(bytes as u64).unwrap();
    let map = || Mapping::shared(file.as_fd(), 0, bytes, Access::ReadWrite).unwrap();
    let positions = map();
    positions.word(LAYOUT.producer).store(start, Ordering::Relaxed);
    positions.word(LAYOUT.consumer).store(start, Ordering::Relaxed);
    (Producer::new(map(), LAYOUT, size), Consumer::new(map(), LAYOUT, size))
}

#[test]
fn full_ring_rejects_and_empty_ring_returns_none() {
    let (mut ours, mut theirs) = ends::<u64>(4, 0);
    assert_eq!(theirs.pop(), None);
    assert!((0..4).all(|entry| ours.push(entry)));
    assert!(!ours.push(4));
    assert_eq!(theirs.pop(), None, "not published yet");
    ours.publish();
    assert_eq!(theirs.pop(), Some(0));
    assert_eq!(ours.free(), 0, "not released yet");
    theirs.release();
    assert_eq!(ours.free(), 1);
    assert!(ours.push(4));
    assert!(!ours.push(5));
}

#[test]
fn need_wakeup_flag_is_read() {
    let (ours, theirs) = ends::<Descriptor>(1, 0);
    assert!(!ours.needs_wakeup());
    theirs.ring.memory.word(LAYOUT.flags).store(libc::XDP_RING_NEED_WAKEUP, Ordering::Relaxed);
    assert!(ours.needs_wakeup());
}

#[test]
fn published_entries_are_read_complete_and_in_order() {
    let (mut ours, mut theirs) = ends::<Descriptor>(8, u32::MAX - 100);
    let entry = |n: u32| Descriptor { address: u64::from(n), length: n, options: n };
    let count = 20_000;
    thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..count {
                while !ours.push(entry(n)) {
                    thread::yield_now();
                }
                ours.publish();
            }
        });
        for n in 0..count {
            let found = loop {
                match theirs.pop() {
                    Some(found) => break found,
                    None => thread::yield_now(),
                }
            };
            theirs.release();
            assert_eq!(found, entry(n));
        }
    });
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Push(u64),
    Publish,
    Pop,
    Release,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<u64>().prop_map(Step::Push),
        1 => Just(Step::Publish),
        4 => Just(Step::Pop),
        1 => Just(Step::Release),
    ]
}

proptest! {
    #[test]
    fn ring_is_a_bounded_queue(
        power in 0_u32..6,
        start in prop_oneof![any::<u32>(), (u32::MAX - 70)..=u32::MAX],
        steps in prop::collection::vec(step(), 0..400),
    ) {
        let size = 1 << power;
        let (mut ours, mut theirs) = ends::<u64>(size, start);
        // Written, published and popped entries all occupy room until the release.
        let (mut written, mut published) = (Vec::new(), VecDeque::new());
        let mut popped = 0;
        for step in steps {
            match step {
                Step::Push(entry) => {
                    let used = written.len() + published.len() + popped;
                    prop_assert_eq!(ours.free() as usize, size as usize - used);
                    let room = used < size as usize;
                    prop_assert_eq!(ours.push(entry), room);
                    written.extend(room.then_some(entry));
                }
                Step::Publish => {
                    ours.publish();
                    published.extend(written.drain(..));
                }
                Step::Pop => {
                    let entry = theirs.pop();
                    prop_assert_eq!(entry, published.pop_front());
                    popped += usize::from(entry.is_some());
                }
                Step::Release => {
                    theirs.release();
                    popped = 0;
                }
            }
        }
    }
}
