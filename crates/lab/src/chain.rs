//! Hosts in a row, with a bottleneck on the second: a source, one or more routers, a sink.
//!
//! The links carry test packets only: neighbours are static, and the interfaces neither resolve
//! addresses nor join multicast groups. So counters and captures have no other packets. Each
//! interface has one queue, so that the interfaces never reorder packets.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::iproute::Program;
use crate::link::{End, up_in_silence};
use crate::{BottleneckCounters, EGRESS, Impairments, LabError, Netns, TAP_A, truth};

/// A pair of interfaces in the first router: packets sent over the first arrive at the second.
const COPIER: &str = "copier";
const TWIN: &str = "twin";

/// A link from a host (end `near`) to the next host (end `far`).
pub(crate) struct Link {
    pub(crate) near: End,
    pub(crate) far: End,
}

/// Source, routers and sink, with a bottleneck in the first router. Dropping it removes everything,
/// unless it has names ([`crate::up`]).
///
/// The first link is from [`SOURCE_INTERFACE`](crate::SOURCE_INTERFACE) to [`TAP_A`], the second one
/// starts at [`EGRESS`], the last one ends at [`TAP_B`](crate::TAP_B).
#[derive(Debug)]
pub struct PathLab {
    hosts: Vec<Netns>,
    /// Impairments of the path.
    pub impairments: Impairments,
}

impl PathLab {
    /// Builds the hosts connected by `links`, in namespaces without names.
    pub(crate) fn of(links: &[Link], impairments: &Impairments) -> Result<Self, LabError> {
        impairments.check()?;
        let hosts = (0..=links.len()).map(|_| Netns::new()).collect::<Result<_, _>>()?;
        let chain = Self { hosts, impairments: *impairments };
        chain.connect(links)?;
        chain.forward()?;
        chain.impair(links)?;
        Ok(chain)
    }

    /// The source's namespace, with [`SOURCE_INTERFACE`](crate::SOURCE_INTERFACE).
    #[must_use]
    pub fn source(&self) -> &Netns {
        &self.hosts[0]
    }

    /// The first router's namespace, with [`TAP_A`] and [`EGRESS`].
    #[must_use]
    pub fn router(&self) -> &Netns {
        &self.hosts[1]
    }

    /// The last router's namespace; that of the first where there is only one.
    #[must_use]
    pub fn last_router(&self) -> &Netns {
        &self.hosts[self.hosts.len() - 2]
    }

    /// The sink's namespace, with [`TAP_B`](crate::TAP_B).
    #[must_use]
    pub fn sink(&self) -> &Netns {
        &self.hosts[self.hosts.len() - 1]
    }

    /// The bottleneck's packet counters.
    ///
    /// # Errors
    /// [`LabError`] when `tc` cannot be run or its output cannot be read.
    pub fn bottleneck(&self) -> Result<BottleneckCounters, LabError> {
        truth::bottleneck(self.router(), EGRESS)
    }

    /// Packets that the first router has duplicated so far; the bottleneck gets each duplicate.
    ///
    /// # Errors
    /// [`LabError`] when `tc` cannot be run or its output cannot be read.
    pub fn duplicated(&self) -> Result<u64, LabError> {
        if self.impairments.duplicate.is_none() {
            return Ok(0);
        }
        truth::duplicated(self.router(), TAP_A)
    }

    /// The hosts between the first and the last.
    fn routers(&self) -> impl Iterator<Item = &Netns> {
        self.hosts[1..self.hosts.len() - 1].iter()
    }

    /// Creates the links, with addresses and routes at both ends.
    ///
    /// The end of a link that comes up last can send at once. The other end drops packets until the
    /// kernel has processed its new carrier, some time later. So the sending ends of test packets
    /// come up last, or get a queue ([`Self::impair`]).
    fn connect(&self, links: &[Link]) -> Result<(), LabError> {
        for (hosts, Link { near, far }) in self.hosts.windows(2).zip(links) {
            let script = near.link_to(far, &hosts[1]);
            Program::Ip.batch(&hosts[0], &script, &[&hosts[1]])?;
        }
        let (first, last) = (&links[0], &links[links.len() - 1]);
        for (number, (router, sides)) in self.routers().zip(links.windows(2)).enumerate() {
            let [left, right] = sides else { continue };
            let mut script = left.far.configure(&left.near) + &right.near.configure(&right.far);
            // Neighbouring hosts need no route.
            if number > 0 {
                script += &left.near.route_to(&first.near);
            }
            if number + 2 < links.len() {
                script += &right.far.route_to(&last.far);
            }
            if number == 0 && self.impairments.duplicate.is_some() {
                // The twin has tap A's hardware address, the destination of the duplicates.
                let _ = write!(
                    script,
                    "link add name {COPIER} type veth peer name {TWIN} address {}\n{}{}",
                    left.far.mac,
                    up_in_silence(TWIN),
                    up_in_silence(COPIER),
                );
            }
            Program::Ip.batch(router, &script, &[])?;
        }
        for (netns, end, peer) in
            [(self.sink(), &last.far, &last.near), (self.source(), &first.near, &first.far)]
        {
            Program::Ip.batch(netns, &(end.configure(peer) + &End::default_routes(peer)), &[])?;
        }
        Ok(())
    }

    /// Enables forwarding in the routers. Multicast must be off on their interfaces by now: otherwise
    /// they join the routers' groups and send reports.
    fn forward(&self) -> Result<(), LabError> {
        let forwarding = [("ipv4/ip_forward", "1"), ("ipv6/conf/all/forwarding", "1")];
        self.routers().try_for_each(|router| set(router, &forwarding))?;
        if self.impairments.duplicate.is_none() {
            return Ok(());
        }
        // Duplicates arrive at the twin, which has no route to their source: the reverse path filter
        // would drop them. A new namespace inherits the filter's setting from the initial namespace
        // (ip-sysctl, `rp_filter`, `devconf_inherit_init_net`).
        set(self.router(), &[("ipv4/conf/all/rp_filter", "0"), ("ipv4/conf/twin/rp_filter", "0")])
    }

    /// Sets up the bottleneck and the duplication.
    ///
    /// An interface with a queue can send at once ([`Self::connect`]). The bottleneck has one; the
    /// other interfaces get one for forwarded packets and for answers of the sink.
    fn impair(&self, links: &[Link]) -> Result<(), LabError> {
        for (router, sides) in self.routers().zip(links.windows(2)) {
            let [left, right] = sides else { continue };
            let ends = [left.far.interface, right.near.interface];
            let mut script = String::new();
            for interface in ends.into_iter().filter(|it| *it != EGRESS) {
                let _ = writeln!(script, "qdisc add dev {interface} root pfifo");
            }
            if ends.contains(&EGRESS) {
                script += &self.impairments.bottleneck_script(EGRESS);
                script += &self.impairments.duplicate_script(TAP_A, COPIER);
            }
            Program::Tc.batch(router, &script, &[])?;
        }
        Ok(())
    }
}

/// Sets sysctl(8) values in a router.
fn set(router: &Netns, settings: &[(&str, &str)]) -> Result<(), LabError> {
    let set = || {
        settings
            .iter()
            .try_for_each(|(name, value)| fs::write(Path::new("/proc/sys/net").join(name), value))
    };
    router.run(set).and_then(|set| set).map_err(LabError::system("cannot enable forwarding"))
}
