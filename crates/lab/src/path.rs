//! The test bed of the demo: source, router with a bottleneck, sink.
//!
//! ```text
//!   source            router                                sink
//!   [out] ---veth--- [tap-a]  forwarding  [bottleneck] ---veth--- [tap-b]
//!   10.77.1.1        10.77.1.2             10.77.2.1              10.77.2.2
//!   fd77:1::1        fd77:1::2             fd77:2::1              fd77:2::2
//! ```

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::chain::{Chain, Link};
use crate::link::{EGRESS, End, SOURCE_INTERFACE, TAP_A, TAP_B};
use crate::{BottleneckCounters, Impairments, LabError, Netns};

/// The source's IPv4 address.
pub const SOURCE_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 1);
/// The router's IPv4 address at tap A.
const ROUTER_INGRESS_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 2);
/// The router's IPv4 address at the bottleneck.
const ROUTER_EGRESS_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 1);
/// The sink's IPv4 address.
pub const SINK_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 2);
/// The source's IPv6 address.
pub const SOURCE_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 1, 0, 0, 0, 0, 0, 1);
/// The router's IPv6 address at tap A.
const ROUTER_INGRESS_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 1, 0, 0, 0, 0, 0, 2);
/// The router's IPv6 address at the bottleneck.
const ROUTER_EGRESS_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 2, 0, 0, 0, 0, 0, 1);
/// The sink's IPv6 address.
pub const SINK_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 2, 0, 0, 0, 0, 0, 2);

pub(crate) const SOURCE_END: End =
    End { interface: SOURCE_INTERFACE, mac: "02:77:00:00:01:01", v4: SOURCE_V4, v6: SOURCE_V6 };
pub(crate) const INGRESS_END: End = End {
    interface: TAP_A,
    mac: "02:77:00:00:01:02",
    v4: ROUTER_INGRESS_V4,
    v6: ROUTER_INGRESS_V6,
};
const EGRESS_END: End =
    End { interface: EGRESS, mac: "02:77:00:00:02:01", v4: ROUTER_EGRESS_V4, v6: ROUTER_EGRESS_V6 };
pub(crate) const SINK_END: End =
    End { interface: TAP_B, mac: "02:77:00:00:02:02", v4: SINK_V4, v6: SINK_V6 };

const LINKS: [Link; 2] =
    [Link { near: SOURCE_END, far: INGRESS_END }, Link { near: EGRESS_END, far: SINK_END }];

/// Source, router and sink, with a bottleneck between two taps. Dropping it removes everything,
/// unless it has names ([`crate::up`]).
#[derive(Debug)]
pub struct PathLab {
    chain: Chain,
}

impl PathLab {
    /// Builds the bed in namespaces without names.
    ///
    /// # Errors
    /// [`LabError`] when a rate or a queue is out of range, privileges are missing
    /// ([`crate::check_privilege`] lists them), or iproute2 is missing or fails. Nothing remains then.
    pub fn new(impairments: &Impairments) -> Result<Self, LabError> {
        Ok(Self { chain: Chain::new(&LINKS, impairments)? })
    }

    /// The source's namespace, with [`SOURCE_INTERFACE`].
    #[must_use]
    pub fn source(&self) -> &Netns {
        self.chain.host(0)
    }

    /// The router's namespace, with [`TAP_A`].
    #[must_use]
    pub fn router(&self) -> &Netns {
        self.chain.host(1)
    }

    /// The sink's namespace, with [`TAP_B`].
    #[must_use]
    pub fn sink(&self) -> &Netns {
        self.chain.sink()
    }

    /// The path's impairments.
    #[must_use]
    pub const fn impairments(&self) -> &Impairments {
        self.chain.impairments()
    }

    /// The bottleneck's packet counters.
    ///
    /// # Errors
    /// [`LabError`] when `tc` cannot be run or its output cannot be read.
    pub fn bottleneck(&self) -> Result<BottleneckCounters, LabError> {
        self.chain.bottleneck()
    }

    /// Packets that the router has duplicated so far; the bottleneck gets each duplicate.
    ///
    /// # Errors
    /// [`LabError`] when `tc` cannot be run or its output cannot be read.
    pub fn duplicated(&self) -> Result<u64, LabError> {
        self.chain.duplicated()
    }
}
