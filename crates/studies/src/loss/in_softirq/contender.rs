//! What is done with each packet in the softIRQ.

use std::time::Duration;

use wirestamp_capture::softirq_cost::SoftirqStamp;
use wirestamp_capture::{Method, StampSource};

use crate::loss::capture::Program;

/// Number of contenders.
pub(super) const CONTENDERS: usize = 10;

/// Work for each packet, beside that of the network stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contender {
    /// None.
    Nothing,
    /// A stamp by a tracing program, which nothing reads.
    Program(SoftirqStamp),
    /// The kernel's own stamp, which nothing reads.
    KernelStamp,
    /// A capture to a file.
    Capture(Program),
}

impl Contender {
    /// Places in [`Self::all`]: no work, the stamps of the counter and of ktime, and the captures.
    pub(super) const NOTHING: usize = 0;
    pub(super) const RAW: usize = 1;
    pub(super) const KTIME: usize = 2;
    pub(super) const GENERIC: [usize; 2] = [4, 5];
    pub(super) const RING: usize = 6;
    pub(super) const RAW_CAPTURE: usize = 7;
    pub(super) const XDP_PASS: usize = 8;
    pub(super) const XDP: usize = 9;

    /// All, in the order of the figures' colours. `generic` are the programs that stand for generic ktime capture: by
    /// default, and with the buffer of ours.
    pub(super) const fn all([generic, with_our_buffer]: [Program; 2]) -> [Self; CONTENDERS] {
        [
            Self::Nothing,
            Self::Program(SoftirqStamp::Counter),
            Self::Program(SoftirqStamp::Kernel),
            Self::KernelStamp,
            Self::Capture(generic),
            Self::Capture(with_our_buffer),
            Self::Capture(Program::Ours(Method::Ring, StampSource::Kernel)),
            Self::Capture(Program::Ours(Method::TracePass, StampSource::Raw)),
            Self::Capture(Program::Ours(Method::XdpPass, StampSource::Xdp)),
            Self::Capture(Program::Ours(Method::Xdp, StampSource::Xdp)),
        ]
    }

    /// Its name in tables and raw results.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Program(SoftirqStamp::Counter) => "raw",
            Self::Program(SoftirqStamp::Kernel) => "ktime",
            Self::KernelStamp => "kernel-stamp",
            Self::Capture(program) => program.name(),
        }
    }

    /// Approximate duration of a round, apart from the packets.
    pub(super) const fn around(self) -> Duration {
        match self {
            Self::Capture(program) => program.around(),
            Self::Nothing | Self::Program(_) | Self::KernelStamp => Duration::from_millis(60),
        }
    }
}
