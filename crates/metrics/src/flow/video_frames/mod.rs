//! Frames of a video stream: complete or damaged, key frames, rates, and freezes.
//!
//! A frame is a run of packets with one RTP timestamp; the marker bit is set in its last packet (RFC 3551 section 5.1).
//! Where the payload shows the begin and the end of a frame, they are used, too.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | assigns packets to frames |
//! | `frame.rs` | a frame while its packets arrive |
//! | `settled.rs`, `judgement.rs` | frames whose packets can arrive no more: complete, damaged, or undetermined |
//! | `freezes.rs`, `per_second.rs` | freezes; amounts in whole seconds |
//! | `report.rs`, `unknown.rs` | the report |

mod frame;
mod freezes;
mod judgement;
mod per_second;
mod report;
mod settled;
#[cfg(test)]
mod tests;
mod unknown;

use std::collections::VecDeque;

use wirestamp_clock::{Time, Utc};

pub(super) use frame::{FramePacket, FramePart};
pub use report::VideoFramesReport;
pub use unknown::UnknownVideoValue;

use frame::Frame;
use per_second::PerSecond;
use settled::Settled;

/// Numbers behind the highest one from which no packet can arrive as late, and a few more (see `rtp/sequence.rs`).
const WINDOW: u64 = 128;

/// Max frames whose packets may still arrive.
const MAX_PENDING: usize = 256;

/// Frames of a stream, in bounded memory.
#[derive(Clone, Debug, Default)]
pub(super) struct VideoFrames {
    /// Frames whose packets may still arrive, by number.
    pending: VecDeque<Frame>,
    settled: Settled,
    highest: u64,
    first_arrival: Option<Time<Utc>>,
    last_arrival: Option<Time<Utc>>,
    /// Bytes of the payload, without duplicates.
    bytes: u64,
    bytes_per_second: PerSecond,
}

impl VideoFrames {
    /// Records a packet in the order of arrival; no duplicate.
    pub(super) fn record(&mut self, packet: &FramePacket) {
        let first = *self.first_arrival.get_or_insert(packet.arrival);
        self.last_arrival = self.last_arrival.max(Some(packet.arrival));
        if packet.part.is_media() {
            self.bytes += u64::from(packet.bytes);
            let second = per_second::second(first, packet.arrival);
            self.bytes_per_second.add(second, u64::from(packet.bytes));
        }
        let after = self.pending.partition_point(|frame| frame.first <= packet.number);
        let takes = |place: &usize| self.pending.get(*place).is_some_and(|it| it.takes(packet));
        let place = [after.checked_sub(1), Some(after)].into_iter().flatten().find(takes);
        match place.and_then(|place| self.pending.get_mut(place)) {
            Some(frame) => frame.add(packet),
            None => self.pending.insert(after, Frame::new(packet)),
        }
        self.highest = self.highest.max(packet.number);
        self.settled.pattern.has_ends |= packet.ends();
        while self.pending.len() > 1 && self.is_front_final() {
            self.settle_front();
        }
    }

    /// The sender restarted: numbers and timestamps after it are unrelated to those before.
    pub(super) fn restart(&mut self) {
        while !self.pending.is_empty() {
            self.settle_front();
        }
        self.settled.interrupt();
        self.highest = 0;
    }

    /// Whether no packet of the first frame can arrive any more.
    fn is_front_final(&self) -> bool {
        let is_old = |frame: &Frame| frame.last.saturating_add(WINDOW) < self.highest;
        self.pending.len() > MAX_PENDING || self.pending.front().is_some_and(is_old)
    }

    fn settle_front(&mut self) {
        let Some(frame) = self.pending.pop_front() else { return };
        let next = self.pending.front().map(|frame| frame.first);
        let begin = self.first_arrival.unwrap_or(frame.completed);
        self.settled.record(frame, next, begin);
    }
}
