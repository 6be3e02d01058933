//! Hosts in a row, with a bottleneck on the second: a source, one or more routers, a sink.
//!
//! The links carry nothing but what is sent over them on purpose: neighbours are static and the
//! interfaces neither resolve addresses nor join groups, so that counters and captures hold the
//! test's packets only. Each interface has one queue, so that the order of packets is the path's.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::iproute::Program;
use crate::link::{End, up_in_silence};
use crate::{BottleneckCounters, EGRESS, Impairments, LabError, Netns, TAP_A, truth};

/// A pair of interfaces in the first router: what goes out of the first comes in again at the second.
const COPIER: &str = "copier";
const TWIN: &str = "twin";

/// A link from a host to the next: of the former, the end that is called `near`.
pub(crate) struct Link {
    pub(crate) near: End,
    pub(crate) far: End,
}

/// The hosts, and what the path does.
///
/// The first link is from [`SOURCE_INTERFACE`](crate::SOURCE_INTERFACE) to [`TAP_A`], the second
/// begins at [`EGRESS`].
#[derive(Debug)]
pub(crate) struct Chain {
    hosts: Vec<Netns>,
    impairments: Impairments,
}

impl Chain {
    /// Builds the hosts that `links` join, in namespaces without names.
    ///
    /// # Errors
    /// As of [`crate::PathLab::new`].
    pub(crate) fn new(links: &[Link], impairments: &Impairments) -> Result<Self, LabError> {
        impairments.check()?;
        let hosts = (0..=links.len()).map(|_| Netns::new()).collect::<Result<_, _>>()?;
        let chain = Self { hosts, impairments: *impairments };
        chain.connect(links)?;
        chain.forward()?;
        chain.impair(links)?;
        Ok(chain)
    }

    /// The host of this number, 0 for the source; there is one more than there are links.
    pub(crate) fn host(&self, number: usize) -> &Netns {
        &self.hosts[number]
    }

    /// The last host.
    pub(crate) fn sink(&self) -> &Netns {
        self.host(self.hosts.len() - 1)
    }

    pub(crate) const fn impairments(&self) -> &Impairments {
        &self.impairments
    }

    /// What the bottleneck has done so far, by its own count.
    pub(crate) fn bottleneck(&self) -> Result<BottleneckCounters, LabError> {
        truth::bottleneck(self.host(1), EGRESS)
    }

    /// How many packets the first router has copied so far; each copy was offered to the bottleneck.
    pub(crate) fn duplicated(&self) -> Result<u64, LabError> {
        if self.impairments.duplicate.is_none() {
            return Ok(0);
        }
        truth::duplicated(self.host(1), TAP_A)
    }

    /// The hosts between the first and the last.
    fn routers(&self) -> impl Iterator<Item = &Netns> {
        self.hosts.iter().skip(1).take(self.hosts.len() - 2)
    }

    /// Makes the links and gives both ends of each their addresses and routes.
    ///
    /// Of a link's two ends, the one that comes up last can send at once. The other one drops what
    /// it is given until the kernel has come round to its new carrier, some time later. So the ends
    /// that the test's packets leave from come up last, or are given a queue ([`Self::impair`]).
    fn connect(&self, links: &[Link]) -> Result<(), LabError> {
        for (hosts, Link { near, far }) in self.hosts.windows(2).zip(links) {
            let script = near.link_to(far, &hosts[1]);
            Program::Ip.batch(&hosts[0], &script, &[&hosts[1]])?;
        }
        let (first, last) = (&links[0], &links[links.len() - 1]);
        for (number, (router, sides)) in self.routers().zip(links.windows(2)).enumerate() {
            let [left, right] = sides else { continue };
            let mut script = left.far.configure(&left.near) + &right.near.configure(&right.far);
            // The hosts beside it need no route.
            if number > 0 {
                script += &left.near.route_to(&first.near);
            }
            if number + 2 < links.len() {
                script += &right.far.route_to(&last.far);
            }
            if number == 0 && self.impairments.duplicate.is_some() {
                // The twin has tap A's hardware address, because copies are addressed to that one.
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
            [(self.sink(), &last.far, &last.near), (self.host(0), &first.near, &first.far)]
        {
            Program::Ip.batch(netns, &(end.configure(peer) + &End::default_routes(peer)), &[])?;
        }
        Ok(())
    }

    /// Makes the routers forward. Their interfaces must be silent by now: turning them into a router's
    /// while they take part in multicast makes them join the routers' groups, and report it.
    fn forward(&self) -> Result<(), LabError> {
        let forwarding = [("ipv4/ip_forward", "1"), ("ipv6/conf/all/forwarding", "1")];
        self.routers().try_for_each(|router| set(router, &forwarding))?;
        if self.impairments.duplicate.is_none() {
            return Ok(());
        }
        // Copies arrive at the twin, where their source is not, and the reverse path filter would
        // drop them. A new namespace takes the filter's setting over from the first one
        // (ip-sysctl, `rp_filter`, `devconf_inherit_init_net`).
        set(self.host(1), &[("ipv4/conf/all/rp_filter", "0"), ("ipv4/conf/twin/rp_filter", "0")])
    }

    /// Puts the bottleneck and the copying in place.
    ///
    /// An interface that is given a queue can send from then on ([`Self::connect`]): the bottleneck
    /// has one anyway, and the others get one for what the sink answers and what routers pass on.
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

/// Sets what sysctl(8) does, in a router.
fn set(router: &Netns, settings: &[(&str, &str)]) -> Result<(), LabError> {
    let set = || {
        settings
            .iter()
            .try_for_each(|(name, value)| fs::write(Path::new("/proc/sys/net").join(name), value))
    };
    router.run(set).and_then(|set| set).map_err(LabError::system("cannot make the router forward"))
}
