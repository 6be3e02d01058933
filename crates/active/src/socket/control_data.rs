//! Control messages of a packet.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use nix::libc;
use nix::sys::socket::{ControlMessageOwned, RecvMsg, SockaddrStorage};
use nix::sys::time::TimeSpec;
use wirestamp_clock::{Time, Utc};

/// `SO_EE_ORIGIN_TIMESTAMPING` (linux/errqueue.h).
const ORIGIN_TIMESTAMPING: u8 = 4;
/// Value of an unknown TTL (RFC 8762 section 4.3.1).
const UNKNOWN_TTL: u8 = 255;

/// Content of the control messages.
#[derive(Debug)]
pub(super) struct ControlData {
    /// The packet's stamp.
    pub(super) at: Option<Time<Utc>>,
    /// Kernel number of the sent packet.
    pub(super) number: Option<u32>,
    pub(super) to: Option<(IpAddr, u32)>,
    pub(super) ttl: u8,
    pub(super) class: u8,
}

impl ControlData {
    pub(super) fn of(message: &RecvMsg<'_, '_, SockaddrStorage>) -> Self {
        let mut data = Self { at: None, number: None, to: None, ttl: UNKNOWN_TTL, class: 0 };
        for part in message.cmsgs().into_iter().flatten() {
            data.add(&part);
        }
        data
    }

    fn add(&mut self, part: &ControlMessageOwned) {
        match part {
            ControlMessageOwned::ScmTimestampsns(times) => self.at = time(times.system),
            ControlMessageOwned::Ipv4RecvErr(error, _) => self.number = number(error),
            ControlMessageOwned::Ipv6RecvErr(error, _) => self.number = number(error),
            ControlMessageOwned::Ipv4PacketInfo(info) => {
                let address = Ipv4Addr::from(u32::from_be(info.ipi_addr.s_addr));
                self.to = Some((address.into(), u32::try_from(info.ipi_ifindex).unwrap_or(0)));
            }
            ControlMessageOwned::Ipv6PacketInfo(info) => {
                let address = Ipv6Addr::from(info.ipi6_addr.s6_addr);
                self.to = Some((address.into(), info.ipi6_ifindex));
            }
            ControlMessageOwned::Ipv4Ttl(ttl) | ControlMessageOwned::Ipv6HopLimit(ttl) => {
                self.ttl = u8::try_from(*ttl).unwrap_or(UNKNOWN_TTL);
            }
            ControlMessageOwned::Ipv4Tos(class) => self.class = *class,
            ControlMessageOwned::Ipv6TClass(class) => {
                self.class = u8::try_from(*class).unwrap_or(0);
            }
            _ => {}
        }
    }
}

/// A stamp; none for 0.
fn time(time: TimeSpec) -> Option<Time<Utc>> {
    let nanos = time.tv_sec().checked_mul(1_000_000_000)?.checked_add(time.tv_nsec())?;
    (nanos != 0).then(|| Time::from_nanos(nanos))
}

/// Kernel number of the packet in a stamp report.
fn number(error: &libc::sock_extended_err) -> Option<u32> {
    (error.ee_origin == ORIGIN_TIMESTAMPING).then_some(error.ee_data)
}

pub(super) fn address(address: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = address.as_sockaddr_in().map(|it| SocketAddr::V4(SocketAddrV4::from(*it)));
    v4.or_else(|| address.as_sockaddr_in6().map(|it| SocketAddr::V6(SocketAddrV6::from(*it))))
}

/// The IPv4 source address.
pub(super) fn source_v4(address: IpAddr, _: u32) -> Option<libc::in_pktinfo> {
    let IpAddr::V4(address) = address else { return None };
    let any = libc::in_addr { s_addr: 0 };
    let from = libc::in_addr { s_addr: u32::from(address).to_be() };
    // Routes choose the interface: answers may take another path.
    Some(libc::in_pktinfo { ipi_ifindex: 0, ipi_spec_dst: from, ipi_addr: any })
}

/// The IPv6 source address. A link-local address needs its interface.
pub(super) fn source_v6(address: IpAddr, interface: u32) -> Option<libc::in6_pktinfo> {
    let IpAddr::V6(address) = address else { return None };
    let interface = if address.is_unicast_link_local() { interface } else { 0 };
    let from = libc::in6_addr { s6_addr: address.octets() };
    Some(libc::in6_pktinfo { ipi6_addr: from, ipi6_ifindex: interface })
}
