//! Where and by what packets are stamped.

use std::fmt::{self, Display};

use wirestamp_capture::{Method, StampSource};

use crate::probe::Source;

/// A capture with its stamp, and the way of the packets to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JitterSource {
    pub(super) capture: Source,
    /// Whether the receiving interface polls the packets in a softIRQ (NAPI), as a network card's driver does. Otherwise the
    /// kernel stamps each packet in the sender's call, and queues it for the softIRQ.
    pub(super) is_polled: bool,
}

const RING: Source = Source { method: Method::Ring, stamp: StampSource::Kernel };
const XDP_PASS: Source = Source { method: Method::XdpPass, stamp: StampSource::Xdp };

/// All. Each stamps flows of its own: the program and the reader of one would delay the stamp of another.
pub(super) const SOURCES: [JitterSource; 3] = [
    JitterSource { capture: RING, is_polled: true },
    JitterSource { capture: XDP_PASS, is_polled: true },
    JitterSource { capture: RING, is_polled: false },
];

impl Display for JitterSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.capture, if self.is_polled { "" } else { "-in-call" })
    }
}

/// The names of those that stamp in the softIRQ, or of all.
pub(super) fn names(only_in_softirq: bool) -> Vec<String> {
    let chosen = SOURCES.iter().filter(|source| source.is_polled || !only_in_softirq);
    chosen.map(ToString::to_string).collect()
}
