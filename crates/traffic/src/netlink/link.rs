//! An interface: index, hardware address, MTU, drop counters.

use std::io;

use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{LinkAttribute, LinkLayerType, LinkMessage};

use crate::mac::ETHERNET_HEADER;
use crate::{MacAddress, SendError};

/// A VLAN tag (IEEE 802.1Q): the kernel allows a tagged frame to be longer by it.
const VLAN_TAG: usize = 4;
/// The EtherType of a VLAN tag.
const VLAN_TYPE: [u8; 2] = [0x81, 0x00];

/// An Ethernet interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) index: u32,
    /// All zeroes for the loopback interface.
    pub(crate) mac: MacAddress,
    /// Max packet size in bytes, without Ethernet header.
    pub(crate) mtu: usize,
    pub(crate) is_loopback: bool,
}

/// Frames of all senders that an interface has dropped since it came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drops {
    /// Dropped on receipt, also because of missing buffers (`rx_dropped` and
    /// `rx_missed_errors`, struct `rtnl_link_stats64` of linux/if_link.h).
    pub(crate) received: u64,
    /// Dropped on transmit (`tx_dropped`).
    pub(crate) sent: u64,
}

impl Link {
    /// Finds an interface by its name.
    pub(crate) fn find(name: &str) -> Result<Self, SendError> {
        Self::read(name, &ask(name)?)
    }

    /// Drop counters of the interface.
    pub(crate) fn drops(name: &str) -> Result<Drops, SendError> {
        let counters = ask(name)?.attributes.into_iter().find_map(|attribute| match attribute {
            LinkAttribute::Stats64(counters) => Some(counters),
            _ => None,
        });
        let counters = counters.unwrap_or_default();
        let received = counters.rx_dropped.saturating_add(counters.rx_missed_errors);
        Ok(Drops { received, sent: counters.tx_dropped })
    }

    fn read(name: &str, link: &LinkMessage) -> Result<Self, SendError> {
        let is_loopback = link.header.link_layer_type == LinkLayerType::Loopback;
        let mac = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Address(bytes) => MacAddress::from_slice(bytes),
            _ => None,
        });
        let mtu = link.attributes.iter().find_map(|attribute| match attribute {
            LinkAttribute::Mtu(mtu) => usize::try_from(*mtu).ok(),
            _ => None,
        });
        match (link.header.link_layer_type, mac, mtu) {
            (LinkLayerType::Ether | LinkLayerType::Loopback, Some(mac), Some(mtu)) => {
                Ok(Self { name: name.to_owned(), index: link.header.index, mac, mtu, is_loopback })
            }
            _ => Err(SendError::NotEthernet(name.to_owned())),
        }
    }

    /// Whether the kernel accepts a frame of this length. The MTU does not include the Ethernet header
    /// and one VLAN tag.
    pub(crate) fn takes(&self, frame: &[u8]) -> bool {
        let tagged = frame.get(ETHERNET_HEADER - 2..ETHERNET_HEADER) == Some(&VLAN_TYPE[..]);
        frame.len() <= self.mtu + ETHERNET_HEADER + if tagged { VLAN_TAG } else { 0 }
    }

    /// Max frame size in bytes.
    pub(crate) fn longest_frame(&self) -> usize {
        self.mtu + ETHERNET_HEADER + VLAN_TAG
    }
}

/// Requests the attributes of an interface from the kernel.
fn ask(name: &str) -> Result<LinkMessage, SendError> {
    let failed = |cause| SendError::Interface { interface: name.to_owned(), cause };
    // For a longer name the kernel would report an invalid request (IFNAMSIZ, netdevice(7)).
    if !(1..libc::IFNAMSIZ).contains(&name.len()) {
        return Err(failed(io::Error::from_raw_os_error(libc::ENODEV)));
    }
    let mut question = LinkMessage::default();
    question.attributes.push(LinkAttribute::IfName(name.to_owned()));
    match super::ask(RouteNetlinkMessage::GetLink(question)).map_err(failed)? {
        RouteNetlinkMessage::NewLink(link) => Ok(link),
        _ => Err(failed(io::ErrorKind::InvalidData.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_found_and_unknown_interfaces_are_named() {
        let lo = Link::find("lo").unwrap();
        assert!(lo.is_loopback && lo.index > 0 && lo.mtu > 0, "{lo:?}");
        for name in ["", "no-such-if", "a-name-too-long-for-any"] {
            let error = Link::find(name).unwrap_err();
            assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
        }
    }

    #[test]
    fn mtu_excludes_a_vlan_tag() {
        let mac = MacAddress([0xff; 6]);
        let link = Link { name: "x".into(), index: 1, mac, mtu: 1500, is_loopback: false };
        let mut frame = vec![0; 1514];
        assert!(link.takes(&frame));
        frame.resize(1518, 0);
        assert!(!link.takes(&frame));
        frame[12..14].copy_from_slice(&VLAN_TYPE);
        assert!(link.takes(&frame) && link.longest_frame() == 1518);
        assert!(link.takes(&[]));
    }
}
