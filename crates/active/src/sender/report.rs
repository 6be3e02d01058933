//! What came of a test.

use wirestamp_clock::Span;
use wirestamp_metrics::BothWays;
use wirestamp_packet::stamp::{ClassOfService, ErrorEstimate, TimestampInformation};

use crate::system_clock::ClockState;

/// What the reflector said of itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peer {
    /// How right its clock is, by the worst of its answers; none without any.
    pub clock: Option<ClockState>,
    /// How it stamps, if it says.
    pub stamps: Option<TimestampInformation>,
    /// In which class packets reached it, if it was asked and says.
    pub class: Option<ClassOfService>,
}

impl Peer {
    /// It said this of its clock.
    pub(super) fn hear(&mut self, error: ErrorEstimate) {
        let bound = error.bound().unwrap_or(Span::MAX);
        let (synchronised, error) = match self.clock {
            None => (error.is_synchronised(), bound),
            Some(worst) => (worst.synchronised && error.is_synchronised(), worst.error.max(bound)),
        };
        self.clock = Some(ClockState { synchronised, error });
    }
}

/// What came of a test.
#[derive(Clone, Debug)]
pub struct Report {
    /// Each direction, and the round trip.
    pub both: BothWays,
    /// Packets that were sent behind the end, and are counted nowhere else: their answers tell what became of
    /// the last ones.
    pub closing: u64,
    /// How right our clock was.
    pub own: ClockState,
    /// Whether both ends are said to have the same clock.
    pub same_clock: bool,
    /// What the reflector said of itself.
    pub peer: Peer,
    /// Datagrams without the right code.
    pub forged: u64,
    /// Datagrams that were no answers.
    pub not_stamp: u64,
    /// Packets that the kernel did not take.
    pub failed: u64,
    /// Why it did not take the first of them.
    pub first_error: Option<String>,
    /// Packets whose time of sending is the kernel's; those of the others are the program's, which are
    /// earlier by what a system call takes.
    pub stamped_by_kernel: u64,
    /// The same of answers.
    pub returned_by_kernel: u64,
}

impl Report {
    /// Why one-way delays are not known, if they are not.
    #[must_use]
    pub fn unknown_delay(&self) -> Option<String> {
        if self.same_clock {
            return None;
        }
        let whose = match (self.own.synchronised, self.peer.clock.is_none_or(|it| it.synchronised))
        {
            (true, true) => return None,
            (false, true) => "this machine's clock is not",
            (true, false) => "the reflector's clock is not",
            (false, false) => "neither clock is",
        };
        Some(format!("{whose} synchronised to UTC"))
    }
}
