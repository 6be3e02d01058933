//! The addresses that frames come from when nobody has said which.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use super::LiveError;
use super::link::Link;
use super::program::system;
use crate::sys;

/// The Ethernet address of `interface`, one of the calling thread's network namespace.
///
/// # Errors
/// An interface that does not exist, is down, or is no Ethernet interface.
pub fn own_mac(interface: &str) -> Result<[u8; 6], LiveError> {
    let link = Link::open(interface)?;
    link.mac().map_err(|cause| system("read the Ethernet address", &link, cause))
}

/// The address that the kernel would send to `destination` from, over `interface`. Nothing is sent.
///
/// # Errors
/// When there is no route, or no address.
pub fn own_address(interface: &str, destination: IpAddr) -> Result<IpAddr, LiveError> {
    let any: IpAddr = match destination {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let ask = || -> io::Result<IpAddr> {
        let socket = UdpSocket::bind((any, 0))?;
        sys::bind_to_interface(&socket, interface)?;
        socket.connect((destination, 9))?; // any port will do: discard, RFC 863
        Ok(socket.local_addr()?.ip())
    };
    ask().map_err(|cause| LiveError::NoAddress {
        interface: interface.to_owned(),
        destination,
        cause,
    })
}
