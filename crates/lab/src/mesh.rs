//! The test bed of a mesh: source, two routers with a bottleneck between them, sink, and a separate
//! management network.
//!
//! ```text
//!   source            router 1                      router 2              sink
//!   [out] ---veth--- [tap-a] [bottleneck] ---veth--- [ingress] [egress] ---veth--- [tap-b]
//!   10.77.1.1        10.77.1.2   10.77.4.1     10.77.4.2   10.77.2.1        10.77.2.2
//!   fd77:1::1        fd77:1::2   fd77:4::1     fd77:4::2   fd77:2::1        fd77:2::2
//!   [manage]         [manage]               controller                      [manage]
//!      |             10.77.101.2 ---veth--- [router]  [sink] ---veth------- 10.77.102.2
//!   10.77.103.2 ------------veth----------- [source]
//!                                           10.77.100.1
//! ```
//!
//! The controller has no route into the path, so the path carries no management traffic.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Deref;

use crate::chain::{Link, PathLab};
use crate::iproute::Program;
use crate::link::{End, named};
use crate::path::{INGRESS_END, SINK_END, SOURCE_END};
use crate::{EGRESS, Impairments, LabError, Netns};

/// The controller's address, reachable from the source, the first router and the sink.
pub const CONTROLLER_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 100, 1);

/// The last router's interface to the sink, in its namespace.
pub const LAST_EGRESS: &str = "egress";

const EGRESS_END: End = End {
    interface: EGRESS,
    mac: "02:77:00:00:04:01",
    v4: Ipv4Addr::new(10, 77, 4, 1),
    v6: Ipv6Addr::new(0xfd77, 4, 0, 0, 0, 0, 0, 1),
};
const SECOND_INGRESS_END: End = End {
    interface: "ingress",
    mac: "02:77:00:00:04:02",
    v4: Ipv4Addr::new(10, 77, 4, 2),
    v6: Ipv6Addr::new(0xfd77, 4, 0, 0, 0, 0, 0, 2),
};
const SECOND_EGRESS_END: End = End {
    interface: LAST_EGRESS,
    mac: "02:77:00:00:02:01",
    v4: Ipv4Addr::new(10, 77, 2, 1),
    v6: Ipv6Addr::new(0xfd77, 2, 0, 0, 0, 0, 0, 1),
};

const LINKS: [Link; 3] = [
    Link { near: SOURCE_END, far: INGRESS_END },
    Link { near: EGRESS_END, far: SECOND_INGRESS_END },
    Link { near: SECOND_EGRESS_END, far: SINK_END },
];

/// The managed hosts' interface to the controller.
const MANAGE: &str = "manage";

/// The controller's interface to a managed host, and the third number of the link's addresses.
struct Managed {
    interface: &'static str,
    subnet: u8,
}

const ROUTER: Managed = Managed { interface: "router", subnet: 101 };
const SINK: Managed = Managed { interface: "sink", subnet: 102 };
const SOURCE: Managed = Managed { interface: "source", subnet: 103 };

/// Source, two routers with a bottleneck between them, sink, and the controller's host. Dropping it
/// removes everything.
#[derive(Debug)]
pub struct MeshLab {
    path: PathLab,
    /// The controller's namespace, with [`CONTROLLER_V4`].
    pub controller: Netns,
}

impl Deref for MeshLab {
    type Target = PathLab;

    fn deref(&self) -> &PathLab {
        &self.path
    }
}

impl MeshLab {
    /// Builds the bed in namespaces without names.
    ///
    /// # Errors
    /// As of [`crate::PathLab::new`].
    pub fn new(impairments: &Impairments) -> Result<Self, LabError> {
        let lab = Self { path: PathLab::of(&LINKS, impairments)?, controller: Netns::new()? };
        lab.manage()?;
        Ok(lab)
    }

    /// Disconnects the managed hosts from the controller.
    ///
    /// # Errors
    /// [`LabError`] when `ip` cannot be run or fails.
    pub fn cut_off(&self) -> Result<(), LabError> {
        self.set_links("down")
    }

    /// Reconnects the managed hosts to the controller.
    ///
    /// # Errors
    /// [`LabError`] when `ip` cannot be run or fails.
    pub fn join_again(&self) -> Result<(), LabError> {
        self.set_links("up")
    }

    fn set_links(&self, state: &str) -> Result<(), LabError> {
        let set = |it: Managed| format!("link set dev {} {state}\n", it.interface);
        Program::Ip.batch(&self.controller, &[ROUTER, SINK, SOURCE].map(set).concat(), &[])
    }

    /// Creates the management network. Its links are ordinary ones, which recover automatically.
    fn manage(&self) -> Result<(), LabError> {
        let own = format!("link set dev lo up\naddress add {CONTROLLER_V4}/32 dev lo\n");
        Program::Ip.batch(&self.controller, &own, &[])?;
        let managed = [(ROUTER, self.router()), (SINK, self.sink()), (SOURCE, self.source())];
        for (Managed { interface, subnet }, host) in managed {
            let (near, far) = (named(interface), named(MANAGE));
            let script = format!(
                "link add {near} type veth peer {far} netns {}\n\
                 address add 10.77.{subnet}.1/24 dev {interface}\n\
                 link set dev {interface} up\n",
                host.path_in_command().display(),
            );
            Program::Ip.batch(&self.controller, &script, &[host])?;
            let script = format!(
                "address add 10.77.{subnet}.2/24 dev {MANAGE}\n\
                 link set dev {MANAGE} up\n\
                 route add {CONTROLLER_V4} via 10.77.{subnet}.1\n"
            );
            Program::Ip.batch(host, &script, &[])?;
        }
        Ok(())
    }
}
