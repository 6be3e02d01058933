//! Packet sockets that share one interface's packets: `PACKET_FANOUT` of packet(7).
//!
//! The packets of one flow stay at one socket, because the kernel chooses by the hash of their
//! addresses and ports. While a socket's queue or ring is full, its packets go to another.

use std::io;
use std::sync::OnceLock;

use wirestamp_sys::socket::option;

use crate::packet_socket::PacketSocket;

const HASH: u32 = libc::PACKET_FANOUT_HASH;
const ROLL_OVER: u32 = libc::PACKET_FANOUT_FLAG_ROLLOVER;
/// The kernel chooses a number that no group of this network namespace has (Linux 4.12).
const UNIQUE: u32 = libc::PACKET_FANOUT_FLAG_UNIQUEID;

/// A group of sockets. The first one to join founds it.
#[derive(Debug, Default)]
pub(crate) struct Fanout {
    number: OnceLock<u32>,
}

impl Fanout {
    /// Makes `socket`, which is bound, one of the group. The kernel's argument has the group's
    /// number in its lower 16 bits, the way of spreading and the flags in the upper ones.
    pub(crate) fn join(&self, socket: &PacketSocket) -> io::Result<()> {
        let founded = self.number.get();
        let (number, unique) = founded.map_or((0, UNIQUE), |&number| (number, 0));
        let way = (HASH | ROLL_OVER | unique) << 16;
        socket.set(libc::PACKET_FANOUT, &(way | number))?;
        if founded.is_none() {
            let granted: u32 = option(socket, libc::SOL_PACKET, libc::PACKET_FANOUT)?;
            // Sockets are opened one after the other, so nobody else can have set it.
            let _ = self.number.set(granted & 0xffff);
        }
        Ok(())
    }
}
