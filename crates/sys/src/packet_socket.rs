//! Packet sockets, which receive and send whole frames: packet(7).

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::socket::{bind_packet, option, set_option};

const ETH_P_ALL: u16 = 0x0003; // linux/if_ether.h
const PACKET_MR_PROMISC: libc::c_ushort = 1; // linux/if_packet.h

/// Opens a packet socket through which nothing is received: its protocol is 0 (packet(7)).
///
/// # Errors
/// `EPERM` without `CAP_NET_RAW`.
pub fn open() -> io::Result<OwnedFd> {
    open_with(SocketType::RAW)
}

/// Opens a packet socket whose packets begin after the link header, through which nothing is received.
///
/// # Errors
/// `EPERM` without `CAP_NET_RAW`.
pub fn open_without_link_header() -> io::Result<OwnedFd> {
    open_with(SocketType::DGRAM)
}

fn open_with(kind: SocketType) -> io::Result<OwnedFd> {
    Ok(socket_with(AddressFamily::PACKET, kind, SocketFlags::CLOEXEC, None)?)
}

/// Binds the socket to the interface with this index, to receive all packets and to send; to all interfaces for 0.
///
/// # Errors
/// Those of bind(2).
pub fn bind(socket: &impl AsFd, index: i32) -> io::Result<()> {
    bind_packet(socket, index, ETH_P_ALL)
}

/// Binds the socket to the interface with this index, to send only.
///
/// # Errors
/// Those of bind(2).
pub fn bind_to_send(socket: &impl AsFd, index: i32) -> io::Result<()> {
    bind_packet(socket, index, 0)
}

/// Sends past the interface's queueing discipline (`PACKET_QDISC_BYPASS`, packet(7)).
///
/// # Errors
/// Those of setsockopt(2).
pub fn bypass_queue(socket: &impl AsFd) -> io::Result<()> {
    set_option(socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &1)
}

/// Enables promiscuous mode while the socket is open: the interface then also receives packets for
/// other hosts, as a tap or a mirror port requires.
///
/// # Errors
/// There is no such interface.
pub fn receive_promiscuously(socket: &impl AsFd, index: i32) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: index,
        mr_type: PACKET_MR_PROMISC,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

/// Number of packets that passed the socket's filter, and how many of them were dropped, both
/// since the last call (`PACKET_STATISTICS`).
///
/// # Errors
/// Those of getsockopt(2).
pub fn statistics(socket: &impl AsFd) -> io::Result<[u32; 2]> {
    // Version 3 of the ring adds a third number; the first two are the same in every version.
    let [packets, drops, _] =
        option::<[u32; 3]>(socket, libc::SOL_PACKET, libc::PACKET_STATISTICS)?;
    Ok([packets, drops])
}
