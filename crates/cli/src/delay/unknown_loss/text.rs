//! The reasons of unknown loss as text, with their remedies.

use std::fmt::{self, Display};

use super::UnknownLoss;
use crate::capture::with_sent_packets;

impl Display for UnknownLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::OtherSegments {
            return f.write_str(
                "loss of TCP is unknown: segments that A observed are missing at B, and B observed others of the same \
                 connection; a network card or kernel merged short segments (GRO) or divided them differently (TSO), a \
                 device on the path changes the connection, or packets took longer than --timeout; switch offloads off \
                 with `ethtool -K IF gro off lro off tso off gso off`, or capture on another machine",
            );
        }
        if *self == Self::OtherDatagrams {
            return f.write_str(
                "loss of some flows is unknown: packets that A observed are missing at B, and B observed others of the \
                 same flow; the capture at one point contains UDP datagrams that are longer than 1500 bytes, which are \
                 several datagrams on the network (UDP GSO, GRO); switch offloads off with `ethtool -K IF \
                 tx-udp-segmentation off rx-udp-gro-forwarding off gro off`, or capture on another machine",
            );
        }
        if *self == Self::CutSegments {
            return f.write_str(
                "loss of TCP is unknown: merged segments (GRO, TSO) were captured only in part, so that not all packets \
                 in them are known; capture with a larger snap length, or switch offloads off with \
                 `ethtool -K IF gro off lro off tso off gso off`",
            );
        }
        if let Self::TwiceAtA(packets) = *self {
            return write!(
                f,
                "loss is unknown: A has {packets} packets twice, as a capture at `any` of a router or at a mirror port \
                 has, and B has them once; capture A at one interface (-i IF), select one in the file (FILE#IF), or \
                 remove the second packets of a mirror port with `editcap -d`"
            );
        }
        if let Self::NothingAtB(method) = *self {
            return write!(
                f,
                "loss is unknown: B captured no packet; a router sends out what it forwards: add {}, or capture B \
                 behind the router; if the packets should be received at B, -Q in counts them as lost",
                with_sent_packets(method)
            );
        }
        f.write_str(match self {
            Self::OfSomeFlows(_) => {
                "loss of some flows is unknown: their packets were not matched, although B observed others that may be \
                 theirs; "
            }
            _ => "loss is unknown: hardly any packet was matched, although B observed about as many as A; ",
        })?;
        match self.cause() {
            Self::OtherSegments
            | Self::OtherDatagrams
            | Self::CutSegments
            | Self::OfSomeFlows(_)
            | Self::NothingAtB(_)
            | Self::TwiceAtA(_) => Ok(()),
            Self::Fragments => f.write_str(
                "packets are fragments at one point only; capture both points before packets are fragmented, or \
                 avoid it with a smaller packet size or a larger MTU",
            ),
            Self::Tunnel(name) => write!(
                f,
                "packets are in a tunnel ({name}) at one point only; capture both points inside of it, or both outside"
            ),
            Self::NotIp => f.write_str(
                "packets at B are not plain IP, as in a tunnel (MPLS, PPPoE); capture both points inside of it, or \
                 both outside",
            ),
            Self::CutShort => f.write_str(
                "the capture at one point has only the beginning of each packet (snap length), and packets are \
                 recognised by all of their bytes; capture both points with the same snap length, or without one",
            ),
            Self::Changed => f.write_str(
                "flows have the same addresses, but other contents, as behind a proxy, or other IP identifications, as \
                 behind a device that rewrites them; capture both points on the same side of it",
            ),
            Self::OtherDirection => f.write_str(
                "B observed the opposite direction only; a router sends out what it forwards: add -Q inout (not with \
                 method xdp, xdp-pass, tc-pass or trace-pass), or capture B behind the router",
            ),
            Self::OtherAddresses => f.write_str(
                "packets have other addresses or ports at B, as behind NAT; capture both points on the same side of it",
            ),
            Self::NothingInCommon => {
                f.write_str("the two captures have no flow in common; are they of the same traffic?")
            }
        }
    }
}
