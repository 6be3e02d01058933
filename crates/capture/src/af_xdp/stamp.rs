//! Stamps of frames: the counter's, or the one that the program stored before the frame, `struct mark` of
//! `bpf/redirect.bpf.c` in native byte order.
#![expect(unsafe_code, reason = "bytes before a frame, written by the kernel")]

use rustix::time::{ClockId, clock_gettime};

use crate::bpf_program::{Stamped, StampedBy, clock};
use crate::xsk::Umem;

/// Size of the stored stamp, which ends where the frame begins.
const BYTES: u32 = 16;
/// Identifies a stored stamp.
const MAGIC: u32 = 0x5753_5450;

#[repr(C)]
#[derive(Clone, Copy)]
struct Mark {
    value: u64,
    clock: u32,
    magic: u32,
}

const _: () = assert!(size_of::<Mark>() == BYTES as usize);

/// Determines the stamp of each frame.
#[derive(Debug)]
pub(super) struct FrameStamper {
    by: StampedBy,
    /// Frames with another stamp than requested.
    late: u64,
}

impl FrameStamper {
    pub(super) fn new(by: StampedBy) -> Self {
        Self { by, late: 0 }
    }

    /// Whether frames arrive stamped.
    pub(super) fn is_by_program(&self) -> bool {
        self.by.is_by_program()
    }

    /// Frames with another stamp than requested: without the program's, so stamped here, or without the network
    /// card's, so with the program's.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// The stamp of the frame at `address`.
    ///
    /// # Safety
    /// As for [`take`].
    pub(super) unsafe fn stamp(&mut self, umem: &Umem, address: u64) -> Stamped {
        if let StampedBy::Reader { counter, .. } = self.by {
            return Stamped { raw: counter.read(), kernel: None };
        }
        // SAFETY: guaranteed by the caller.
        let mark = unsafe { take(umem, address) };
        let (value, clock) = mark.unwrap_or_else(|| match self.by {
            StampedBy::Counter { counter, .. } => (counter.read(), clock::COUNTER),
            _ => (now(), clock::MONOTONIC),
        });
        let stamped = self.by.stamped(value, clock);
        self.late += u64::from(mark.is_none() || stamped.kernel.is_some());
        stamped
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let nanos = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
    u64::try_from(nanos).unwrap_or(0)
}

/// Reads and erases the stored stamp of the frame at `address`: a value and the number of its clock. Erasing
/// prevents that the next frame in this chunk is read with it, if its driver keeps no metadata.
///
/// # Safety
/// This process owns the frame's chunk, and no other thread reads the memory before the frame.
unsafe fn take(umem: &Umem, address: u64) -> Option<(u64, u32)> {
    let place = address.checked_sub(BYTES.into())?;
    if umem.chunk(place)? != umem.chunk(address)? {
        return None;
    }
    let mark = umem.at(place, BYTES).cast::<Mark>();
    // SAFETY: the place lies in the chunk of the frame, which the caller guarantees; any bits are a valid mark.
    let found = unsafe { mark.read_unaligned() };
    if found.magic != MAGIC {
        return None;
    }
    // SAFETY: as above.
    unsafe { mark.write_unaligned(Mark { value: 0, clock: 0, magic: 0 }) };
    Some((found.value, found.clock))
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Counter;

    use super::*;
    use crate::capabilities::CounterFunction;
    use crate::card_stamps;

    fn put(umem: &Umem, address: u64, mark: Mark) {
        let place = umem.at(address - u64::from(BYTES), BYTES).cast::<Mark>();
        // SAFETY: the place lies in the memory, which is exclusive to this test.
        unsafe { place.write_unaligned(mark) };
    }

    #[test]
    fn stored_stamp_is_read_once_and_needs_magic() {
        let umem = Umem::allocate(2048, 2).unwrap();
        let at = umem.address(1) + 256;
        // SAFETY: the memory is exclusive to this test.
        let take = |address| unsafe { take(&umem, address) };
        put(&umem, at, Mark { value: 7, clock: 1, magic: MAGIC + 1 });
        assert_eq!(take(at), None);
        put(&umem, at, Mark { value: 7, clock: 1, magic: MAGIC });
        assert_eq!((take(at), take(at)), (Some((7, 1)), None));
    }

    #[test]
    fn frames_without_requested_stamp_are_counted() {
        let umem = Umem::allocate(2048, 2).unwrap();
        let at = umem.address(1) + 256;
        let mut by_card = FrameStamper::new(StampedBy::Card);
        let mut stamp = |clock| {
            put(&umem, at, Mark { value: 7, clock, magic: MAGIC });
            // SAFETY: the memory is exclusive to this test.
            (unsafe { by_card.stamp(&umem, at) }, by_card.late())
        };
        assert_eq!(stamp(clock::CARD), (Stamped { raw: 7, kernel: None }, 0));
        let instead = Stamped { raw: card_stamps::NONE, kernel: Some(7) };
        assert_eq!(stamp(clock::MONOTONIC), (instead, 1));
        // SAFETY: the memory is exclusive to this test.
        let unmarked = unsafe { by_card.stamp(&umem, at) };
        assert!(unmarked.raw == card_stamps::NONE && unmarked.kernel > Some(7), "{unmarked:?}");
        assert_eq!(by_card.late(), 2);
    }

    #[test]
    fn missing_counter_stamp_is_taken_late() {
        let umem = Umem::allocate(2048, 2).unwrap();
        let at = umem.address(1) + 256;
        let counter = Counter::select();
        let by = StampedBy::Counter { counter, function: CounterFunction::Module };
        let mut stamper = FrameStamper::new(by);
        put(&umem, at, Mark { value: 7, clock: clock::COUNTER, magic: MAGIC });
        // SAFETY: the memory is exclusive to this test.
        let stamped = unsafe { stamper.stamp(&umem, at) };
        assert_eq!((stamped, stamper.late()), (Stamped { raw: 7, kernel: None }, 0));
        let before = counter.read_ordered();
        // SAFETY: the memory is exclusive to this test.
        let late = unsafe { stamper.stamp(&umem, at) };
        assert!((before..=counter.read_ordered()).contains(&late.raw), "{late:?}");
        assert_eq!((late.kernel, stamper.late()), (None, 1));
    }

    #[test]
    fn stamp_outside_the_chunk_is_ignored() {
        let umem = Umem::allocate(2048, 2).unwrap();
        let at = umem.address(1) + 8;
        put(&umem, at, Mark { value: 7, clock: 1, magic: MAGIC });
        for address in [at, 8, u64::MAX] {
            // SAFETY: the memory is exclusive to this test.
            assert_eq!(unsafe { take(&umem, address) }, None, "{address}");
        }
    }
}
