//! Which reception method goes with which timestamp source. The table is data: the command line
//! prints it, and the pipeline opens what it says.

use std::fmt;

use wirestamp_clock::Domain;

use crate::Error;

/// How packets get from the interface to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A ring that the kernel's packet socket shares with us
    /// (`Documentation/networking/packet_mmap.rst`).
    Ring,
    /// An XDP program that copies each frame's head to a BPF ring buffer and passes the frame on.
    XdpPass,
}

/// Which clock is read for a packet, and by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StampSource {
    /// The kernel's real-time clock, read where the packet enters the network stack.
    Kernel,
    /// The CPU's counter, read by the acquisition thread when it finds the packet.
    Raw,
    /// The kernel's monotonic clock, read in the driver's softIRQ by an XDP program.
    Xdp,
}

/// A method, a source that it can stamp with, and where that stamp is taken.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    /// The reception method.
    pub method: Method,
    /// The timestamp source.
    pub stamp: StampSource,
    /// Where on a packet's way up the clock is read.
    pub taken: &'static str,
    /// What of a packet is captured, where that is not everything up to the snap length.
    pub limits: &'static str,
}

/// Every pair that can be asked for; the first of a method is its default.
pub const PAIRS: &[Pair] = &[
    Pair {
        method: Method::Ring,
        stamp: StampSource::Kernel,
        taken: "by the kernel, where the packet enters the network stack",
        limits: "",
    },
    Pair {
        method: Method::Ring,
        stamp: StampSource::Raw,
        taken: "by the acquisition thread, when it finds the packet in the ring",
        limits: "",
    },
    Pair {
        method: Method::XdpPass,
        stamp: StampSource::Xdp,
        taken: "in the driver's softIRQ, before the network stack",
        limits: "incoming packets only; the first 2048 bytes of each at most",
    },
];

impl Method {
    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ring => "ring",
            Self::XdpPass => "xdp-pass",
        }
    }

    /// The source used when none is asked for.
    #[must_use]
    pub fn default_stamp(self) -> StampSource {
        match self {
            Self::Ring => StampSource::Kernel,
            Self::XdpPass => StampSource::Xdp,
        }
    }
}

impl StampSource {
    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Raw => "raw",
            Self::Xdp => "xdp",
        }
    }

    /// The clock that the stamp's value is read from.
    #[must_use]
    pub fn domain(self) -> Domain {
        match self {
            Self::Kernel => Domain::Realtime,
            Self::Raw => Domain::Counter,
            Self::Xdp => Domain::Monotonic,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for StampSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The pair of `method` and `stamp`.
///
/// # Errors
/// When the method cannot stamp that way; the error names what it can do.
pub fn pair(method: Method, stamp: StampSource) -> Result<&'static Pair, Error> {
    PAIRS.iter().find(|pair| pair.method == method && pair.stamp == stamp).ok_or_else(|| {
        let of_method: Vec<_> =
            PAIRS.iter().filter(|p| p.method == method).map(|p| p.stamp.name()).collect();
        Error::NoSuchPair {
            method: method.to_string(),
            stamp: stamp.to_string(),
            alternatives: of_method.join(" and "),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_can_do_its_default_stamp() {
        for method in [Method::Ring, Method::XdpPass] {
            assert!(pair(method, method.default_stamp()).is_ok(), "{method}");
        }
    }

    #[test]
    fn an_impossible_pair_names_what_is_possible() {
        let error = pair(Method::Ring, StampSource::Xdp).unwrap_err();
        assert_eq!(error.to_string(), "method ring has no xdp stamps; it has kernel and raw");
    }
}
