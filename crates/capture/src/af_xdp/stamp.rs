//! Stamps of frames: the counter's, or the one that the program stored before the frame, `struct mark` of
//! `bpf/redirect.bpf.c` in native byte order.

use rustix::time::{ClockId, clock_gettime};

use crate::bpf_program::{Stamped, StampedBy, clock};
use crate::xsk::Umem;

/// Size of the stored stamp, which ends where the frame begins.
const BYTES: u32 = 16;
/// Identifies a stored stamp.
const MAGIC: u32 = 0x5753_5450;

/// Value, number of the clock, magic word.
type Mark = (u64, u32, u32);

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

    /// Frames with another stamp than requested: stamped here because the program's stamp is missing, or by the
    /// program because the network card's stamp is missing.
    pub(super) fn late(&self) -> u64 {
        self.late
    }

    /// The stamp of the frame at `address`, whose chunk is ours.
    pub(super) fn stamp(&mut self, umem: &Umem, address: u64) -> Stamped {
        if let StampedBy::Reader { counter, .. } = self.by {
            return Stamped { raw: counter.read(), kernel: None, late: false };
        }
        let mark = take(umem, address);
        let (value, clock) = mark.unwrap_or_else(|| match self.by {
            StampedBy::Counter { counter, .. } => (counter.read(), clock::COUNTER),
            _ => (now(), clock::MONOTONIC),
        });
        let stamped = self.by.stamped(value, clock);
        self.late += u64::from(mark.is_none() || stamped.late);
        stamped
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let nanos = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
    u64::try_from(nanos).unwrap_or(0)
}

/// Reads and erases the stored stamp of the frame at `address`: a value and the number of its clock. Without the
/// erasure, the next frame in this chunk would have this stamp if its driver keeps no metadata.
fn take(umem: &Umem, address: u64) -> Option<(u64, u32)> {
    let place = address.checked_sub(BYTES.into())?;
    if umem.chunk(place)? != umem.chunk(address)? {
        return None;
    }
    let (memory, offset) = umem.place(place);
    let (value, clock, magic): Mark =
        (memory.load(offset), memory.load(offset + 8), memory.load(offset + 12));
    if magic != MAGIC {
        return None;
    }
    memory.store(offset, [0_u64; 2]);
    Some((value, clock))
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Counter;

    use super::*;
    use crate::capabilities::CounterFunction;
    use crate::card_stamps;

    fn put(umem: &Umem, address: u64, mark: Mark) {
        let (memory, offset) = umem.place(address - u64::from(BYTES));
        memory.store(offset, mark.0);
        memory.store(offset + 8, [mark.1, mark.2]);
    }

    #[test]
    fn stored_stamp_is_read_once_and_needs_magic() {
        let umem = Umem::allocate(2048, 2).unwrap();
        let at = umem.address(1) + 256;
        let take = |address| take(&umem, address);
        put(&umem, at, (7, 1, MAGIC + 1));
        assert_eq!(take(at), None);
        put(&umem, at, (7, 1, MAGIC));
        assert_eq!((take(at), take(at)), (Some((7, 1)), None));
    }

    #[test]
    fn frames_without_requested_stamp_are_counted() {
        let umem = Umem::allocate(2048, 2).unwrap();
        let at = umem.address(1) + 256;
        let mut by_card = FrameStamper::new(StampedBy::Card);
        let mut stamp = |clock| {
            put(&umem, at, (7, clock, MAGIC));
            (by_card.stamp(&umem, at), by_card.late())
        };
        assert_eq!(stamp(clock::CARD), (Stamped { raw: 7, kernel: None, late: false }, 0));
        let instead = Stamped { raw: card_stamps::NONE, kernel: Some(7), late: true };
        assert_eq!(stamp(clock::MONOTONIC), (instead, 1));
        let unmarked = by_card.stamp(&umem, at);
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
        put(&umem, at, (7, clock::COUNTER, MAGIC));
        let stamped = stamper.stamp(&umem, at);
        assert_eq!((stamped, stamper.late()), (Stamped { raw: 7, kernel: None, late: false }, 0));
        let before = counter.read_ordered();
        let late = stamper.stamp(&umem, at);
        assert!((before..=counter.read_ordered()).contains(&late.raw), "{late:?}");
        assert_eq!((late.kernel, stamper.late()), (None, 1));
    }

    #[test]
    fn stamp_outside_the_chunk_is_ignored() {
        let umem = Umem::allocate(2048, 2).unwrap();
        let at = umem.address(1) + 8;
        put(&umem, at, (7, 1, MAGIC));
        for address in [at, 8, u64::MAX] {
            assert_eq!(take(&umem, address), None, "{address}");
        }
    }
}
