//! Observations of a tap: the stamp of each replica, by its number.

use wirestamp_capture::{CapturedPacket, Error, Sink};
use wirestamp_clock::RawStamp;

use super::frame;

/// The packets that have been seen at a tap.
pub(super) struct Tap {
    /// The stamp of each packet's replica, as it was read.
    pub(super) stamps: Vec<Option<RawStamp>>,
}

impl Tap {
    /// A tap with room for `packets` packets.
    pub(super) fn new(packets: usize) -> Self {
        Self { stamps: vec![None; packets] }
    }
}

impl Sink for Tap {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        let number = frame::number(packet.bytes).and_then(|number| usize::try_from(number).ok());
        // Warm-up packets have a number above all others.
        if let Some(place) = number.and_then(|number| self.stamps.get_mut(number)) {
            *place = Some(packet.stamp.raw);
        }
        Ok(())
    }
}
