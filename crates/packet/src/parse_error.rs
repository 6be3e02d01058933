//! Why a frame is not a packet.

/// Reason why a frame is not a [`Packet`](crate::Packet). Callers count such frames; they are not errors of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The frame carries something other than IPv4 or IPv6, such as ARP.
    #[error("cannot read the frame: it carries no IP packet; it is excluded")]
    NotIp,
    /// The captured bytes end inside the link or IP header.
    #[error(
        "cannot read the frame: it ends inside its IP header; capture with a longer snap length"
    )]
    CutShort,
    /// Inconsistent IP header: a wrong version, or a length below its minimum.
    #[error("cannot read the frame: its IP header is malformed; it is excluded")]
    Malformed,
}
