//! Whether all packets of a video frame arrived.

use wirestamp_packet::video::FrameBegin;

use super::frame::Frame;

/// Result for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameState {
    /// All packets arrived.
    Complete,
    /// A packet is missing.
    Damaged,
    /// It is unknown whether the missing packets beside it are of this frame.
    Undetermined,
}

/// What is known of a stream from its earlier frames.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FramePattern {
    /// The sender marks the ends of frames.
    pub(super) has_ends: bool,
    /// The last step of the timestamps between two frames, and whether it equals the one before.
    step: u32,
    is_regular: bool,
}

impl FramePattern {
    /// Follows a frame and the one before it.
    pub(super) fn record(&mut self, frame: &Frame, before: Option<&Frame>) {
        let neighbour = before.filter(|it| it.is_media && frame.missing_after(it) == 0);
        if let Some(before) = neighbour {
            let step = frame.timestamp.wrapping_sub(before.timestamp);
            self.is_regular = step == self.step && step.cast_signed() > 0;
            self.step = step;
        }
    }

    /// The sender restarted.
    pub(super) const fn interrupt(&mut self) {
        (self.step, self.is_regular) = (0, false);
    }

    /// Judges a frame by its packets, by the frame before, and by the first number after it.
    pub(super) fn judge(
        &self,
        frame: &Frame,
        before: Option<&Frame>,
        next: Option<u64>,
    ) -> FrameState {
        if frame.has_gap() {
            return FrameState::Damaged;
        }
        match (self.has_begin(frame, before), self.has_end(frame, next)) {
            (Some(false), _) | (_, Some(false)) => FrameState::Damaged,
            (Some(true), Some(true)) => FrameState::Complete,
            _ => FrameState::Undetermined,
        }
    }

    /// Whether the last packet arrived; none if it is unknown.
    fn has_end(&self, frame: &Frame, next: Option<u64>) -> Option<bool> {
        if frame.has_end() || frame.last.checked_add(1).is_some_and(|it| next == Some(it)) {
            return Some(true);
        }
        next.filter(|_| self.has_ends).map(|_| false)
    }

    /// Whether the first packet arrived; none if it is unknown.
    fn has_begin(&self, frame: &Frame, before: Option<&Frame>) -> Option<bool> {
        let missing = before.map(|before| frame.missing_after(before));
        match (frame.begin, missing) {
            (FrameBegin::First, _) | (_, Some(0)) => Some(true),
            // The capture may have begun in it.
            (_, None) => None,
            (FrameBegin::Continues, Some(_)) => Some(false),
            (FrameBegin::Possible, Some(missing)) => self.explain(frame, before?, missing),
        }
    }

    /// Whether the packets missing between two frames are explained without the later frame: as the end of the earlier one,
    /// and as whole frames between them, of at least a packet each, by regular timestamps.
    fn explain(&self, frame: &Frame, before: &Frame, missing: u64) -> Option<bool> {
        if !before.is_media {
            return None;
        }
        let of_before = u64::from(!before.has_end());
        if of_before > 0 && !self.has_ends {
            return None;
        }
        let others = missing.checked_sub(of_before)?;
        if others == 0 {
            return Some(true);
        }
        let distance = frame.timestamp.wrapping_sub(before.timestamp);
        let is_multiple = self.is_regular && distance.is_multiple_of(self.step);
        let steps = distance.checked_div(self.step).filter(|_| is_multiple)?;
        match u64::from(steps.checked_sub(1)?) {
            0 if of_before == 0 => Some(false),
            frames_between if frames_between == others => Some(true),
            _ => None,
        }
    }
}
