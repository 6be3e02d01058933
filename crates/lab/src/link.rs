//! Links between the namespaces of a bed.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::Netns;

/// The source's interface.
pub const SOURCE_INTERFACE: &str = "out";
/// Tap A: the router's interface to the source.
pub const TAP_A: &str = "tap-a";
/// Tap B: the sink's interface, after the bottleneck.
pub const TAP_B: &str = "tap-b";
/// The router's interface with the bottleneck.
pub const EGRESS: &str = "bottleneck";

/// One end of a link. Its hardware address is fixed (locally administered), because the neighbour
/// entry at the other end needs it.
pub(crate) struct End {
    pub(crate) interface: &'static str,
    pub(crate) mac: &'static str,
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
}

/// The lines that bring an interface up without any traffic of its own. `arp off` disables neighbour
/// resolution and its multicast groups, and `multicast off` the routers' groups. Without a link-local
/// address there are no router solicitations. The kernel creates that address when the interface
/// comes up. Linux 6.1 processes `up` first within one line, so there are two lines.
pub(crate) fn up_in_silence(interface: &str) -> String {
    format!(
        "link set dev {interface} arp off multicast off addrgenmode none\n\
         link set dev {interface} up\n"
    )
}

/// One end of a link for `link add`: with one queue, so that packets keep their order.
pub(crate) fn named(interface: &str) -> String {
    format!("name {interface} numtxqueues 1 numrxqueues 1")
}

impl End {
    /// The same with its hardware address.
    fn addressed(&self) -> String {
        format!("{} address {}", named(self.interface), self.mac)
    }

    /// The line that creates a link to `peer` in `peer_netns`.
    pub(crate) fn link_to(&self, peer: &Self, peer_netns: &Netns) -> String {
        self.link_to_named(&peer.addressed(), peer_netns)
    }

    /// The same, to an end that [`named`] describes.
    pub(crate) fn link_to_named(&self, peer: &str, peer_netns: &Netns) -> String {
        let (own, path) = (self.addressed(), peer_netns.path_in_command());
        format!("link add {own} type veth peer {peer} netns {}\n", path.display())
    }

    /// The lines that bring this end up, with `peer` as its neighbour.
    ///
    /// The kernel also creates the local route of an IPv6 address, but later, from a work queue, and
    /// drops packets until then. The explicit route exists at once.
    pub(crate) fn configure(&self, peer: &Self) -> String {
        let Self { interface, v4, v6, .. } = self;
        let up = up_in_silence(interface);
        format!(
            "{up}\
             address add {v4}/24 dev {interface}\n\
             address add {v6}/64 dev {interface} nodad\n\
             route add local {v6} dev {interface} table local\n\
             neighbour add {} lladdr {mac} dev {interface} nud permanent\n\
             neighbour add {} lladdr {mac} dev {interface} nud permanent\n",
            peer.v4,
            peer.v6,
            mac = peer.mac,
        )
    }

    /// The lines that make `peer` the default gateway.
    pub(crate) fn default_routes(peer: &Self) -> String {
        format!("route add 0.0.0.0/0 via {}\nroute add ::/0 via {}\n", peer.v4, peer.v6)
    }

    /// The lines that route packets for `host` to this end.
    pub(crate) fn route_to(&self, host: &Self) -> String {
        format!("route add {} via {}\nroute add {} via {}\n", host.v4, self.v4, host.v6, self.v6)
    }
}
