//! A frame's stamp: the counter's, or the one that the program put in front of the frame, `struct
//! mark` of `bpf/redirect.bpf.c` in native byte order.
#![expect(unsafe_code, reason = "bytes in front of a frame that the kernel put there")]

use rustix::time::{ClockId, clock_gettime};

use crate::bpf_program::{Stamped, StampedBy, clock};
use crate::xsk::Umem;

/// The size of the stamp, which ends where the frame begins.
const BYTES: u32 = 16;
/// Says that it is one.
const MAGIC: u32 = 0x5753_5450;

#[repr(C)]
#[derive(Clone, Copy)]
struct Mark {
    value: u64,
    clock: u32,
    magic: u32,
}

const _: () = assert!(size_of::<Mark>() == BYTES as usize);

/// Where stamps come from.
#[derive(Debug)]
pub(super) struct Stamping {
    by: StampedBy,
    /// Frames that were stamped otherwise.
    late: u64,
}

impl Stamping {
    pub(super) fn new(by: StampedBy) -> Self {
        Self { by, late: 0 }
    }

    /// Whether frames come with their stamps.
    pub(super) fn is_by_program(&self) -> bool {
        self.by.is_program()
    }

    /// How many frames have another stamp than was asked for: they came without the program's and
    /// were stamped here, or without the network card's and have the program's.
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
        // SAFETY: the caller vouches for it.
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

/// Takes the stamp of the frame at `address`, a value and the number of its clock, and erases it: the
/// next frame in this chunk, should its driver not keep metadata, must not be found with it.
///
/// # Safety
/// The chunk in which the frame lies is ours, and nobody else looks at what is in front of the
/// frame.
unsafe fn take(umem: &Umem, address: u64) -> Option<(u64, u32)> {
    let place = address.checked_sub(BYTES.into())?;
    if umem.chunk(place)? != umem.chunk(address)? {
        return None;
    }
    let mark = umem.at(place, BYTES).cast::<Mark>();
    // SAFETY: the place lies in the chunk of the frame, which the caller vouches for; any bits are
    // a valid mark.
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
        // SAFETY: the place lies in the memory, which nobody else has.
        unsafe { place.write_unaligned(mark) };
    }

    #[test]
    fn a_stamp_is_found_once_and_only_with_its_magic_word() {
        let umem = Umem::allocate(2048, 2).unwrap();
        let at = umem.address(1) + 256;
        // SAFETY: nobody else has the memory.
        let take = |address| unsafe { take(&umem, address) };
        put(&umem, at, Mark { value: 7, clock: 1, magic: MAGIC + 1 });
        assert_eq!(take(at), None);
        put(&umem, at, Mark { value: 7, clock: 1, magic: MAGIC });
        assert_eq!((take(at), take(at)), (Some((7, 1)), None));
    }

    #[test]
    fn each_frame_without_the_stamp_that_was_asked_for_is_counted() {
        let umem = Umem::allocate(2048, 2).unwrap();
        let at = umem.address(1) + 256;
        let mut by_card = Stamping::new(StampedBy::Card);
        let mut stamp = |clock| {
            put(&umem, at, Mark { value: 7, clock, magic: MAGIC });
            // SAFETY: nobody else has the memory.
            (unsafe { by_card.stamp(&umem, at) }, by_card.late())
        };
        assert_eq!(stamp(clock::CARD), (Stamped { raw: 7, kernel: None }, 0));
        let instead = Stamped { raw: card_stamps::NONE, kernel: Some(7) };
        assert_eq!(stamp(clock::MONOTONIC), (instead, 1));
        // SAFETY: nobody else has the memory.
        let unmarked = unsafe { by_card.stamp(&umem, at) };
        assert!(unmarked.raw == card_stamps::NONE && unmarked.kernel > Some(7), "{unmarked:?}");
        assert_eq!(by_card.late(), 2);
    }

    #[test]
    fn where_the_programs_counter_did_not_arrive_the_counter_is_read_late() {
        let umem = Umem::allocate(2048, 2).unwrap();
        let at = umem.address(1) + 256;
        let counter = Counter::select();
        let by = StampedBy::Counter { counter, function: CounterFunction::Module };
        let mut stamping = Stamping::new(by);
        put(&umem, at, Mark { value: 7, clock: clock::COUNTER, magic: MAGIC });
        // SAFETY: nobody else has the memory.
        let stamped = unsafe { stamping.stamp(&umem, at) };
        assert_eq!((stamped, stamping.late()), (Stamped { raw: 7, kernel: None }, 0));
        let before = counter.read_ordered();
        // SAFETY: nobody else has the memory.
        let late = unsafe { stamping.stamp(&umem, at) };
        assert!((before..=counter.read_ordered()).contains(&late.raw), "{late:?}");
        assert_eq!((late.kernel, stamping.late()), (None, 1));
    }

    #[test]
    fn what_lies_in_another_chunk_or_nowhere_is_no_stamp() {
        let umem = Umem::allocate(2048, 2).unwrap();
        let at = umem.address(1) + 8;
        put(&umem, at, Mark { value: 7, clock: 1, magic: MAGIC });
        for address in [at, 8, u64::MAX] {
            // SAFETY: nobody else has the memory.
            assert_eq!(unsafe { take(&umem, address) }, None, "{address}");
        }
    }
}
