//! What came of a test.

use wirestamp_clock::Span;
use wirestamp_metrics::TwoWayResult;
use wirestamp_packet::stamp::{ClassOfService, ErrorEstimate, Format, TimestampInformation};

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
    /// Whether its times are TAI, and how far that is ahead of UTC is not known here.
    pub unknown_scale: bool,
}

impl Peer {
    /// It said this of its clock.
    pub(super) fn hear(&mut self, estimate: ErrorEstimate, tai: Option<Span>) {
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

/// What came of a test.
#[derive(Clone, Debug)]
pub struct Report {
    /// Each direction, and the round trip.
    pub both: TwoWayResult,
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
    /// Answers that are not to this session, or did not come from where its packets go to.
    pub strange: u64,
    /// Bytes of UDP payload of the packets.
    pub length: usize,
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
        if self.peer.unknown_scale {
            let how =
                "the reflector's times are TAI, and this kernel was not told how far ahead that is";
            return Some(how.to_owned());
        }
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
