//! `ring`: a packet socket's ring in shared memory
//! (`Documentation/networking/packet_mmap.rst` in the kernel's source).

mod blocks;
mod cooked;
mod per_frame;

pub(crate) use blocks::BlockRing;
pub(crate) use per_frame::PerFrameRing;

use crate::Error;
use crate::filter::Filter;
use crate::interface::Interface;
use crate::packet_socket::{PacketSocket, Setup};
use crate::receiver::TAG_BYTES;

/// Selects the stamp in the ring, where there are several (linux/if_packet.h;
/// `Documentation/networking/packet_mmap.rst`, "PACKET_TIMESTAMP").
const PACKET_TIMESTAMP: libc::c_int = 17;

/// Opens the socket for a ring of `version`.
fn socket(
    interface: &Interface,
    version: libc::tpacket_versions,
    filter: Option<&Filter>,
    setup: &Setup,
) -> Result<PacketSocket, Error> {
    let failed = |what| move |e| Error::system(what, &interface.name, "cap_net_raw", e);
    let socket = PacketSocket::open(interface, filter, setup)?;
    let version = version as libc::c_int;
    socket.set(libc::PACKET_VERSION, &version).map_err(failed("set the ring's version"))?;
    socket.set(libc::PACKET_RESERVE, &TAG_BYTES).map_err(failed("reserve room for VLAN tags"))?;
    if setup.card_stamps {
        socket
            .set(PACKET_TIMESTAMP, &libc::SOF_TIMESTAMPING_RAW_HARDWARE)
            .map_err(failed("enable the network card's stamps"))?;
    }
    Ok(socket)
}
