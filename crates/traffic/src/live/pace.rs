//! Schedule of a run: rate and bursts.

use wirestamp_clock::Span;

use super::LiveError;
use super::error::{MAX_BURST, MAX_RATE};

/// Frames that the kernel hands to the driver together: its default batch size
/// (`Documentation/bpf/bpf_prog_run.rst`).
pub(super) const BATCH: u32 = 64;

/// Default max bursts per second. Each burst costs a system call that sets up pages for a batch:
/// tens of microseconds.
const BURSTS_PER_SECOND: u64 = 5_000;

/// Rate and burst size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Frames per second; `None` for full speed.
    rate: Option<u64>,
    burst: u32,
}

impl Pace {
    /// As fast as the machine can.
    #[must_use]
    pub const fn full_speed() -> Self {
        Self { rate: None, burst: MAX_BURST }
    }

    /// `frames_per_second` frames (1 to 1,000,000,000, limited by the machine), in at most 5,000
    /// bursts per second: single frames up to that rate, and whole batches of 64 above 320,000 frames
    /// per second.
    ///
    /// # Errors
    /// [`LiveError::Rate`].
    pub fn rate(frames_per_second: u64) -> Result<Self, LiveError> {
        if !(1..=MAX_RATE).contains(&frames_per_second) {
            return Err(LiveError::Rate(frames_per_second));
        }
        let burst = frames_per_second.div_ceil(BURSTS_PER_SECOND);
        let burst = u32::try_from(burst).unwrap_or(MAX_BURST).min(MAX_BURST);
        let burst = if burst > BATCH { burst.next_multiple_of(BATCH) } else { burst };
        Ok(Self { rate: Some(frames_per_second), burst })
    }

    /// The same rate in bursts of `frames` (1 to 4096), each sent back to back when its first frame
    /// is due.
    ///
    /// # Errors
    /// [`LiveError::Burst`].
    pub fn with_burst(self, frames: u32) -> Result<Self, LiveError> {
        if !(1..=MAX_BURST).contains(&frames) {
            return Err(LiveError::Burst(frames));
        }
        Ok(Self { burst: frames, ..self })
    }

    /// Frames of a burst, sent back to back.
    #[must_use]
    pub const fn burst(self) -> u32 {
        self.burst
    }

    /// Whether bursts have deadlines. At full speed all are due at the start.
    pub(super) const fn has_deadlines(self) -> bool {
        self.rate.is_some()
    }

    /// Due time of frame `sequence` after the start, rounded down from the exact time so that errors
    /// do not add up. Saturates after 292 years.
    fn offset(self, sequence: u64) -> Span {
        let Some(rate) = self.rate else { return Span::ZERO };
        let nanos = u128::from(sequence) * 1_000_000_000 / u128::from(rate);
        Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }

    /// All bursts of a run of `frames` frames.
    pub(super) fn bursts(self, frames: u64) -> Bursts {
        Bursts { pace: self, next: 0, frames }
    }
}

/// Frames sent back to back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Burst {
    /// Due time after the start.
    pub(super) offset: Span,
    pub(super) frames: u32,
}

/// The bursts of a run.
#[derive(Debug)]
pub(super) struct Bursts {
    pace: Pace,
    next: u64,
    frames: u64,
}

impl Iterator for Bursts {
    type Item = Burst;

    fn next(&mut self) -> Option<Burst> {
        let left = u32::try_from(self.frames - self.next).unwrap_or(u32::MAX);
        let frames = self.pace.burst.min(left);
        let burst = Burst { offset: self.pace.offset(self.next), frames };
        self.next += u64::from(frames);
        (frames > 0).then_some(burst)
    }
}

/// Number of repetitions and batch size to pass to the kernel for `frames` frames. The kernel runs
/// whole batches only, so the batch size divides the repetitions; the result may be fewer than
/// `frames`.
pub(super) const fn repetitions(frames: u32) -> (u32, u32) {
    if frames < BATCH { (frames, frames) } else { (frames - frames % BATCH, BATCH) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_frame_is_sent_and_never_early(
            rate in 1_u64..20_000_000, burst in 1_u32..=MAX_BURST, frames in 0_u64..50_000,
        ) {
            let pace = Pace::rate(rate).unwrap().with_burst(burst).unwrap();
            let mut sent = 0_u64;
            for due in pace.bursts(frames) {
                prop_assert!((1..=burst).contains(&due.frames));
                // Within a nanosecond of sequence / rate, however many came before.
                let exact = u128::from(sent) * 1_000_000_000;
                let nanos = u128::try_from(due.offset.as_nanos()).unwrap();
                prop_assert!(nanos * u128::from(rate) <= exact);
                prop_assert!((nanos + 1) * u128::from(rate) > exact);
                sent += u64::from(due.frames);
            }
            prop_assert_eq!(sent, frames);
        }

        #[test]
        fn batch_size_divides_repetitions(frames in 1_u32..=MAX_BURST) {
            let (repeat, batch) = repetitions(frames);
            prop_assert!((1..=frames).contains(&repeat) && (1..=BATCH).contains(&batch));
            prop_assert!(repeat % batch == 0 && frames - repeat < BATCH);
        }
    }

    #[test]
    fn burst_grows_with_rate() {
        let burst = |rate| Pace::rate(rate).unwrap().burst();
        assert_eq!([burst(1), burst(1_000), burst(5_000), burst(5_001)], [1, 1, 1, 2]);
        assert_eq!([burst(320_000), burst(320_001), burst(1_000_000)], [64, 128, 256]);
        assert_eq!(burst(MAX_RATE), MAX_BURST);
    }

    #[test]
    fn full_speed_bursts_are_due_at_once() {
        let bursts: Vec<_> = Pace::full_speed().bursts(10_000).collect();
        assert_eq!(bursts.iter().map(|burst| burst.frames).collect::<Vec<_>>(), [4096, 4096, 1808]);
        assert!(bursts.iter().all(|burst| burst.offset == Span::ZERO));
        assert!(!Pace::full_speed().has_deadlines() && Pace::rate(1).unwrap().has_deadlines());
    }

    #[test]
    fn invalid_rates_and_bursts_are_rejected() {
        assert!(matches!(Pace::rate(0), Err(LiveError::Rate(0))));
        assert!(matches!(Pace::rate(MAX_RATE + 1), Err(LiveError::Rate(_))));
        assert!(matches!(Pace::full_speed().with_burst(0), Err(LiveError::Burst(0))));
        assert!(matches!(Pace::full_speed().with_burst(4097), Err(LiveError::Burst(4097))));
    }
}
