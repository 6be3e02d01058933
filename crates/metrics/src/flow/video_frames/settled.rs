//! Counts of video frames whose packets can arrive no more.

use wirestamp_clock::{Time, Utc};
use wirestamp_packet::video::FrameBegin;

use super::frame::Frame;
use super::freezes::Freezes;
use super::judgement::{FramePattern, FrameState};
use super::per_second::{self, PerSecond};
use super::unknown::UnknownVideoValue;

/// Max share of frames with an unreadable payload, as one in this many: with more, the key frames are unknown.
const UNREADABLE_ONE_IN: u64 = 10;

/// Counts of the frames so far, in the order of their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct Settled {
    /// The last frame, or packets that are not video.
    before: Option<Frame>,
    pub(super) pattern: FramePattern,
    pub(super) complete: u64,
    pub(super) damaged: u64,
    pub(super) undetermined: u64,
    /// Complete key frames.
    key: u64,
    /// Complete frames that may be key frames, because the capture cut off their headers.
    cut: u64,
    unreadable: u64,
    reason: Option<UnknownVideoValue>,
    pub(super) max_bytes: Option<u64>,
    pub(super) freezes: Freezes,
    pub(super) frames_per_second: PerSecond,
    /// When the first and the last frame that is not damaged could be rendered here.
    first_rendered: Option<Time<Utc>>,
    pub(super) last_rendered: Option<Time<Utc>>,
}

impl Settled {
    /// Counts a frame, with the first number after it. The stream's first packet arrived at `begin`.
    pub(super) fn record(&mut self, frame: Frame, next: Option<u64>, begin: Time<Utc>) {
        let before = self.before.replace(frame);
        if !frame.is_media {
            return;
        }
        let before = before.as_ref();
        self.pattern.record(&frame, before);
        // A frame does not begin with a continuation: the payload is something else.
        let follows = before.is_some_and(|before| frame.missing_after(before) == 0);
        let contradicts = follows && frame.begin == FrameBegin::Continues;
        let unreadable =
            frame.unreadable.or(contradicts.then_some(UnknownVideoValue::UnreadablePayload));
        self.unreadable += u64::from(unreadable.is_some());
        self.reason = self.reason.or(unreadable);
        match self.pattern.judge(&frame, before, next) {
            FrameState::Damaged => {
                self.damaged += 1;
                return;
            }
            FrameState::Undetermined => self.undetermined += 1,
            FrameState::Complete => {
                self.complete += 1;
                self.key += u64::from(frame.is_key);
                self.cut += u64::from(frame.is_cut && !frame.is_key);
                self.max_bytes = self.max_bytes.max(Some(frame.bytes));
            }
        }
        // Frames are rendered in order.
        let rendered = self.last_rendered.map_or(frame.completed, |it| it.max(frame.completed));
        self.first_rendered.get_or_insert(rendered);
        self.last_rendered = Some(rendered);
        self.freezes.record(rendered);
        self.frames_per_second.add(per_second::second(begin, rendered), 1);
    }

    /// The sender restarted.
    pub(super) const fn interrupt(&mut self) {
        self.before = None;
        self.pattern.interrupt();
    }

    /// Frames of which a packet arrived.
    pub(super) const fn frames(&self) -> u64 {
        self.complete + self.damaged + self.undetermined
    }

    /// Complete key frames.
    pub(super) fn key_frames(&self) -> Result<u64, UnknownVideoValue> {
        if self.unreadable.saturating_mul(UNREADABLE_ONE_IN) > self.frames() {
            return Err(self.reason.unwrap_or(UnknownVideoValue::UnreadablePayload));
        }
        if self.cut > 0 {
            return Err(UnknownVideoValue::CutPayload);
        }
        Ok(self.key)
    }

    /// Time between the first and the last frame, in nanoseconds, and the frames after the first.
    pub(super) fn rendered(&self) -> Option<(i64, u64)> {
        let nanos = (self.last_rendered? - self.first_rendered?).as_nanos();
        let after_first = (self.complete + self.undetermined).checked_sub(1)?;
        (nanos > 0).then_some((nanos, after_first))
    }
}
