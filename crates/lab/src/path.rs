//! The test bed of the demo: source, router with a bottleneck, sink.
//!
//! ```text
//!   source            router                                sink
//!   [out] ---veth--- [tap-a]  forwarding  [bottleneck] ---veth--- [tap-b]
//!   10.77.1.1        10.77.1.2             10.77.2.1              10.77.2.2
//!   fd77:1::1        fd77:1::2             fd77:2::1              fd77:2::2
//! ```

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::chain::{Link, PathLab};
use crate::link::{EGRESS, End, SOURCE_INTERFACE, TAP_A, TAP_B};
use crate::{Impairments, LabError};

/// The source's IPv4 address.
pub const SOURCE_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 1);
/// The sink's IPv4 address.
pub const SINK_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 2, 2);
/// The source's IPv6 address.
pub const SOURCE_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 1, 0, 0, 0, 0, 0, 1);
/// The sink's IPv6 address.
pub const SINK_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 2, 0, 0, 0, 0, 0, 2);

pub(crate) const SOURCE_END: End =
    End { interface: SOURCE_INTERFACE, mac: "02:77:00:00:01:01", v4: SOURCE_V4, v6: SOURCE_V6 };
pub(crate) const INGRESS_END: End = End {
    interface: TAP_A,
    mac: "02:77:00:00:01:02",
    v4: Ipv4Addr::new(10, 77, 1, 2),
    v6: Ipv6Addr::new(0xfd77, 1, 0, 0, 0, 0, 0, 2),
};
const EGRESS_END: End = End {
    interface: EGRESS,
    mac: "02:77:00:00:02:01",
    v4: Ipv4Addr::new(10, 77, 2, 1),
    v6: Ipv6Addr::new(0xfd77, 2, 0, 0, 0, 0, 0, 1),
};
pub(crate) const SINK_END: End =
    End { interface: TAP_B, mac: "02:77:00:00:02:02", v4: SINK_V4, v6: SINK_V6 };

const LINKS: [Link; 2] =
    [Link { near: SOURCE_END, far: INGRESS_END }, Link { near: EGRESS_END, far: SINK_END }];

impl PathLab {
    /// Builds source, router and sink, in namespaces without names.
    ///
    /// # Errors
    /// [`LabError`] when a rate or a queue is out of range, privileges are missing
    /// ([`crate::check_privilege`] lists them), or iproute2 is missing or fails. Nothing remains then.
    pub fn new(impairments: &Impairments) -> Result<Self, LabError> {
        Self::of(&LINKS, impairments)
    }
}
