//! Result of a test.

use wirestamp_clock::Span;
use wirestamp_metrics::TwoWayResult;
use wirestamp_packet::stamp::{ClassOfService, ErrorEstimate, Format, TimestampInformation};

use crate::system_clock::ClockState;

/// Properties that the reflector reports of itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReflectorInfo {
    /// The worst clock state of its answers; none without answers.
    pub clock: Option<ClockState>,
    /// Its stamp method, if reported.
    pub stamps: Option<TimestampInformation>,
    /// Traffic class of the packets it received, if requested and reported.
    pub class: Option<ClassOfService>,
    /// Whether its times are TAI and the kernel's TAI offset is not configured here.
    pub unknown_scale: bool,
}

impl ReflectorInfo {
    /// Adds the error estimate of an answer.
    pub(super) fn add(&mut self, estimate: ErrorEstimate, tai: Option<Span>) {
        self.unknown_scale |= estimate.format() == Format::Ptp && tai.is_none();
        // Without a bound its times must not be used.
        let error = estimate.bound().unwrap_or(Span::MAX);
        let synchronised = estimate.is_synchronised() && estimate.bound().is_some();
        let worst = self.clock.unwrap_or(ClockState { synchronised, error, tai: None });
        self.clock = Some(ClockState {
            synchronised: worst.synchronised && synchronised,
            error: worst.error.max(error),
            tai: None,
        });
    }
}

/// Result of a test.
#[derive(Clone, Debug)]
pub struct TestReport {
    /// Results of each direction and of the round trip.
    pub both: TwoWayResult,
    /// Closing packets, sent after the end and counted nowhere else: their answers report the outcome of
    /// the last packets.
    pub closing: u64,
    /// State of the sender's clock.
    pub own: ClockState,
    /// Whether both ends are configured as having the same clock.
    pub same_clock: bool,
    /// Properties reported by the reflector.
    pub peer: ReflectorInfo,
    /// Datagrams without the correct authentication code.
    pub forged: u64,
    /// Datagrams that are not answers.
    pub not_stamp: u64,
    /// Answers of another session or from another address.
    pub strange: u64,
    /// Bytes of UDP payload of the packets.
    pub length: usize,
    /// Packets that the kernel refused.
    pub failed: u64,
    /// The kernel's first error.
    pub first_error: Option<String>,
    /// Datagrams that the kernel dropped at the sender's socket. Those that were answers are in the counts of lost
    /// packets.
    pub answers_dropped: u64,
    /// Packets with the kernel's send time. The others have the program's, which is earlier by the
    /// duration of a system call.
    pub stamped_by_kernel: u64,
    /// Answers with the kernel's send time.
    pub returned_by_kernel: u64,
}

impl TestReport {
    /// Why the times of the reflector are unknown; none if they are known.
    #[must_use]
    pub const fn unknown_scale(&self) -> Option<&'static str> {
        if self.peer.unknown_scale {
            Some("the reflector's times are TAI, and this kernel has no TAI offset configured")
        } else {
            None
        }
    }

    /// The reason why one-way delays are unknown; none if they are known.
    #[must_use]
    pub fn unknown_delay(&self) -> Option<String> {
        if let Some(reason) = self.unknown_scale() {
            return Some(reason.to_owned());
        }
        if self.same_clock {
            return None;
        }
        let there = self.peer.clock.is_none_or(|it| it.synchronised);
        unsynchronised(self.own.synchronised, there).map(str::to_owned)
    }
}

/// Why one-way delays are unknown, if the clock of this machine or that of the reflector is not synchronised.
#[must_use]
pub const fn unsynchronised(here: bool, there: bool) -> Option<&'static str> {
    match (here, there) {
        (true, true) => None,
        (false, true) => Some("this machine's clock is not synchronised to UTC"),
        (true, false) => Some("the reflector's clock is not synchronised to UTC"),
        (false, false) => Some("neither clock is synchronised to UTC"),
    }
}
