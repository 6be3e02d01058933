//! The test bed without forwarding: source and sink on one subnet, and a wire between them in which programs forward
//! frames.
//!
//! ```text
//!   source            wire                        sink
//!   [out] ---veth--- [tap-a]      [far] ---veth--- [tap-b]
//!   10.77.3.1                                      10.77.3.2
//!   fd77:3::1                                      fd77:3::2
//! ```

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::iproute::Program;
use crate::link::{End, named, up_in_silence};
use crate::{LabError, Netns, SOURCE_INTERFACE, TAP_A, TAP_B};

/// The wire's interface towards the sink.
pub const FAR: &str = "far";

/// The source's IPv4 address.
pub const SOURCE_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 3, 1);
/// The sink's IPv4 address.
pub const SINK_V4: Ipv4Addr = Ipv4Addr::new(10, 77, 3, 2);
/// The source's IPv6 address.
pub const SOURCE_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 3, 0, 0, 0, 0, 0, 1);
/// The sink's IPv6 address.
pub const SINK_V6: Ipv6Addr = Ipv6Addr::new(0xfd77, 3, 0, 0, 0, 0, 0, 2);

const SOURCE_END: End =
    End { interface: SOURCE_INTERFACE, mac: "02:77:00:00:03:01", v4: SOURCE_V4, v6: SOURCE_V6 };
const SINK_END: End = End { interface: TAP_B, mac: "02:77:00:00:03:02", v4: SINK_V4, v6: SINK_V6 };

/// Source, wire and sink. Dropping it removes everything.
///
/// The source addresses its frames to the sink, so the kernel ignores them in the wire's namespace.
#[derive(Debug)]
pub struct Wire {
    /// The source's namespace, with [`SOURCE_INTERFACE`].
    pub source: Netns,
    /// The wire's namespace, with [`TAP_A`] and [`FAR`].
    pub wire: Netns,
    /// The sink's namespace, with [`TAP_B`].
    pub sink: Netns,
}

impl Wire {
    /// Builds the bed in namespaces without names.
    ///
    /// # Errors
    /// [`LabError`] when privileges are missing ([`crate::check_privilege`] lists them), or iproute2
    /// is missing or fails. Nothing remains then.
    pub fn new() -> Result<Self, LabError> {
        let bed = Self { source: Netns::new()?, wire: Netns::new()?, sink: Netns::new()? };
        bed.connect()?;
        Ok(bed)
    }

    /// Creates both links. The sending ends of packets come up last, and the sending ends of answers
    /// get a queue, so that both can send at once (see `Chain::connect`).
    fn connect(&self) -> Result<(), LabError> {
        for (netns, end, peer) in [(&self.source, &SOURCE_END, TAP_A), (&self.sink, &SINK_END, FAR)]
        {
            let link = end.link_to_named(&named(peer), &self.wire);
            Program::Ip.batch(netns, &link, &[&self.wire])?;
        }
        Program::Ip.batch(&self.sink, &SINK_END.configure(&SOURCE_END), &[])?;
        Program::Ip.batch(&self.wire, &(up_in_silence(TAP_A) + &up_in_silence(FAR)), &[])?;
        Program::Ip.batch(&self.source, &SOURCE_END.configure(&SINK_END), &[])?;
        for (netns, interface) in [(&self.wire, TAP_A), (&self.sink, TAP_B)] {
            Program::Tc.batch(netns, &format!("qdisc add dev {interface} root pfifo\n"), &[])?;
        }
        Ok(())
    }
}
