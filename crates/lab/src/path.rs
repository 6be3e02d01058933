//! The bed of the demo: source, router with a bottleneck, sink.
//!
//! ```text
//!   source            router                                sink
//!   [out] ---veth--- [tap-a]  forwarding  [bottleneck] ---veth--- [tap-b]
//!   10.77.1.1        10.77.1.2             10.77.2.1              10.77.2.2
//!   fd77:1::1        fd77:1::2             fd77:2::1              fd77:2::2
//! ```

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::chain::{Chain, Link};
use crate::link::End;
use crate::{BottleneckCounters, Impairments, LabError, Netns};

/// The source's interface, in its namespace.
pub const SOURCE_INTERFACE: &str = "out";
/// Tap A: the interface at which the source's packets arrive, in the router's namespace.
pub const TAP_A: &str = "tap-a";
/// Tap B: the interface at which they arrive behind the bottleneck, in the sink's namespace.
pub const TAP_B: &str = "tap-b";
/// The interface with the bottleneck, in the router's namespace.
pub const EGRESS: &str = "bottleneck";

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

/// Source, router and sink, with a bottleneck between two taps. Dropping it takes all of it down,
/// unless it was named ([`crate::up`]).
#[derive(Debug)]
pub struct PathLab {
    chain: Chain,
}

impl PathLab {
    /// Builds the bed in namespaces without names.
    ///
    /// # Errors
    /// [`LabError`] when a rate or a queue is out of range, for want of privileges
    /// ([`crate::check_privilege`] says which), or when iproute2 is missing or refuses something.
    /// Nothing is left of what was built until then.
    pub fn new(impairments: &Impairments) -> Result<Self, LabError> {
        Ok(Self { chain: Chain::new(&LINKS, impairments)? })
    }

    /// The namespace that packets are sent from, over [`SOURCE_INTERFACE`].
    #[must_use]
    pub fn source(&self) -> &Netns {
        self.chain.host(0)
    }

    /// The router's namespace, where [`TAP_A`] is.
    #[must_use]
    pub fn router(&self) -> &Netns {
        self.chain.host(1)
    }

    /// The namespace that packets arrive in, at [`TAP_B`].
    #[must_use]
    pub fn sink(&self) -> &Netns {
        self.chain.sink()
    }

    /// What the path was built to do.
    #[must_use]
    pub const fn impairments(&self) -> &Impairments {
        self.chain.impairments()
    }

    /// What the bottleneck has done so far, by its own count.
    ///
    /// # Errors
    /// [`LabError`] when `tc` cannot be run or prints something unknown.
    pub fn bottleneck(&self) -> Result<BottleneckCounters, LabError> {
        self.chain.bottleneck()
    }

    /// How many packets the router has copied so far; each copy was offered to the bottleneck.
    ///
    /// # Errors
    /// [`LabError`] when `tc` cannot be run or prints something unknown.
    pub fn duplicated(&self) -> Result<u64, LabError> {
        self.chain.duplicated()
    }
}
