//! The bed of the demo: source, router with a bottleneck, sink.
//!
//! ```text
//!   source            router                                sink
//!   [out] ---veth--- [tap-a]  forwarding  [bottleneck] ---veth--- [tap-b]
//!   10.77.1.1        10.77.1.2             10.77.2.1              10.77.2.2
//!   fd77:1::1        fd77:1::2             fd77:2::1              fd77:2::2
//! ```
//!
//! The links carry nothing but what is sent over them on purpose: neighbours are static and the
//! interfaces neither resolve addresses nor join groups, so that counters and captures hold the
//! test's packets only. Each interface has one queue, so that the order of packets is the path's.

use std::fmt::Write;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;

use crate::iproute::Program;
use crate::link::{End, up_in_silence};
use crate::{BottleneckCounters, Impairments, LabError, Netns, truth};

/// The source's interface, in its namespace.
pub const SOURCE_INTERFACE: &str = "out";
/// Tap A: the interface at which the source's packets arrive, in the router's namespace.
pub const TAP_A: &str = "tap-a";
/// Tap B: the interface at which they arrive behind the bottleneck, in the sink's namespace.
pub const TAP_B: &str = "tap-b";
/// The interface with the bottleneck, in the router's namespace.
pub const EGRESS: &str = "bottleneck";
/// A pair of interfaces in the router: what goes out of the first comes in again at the second.
const COPIER: &str = "copier";
const TWIN: &str = "twin";

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

const SOURCE_END: End =
    End { interface: SOURCE_INTERFACE, mac: "02:77:00:00:01:01", v4: SOURCE_V4, v6: SOURCE_V6 };
const INGRESS_END: End = End {
    interface: TAP_A,
    mac: "02:77:00:00:01:02",
    v4: ROUTER_INGRESS_V4,
    v6: ROUTER_INGRESS_V6,
};
const EGRESS_END: End =
    End { interface: EGRESS, mac: "02:77:00:00:02:01", v4: ROUTER_EGRESS_V4, v6: ROUTER_EGRESS_V6 };
const SINK_END: End = End { interface: TAP_B, mac: "02:77:00:00:02:02", v4: SINK_V4, v6: SINK_V6 };

/// Source, router and sink, with a bottleneck between two taps. Dropping it takes all of it down,
/// unless it was named ([`crate::up`]).
#[derive(Debug)]
pub struct PathLab {
    source: Netns,
    router: Netns,
    sink: Netns,
    impairments: Impairments,
}

impl PathLab {
    /// Builds the bed in namespaces without names.
    ///
    /// # Errors
    /// [`LabError`] when a rate or a queue is out of range, for want of privileges
    /// ([`crate::check_privilege`] says which), or when iproute2 is missing or refuses something.
    /// Nothing is left of what was built until then.
    pub fn new(impairments: &Impairments) -> Result<Self, LabError> {
        impairments.check()?;
        let lab = Self {
            source: Netns::new()?,
            router: Netns::new()?,
            sink: Netns::new()?,
            impairments: *impairments,
        };
        lab.connect()?;
        lab.forward()?;
        lab.impair()?;
        Ok(lab)
    }

    /// The namespace that packets are sent from, over [`SOURCE_INTERFACE`].
    #[must_use]
    pub const fn source(&self) -> &Netns {
        &self.source
    }

    /// The router's namespace, where [`TAP_A`] is.
    #[must_use]
    pub const fn router(&self) -> &Netns {
        &self.router
    }

    /// The namespace that packets arrive in, at [`TAP_B`].
    #[must_use]
    pub const fn sink(&self) -> &Netns {
        &self.sink
    }

    /// What the path was built to do.
    #[must_use]
    pub const fn impairments(&self) -> &Impairments {
        &self.impairments
    }

    /// What the bottleneck has done so far, by its own count.
    ///
    /// # Errors
    /// [`LabError`] when `tc` cannot be run or prints something unknown.
    pub fn bottleneck(&self) -> Result<BottleneckCounters, LabError> {
        truth::bottleneck(&self.router, EGRESS)
    }

    /// How many packets the router has copied so far; each copy was offered to the bottleneck.
    ///
    /// # Errors
    /// [`LabError`] when `tc` cannot be run or prints something unknown.
    pub fn duplicated(&self) -> Result<u64, LabError> {
        if self.impairments.duplicate.is_none() {
            return Ok(0);
        }
        truth::duplicated(&self.router, TAP_A)
    }

    /// Makes the links and gives both ends of each their addresses and routes.
    ///
    /// Of a link's two ends, the one that comes up last can send at once. The other one drops what
    /// it is given until the kernel has come round to its new carrier, some time later. So the ends
    /// that the test's packets leave from come up last.
    fn connect(&self) -> Result<(), LabError> {
        let first = SOURCE_END.link_to(&INGRESS_END, &self.router);
        Program::Ip.batch(&self.source, &first, &[&self.router])?;
        let mut router = EGRESS_END.link_to(&SINK_END, &self.sink);
        router += &INGRESS_END.configure(&SOURCE_END);
        router += &EGRESS_END.configure(&SINK_END);
        if self.impairments.duplicate.is_some() {
            // The twin has tap A's hardware address, because copies are addressed to that one.
            let _ = write!(
                router,
                "link add name {COPIER} type veth peer name {TWIN} address {}\n{}{}",
                INGRESS_END.mac,
                up_in_silence(TWIN),
                up_in_silence(COPIER),
            );
        }
        Program::Ip.batch(&self.router, &router, &[&self.sink])?;
        for (netns, end, peer) in
            [(&self.sink, &SINK_END, &EGRESS_END), (&self.source, &SOURCE_END, &INGRESS_END)]
        {
            Program::Ip.batch(netns, &(end.configure(peer) + &End::default_routes(peer)), &[])?;
        }
        Ok(())
    }

    /// Makes the router forward. Its interfaces must be silent by now: turning them into a router's
    /// while they take part in multicast makes them join the routers' groups, and report it.
    fn forward(&self) -> Result<(), LabError> {
        let set = |settings: &[(&str, &str)]| {
            settings.iter().try_for_each(|(name, value)| {
                fs::write(Path::new("/proc/sys/net").join(name), value)
            })
        };
        let forwarding = [("ipv4/ip_forward", "1"), ("ipv6/conf/all/forwarding", "1")];
        // Copies arrive at the twin, where their source is not, and the reverse path filter would
        // drop them. A new namespace takes the filter's setting over from the first one
        // (ip-sysctl, `rp_filter`, `devconf_inherit_init_net`).
        let copies = [("ipv4/conf/all/rp_filter", "0"), ("ipv4/conf/twin/rp_filter", "0")];
        let copies = if self.impairments.duplicate.is_some() { &copies[..] } else { &[] };
        self.router
            .run(|| set(&forwarding).and_then(|()| set(copies)))
            .and_then(|set| set)
            .map_err(LabError::system("cannot make the router forward"))
    }

    /// Puts the bottleneck and the copying in place.
    ///
    /// An interface that is given a queue can send from then on ([`Self::connect`]): the bottleneck
    /// has one anyway, and tap A gets one for what the sink answers.
    fn impair(&self) -> Result<(), LabError> {
        let mut script = format!("qdisc add dev {TAP_A} root pfifo\n");
        script += &self.impairments.bottleneck_script(EGRESS);
        script += &self.impairments.duplicate_script(TAP_A, COPIER);
        Program::Tc.batch(&self.router, &script, &[])
    }
}
