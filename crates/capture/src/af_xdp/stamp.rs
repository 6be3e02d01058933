//! A frame's stamp: the counter's, or the one that the program put in front of the frame, `struct
//! stamp` of `bpf/redirect.bpf.c` in native byte order.
#![expect(unsafe_code, reason = "bytes in front of a frame that the kernel put there")]

use rustix::time::{ClockId, clock_gettime};
use wirestamp_clock::Counter;

use crate::xsk::Umem;

/// The size of the stamp, which ends where the frame begins.
const BYTES: u32 = 16;
/// Says that it is one.
const MAGIC: u32 = 0x5753_5450;

#[repr(C)]
#[derive(Clone, Copy)]
struct Stamp {
    time: u64,
    magic: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<Stamp>() == BYTES as usize);

/// Where stamps come from.
#[derive(Debug)]
pub(super) struct Stamping {
    /// What is read when a frame is found; without it, the program's stamp is taken.
    counter: Option<Counter>,
    /// Frames that came without the program's stamp.
    late: u64,
}

impl Stamping {
    pub(super) fn new(counter: Option<Counter>) -> Self {
        Self { counter, late: 0 }
    }

    /// How many frames came without the program's stamp and were stamped here.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// The stamp of the frame at `address`.
    ///
    /// # Safety
    /// As for [`take`].
    pub(super) unsafe fn stamp(&mut self, umem: &Umem, address: u64) -> u64 {
        if let Some(counter) = self.counter {
            return counter.read();
        }
        // SAFETY: the caller vouches for it.
        unsafe { take(umem, address) }.unwrap_or_else(|| {
            self.late += 1;
            now()
        })
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let nanos = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
    u64::try_from(nanos).unwrap_or(0)
}

/// Takes the stamp of the frame at `address`, in nanoseconds of `CLOCK_MONOTONIC`, and erases it:
/// the next frame in this chunk, should its driver not keep metadata, must not be found with it.
///
/// # Safety
/// The chunk in which the frame lies is ours, and nobody else looks at what is in front of the
/// frame.
unsafe fn take(umem: &Umem, address: u64) -> Option<u64> {
    let place = address.checked_sub(BYTES.into())?;
    if umem.chunk(place)? != umem.chunk(address)? {
        return None;
    }
    let stamp = umem.at(place, BYTES).cast::<Stamp>();
    // SAFETY: the place lies in the chunk of the frame, which the caller vouches for; any bits are
    // a valid stamp.
    let found = unsafe { stamp.read_unaligned() };
    if found.magic != MAGIC {
        return None;
    }
    // SAFETY: as above.
    unsafe { stamp.write_unaligned(Stamp { time: 0, magic: 0, reserved: 0 }) };
    Some(found.time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(umem: &Umem, address: u64, stamp: Stamp) {
        let place = umem.at(address - u64::from(BYTES), BYTES).cast::<Stamp>();
        // SAFETY: the place lies in the memory, which nobody else has.
        unsafe { place.write_unaligned(stamp) };
    }

    #[test]
    fn a_stamp_is_found_once_and_only_with_its_magic_word() {
        let umem = Umem::allocate(2048, 2).unwrap();
        let at = umem.address(1) + 256;
        // SAFETY: nobody else has the memory.
        let take = |address| unsafe { take(&umem, address) };
        put(&umem, at, Stamp { time: 7, magic: MAGIC + 1, reserved: 0 });
        assert_eq!(take(at), None);
        put(&umem, at, Stamp { time: 7, magic: MAGIC, reserved: 0 });
        assert_eq!((take(at), take(at)), (Some(7), None));
    }

    #[test]
    fn what_lies_in_another_chunk_or_nowhere_is_no_stamp() {
        let umem = Umem::allocate(2048, 2).unwrap();
        let at = umem.address(1) + 8;
        put(&umem, at, Stamp { time: 7, magic: MAGIC, reserved: 0 });
        for address in [at, 8, u64::MAX] {
            // SAFETY: nobody else has the memory.
            assert_eq!(unsafe { take(&umem, address) }, None, "{address}");
        }
    }
}
