//! Set-up of the paper.

pub(crate) use crate::overhead::PAPER;

/// "20,000 packets were transmitted each time" (section V.B).
pub(super) const PACKETS: u64 = 20_000;

/// A way to capture and to stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// Ours, with the counter read where the packet is found, and converted on another core: the paper's
    /// multi-threaded stamps.
    Raw,
    /// Ours, with the kernel's stamps.
    Kernel,
    /// Generic ktime capture: dumpcap, as the paper has it, or libpcap where that is not installed.
    Generic,
}

impl Method {
    /// All, in the order of the figures' colours.
    pub(super) const ALL: [Self; 3] = [Self::Raw, Self::Kernel, Self::Generic];
}
