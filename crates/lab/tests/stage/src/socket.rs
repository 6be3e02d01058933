//! The sockets of the stage: whole frames in with the kernel's stamp, whole frames out.
//!
//! All packet sockets of an interface get the same stamp of a frame. The kernel takes it once,
//! where the frame enters its network stack (`net_timestamp_check` of net/core/dev.c). So any other
//! capture with the kernel's stamps on this interface reads the same stamps.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{SendFlags, send};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_sys::clock::ClockId;
use wirestamp_sys::control_message::Timestamps;
use wirestamp_sys::socket::{receive_message, set_option};
use wirestamp_sys::{clock, interface, packet_socket};

/// Length of the header before each received or sent frame: pending work for checksums and segments
/// (`PACKET_VNET_HDR` of packet(7), struct `virtio_net_hdr`). Without it, frames whose checksum the
/// kernel has not computed yet would be forwarded with a wrong one.
const VNET_HEADER: usize = 10;
/// More than the longest frame: 64 KiB merged from segments, and its Ethernet header.
const FRAME_BYTES: usize = 70_000;
/// Min length of an Ethernet frame, without check sequence, and offset of its type (IEEE 802.3).
const SHORTEST_FRAME: usize = 60;
const ETHERTYPE: usize = 12;
/// EtherType for experiments within one network (IEEE 802, "Local Experimental EtherType 1").
const LOCAL_EXPERIMENT: u16 = 0x88b5;
/// Size of the receive buffer, in bytes as the kernel counts them: about 80,000 short frames.
const QUEUE_BYTES: libc::c_int = 64 << 20;
/// Room for a control message with struct `scm_timestamping`, which holds three times.
const CONTROL_BYTES: usize = 128;

/// Room for control messages, aligned as the kernel requires.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// A socket that receives and sends all frames of one interface.
#[derive(Debug)]
pub(crate) struct FrameSocket {
    fd: OwnedFd,
    buffer: Vec<u8>,
    missed: u64,
}

/// A received frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    /// Time at which it entered the network stack; `None` if the kernel did not stamp frames yet.
    pub(crate) stamp: Option<Time<Utc>>,
    /// Header and frame, as [`FrameSocket::send`] expects them.
    pub(crate) raw: &'a [u8],
}

impl<'a> Received<'a> {
    /// The frame from its Ethernet header on.
    pub(crate) fn frame(&self) -> &'a [u8] {
        self.raw.get(VNET_HEADER..).unwrap_or_default()
    }
}

impl FrameSocket {
    /// Opens a socket on an interface of the calling thread's network namespace.
    pub(crate) fn open(interface: &str) -> io::Result<Self> {
        // Receives nothing before it is bound.
        let socket = Self { fd: packet_socket::open()?, buffer: vec![0; FRAME_BYTES], missed: 0 };
        let stamps = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
        set_option(&socket.fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &stamps)?;
        set_option(&socket.fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &QUEUE_BYTES)?;
        set_option(&socket.fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)?;
        set_option(&socket.fd, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1)?;
        packet_socket::bind(&socket.fd, interface::index(&socket.fd, interface)?)?;
        Ok(socket)
    }

    /// The next waiting frame; `None` if no frame waits.
    pub(crate) fn receive(&mut self) -> io::Result<Option<Received<'_>>> {
        let mut control = Control([0; CONTROL_BYTES]);
        match receive_message(&self.fd, &mut self.buffer, &mut control.0, 0) {
            Ok((length, control_length)) => {
                let raw = self.buffer.get(..length).unwrap_or_default();
                let control = control.0.get(..control_length).unwrap_or(&control.0);
                let nanos = Timestamps::find(control).and_then(|times| times.software);
                let stamp = nanos.filter(|&nanos| nanos > 0).map(Time::from_nanos);
                Ok(Some(Received { stamp, raw }))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Sends a frame with its header, in the form of [`Received::raw`].
    pub(crate) fn send(&self, raw: &[u8]) -> io::Result<()> {
        Ok(send(&self.fd, raw, SendFlags::empty()).map(drop)?)
    }

    /// Sends a frame that every host ignores.
    pub(crate) fn send_probe(&self) -> io::Result<()> {
        let mut raw = [0; VNET_HEADER + SHORTEST_FRAME];
        raw[VNET_HEADER + ETHERTYPE..][..2].copy_from_slice(&LOCAL_EXPERIMENT.to_be_bytes());
        self.send(&raw)
    }

    /// Frames dropped because the queue was full, since the socket was opened.
    pub(crate) fn missed(&mut self) -> io::Result<u64> {
        let [_, dropped] = packet_socket::statistics(&self.fd)?;
        self.missed += u64::from(dropped);
        Ok(self.missed)
    }

    /// Waits for a frame, at most for `timeout`.
    pub(crate) fn wait(&self, timeout: Span) -> io::Result<()> {
        let timeout = timeout.max(Span::ZERO).as_nanos();
        let timeout =
            Timespec { tv_sec: timeout / 1_000_000_000, tv_nsec: timeout % 1_000_000_000 };
        match poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], Some(&timeout)) {
            Err(rustix::io::Errno::INTR) | Ok(_) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The system clock, with which the kernel stamps packets.
pub(crate) fn now() -> Time<Utc> {
    Time::from_nanos(clock::now(ClockId::Realtime))
}
