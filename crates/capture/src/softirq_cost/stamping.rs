//! Stamps of all packets of an interface that nothing reads: what stamps alone add to the work of the softIRQ.

use std::net::{Ipv4Addr, UdpSocket};

use wirestamp_sys::socket::set_option;

use super::SoftirqStamp;
use super::attached::{Attached, attach};
use crate::Error;

/// Stamps packets until it is dropped.
pub struct PacketStamping {
    _stamping: Stamping,
}

enum Stamping {
    Program { _attached: Attached },
    Kernel { _socket: UdpSocket },
}

impl PacketStamping {
    /// Each packet that arrives at `interface` of this thread's network namespace is stamped by a tracing program.
    ///
    /// # Errors
    /// As of [`PacketMeasurement::start`](super::PacketMeasurement::start).
    pub fn by_program(interface: &str, stamp: SoftirqStamp) -> Result<Self, Error> {
        let program = match stamp {
            SoftirqStamp::Kernel => "stamp_kernel",
            SoftirqStamp::Counter => "stamp_counter",
        };
        let _stamping = Stamping::Program { _attached: attach(interface, 0, program, false)? };
        Ok(Self { _stamping })
    }

    /// The kernel itself stamps each packet of the machine, because a socket has requested it
    /// (`Documentation/networking/timestamping.rst`, 1.3). It starts to do so some milliseconds later.
    ///
    /// # Errors
    /// No socket can be made.
    pub fn by_kernel() -> Result<Self, Error> {
        let requested = || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            let software = libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE;
            set_option(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &software)?;
            Ok(socket)
        };
        let failed = |error: std::io::Error| Error::TestRun { reason: error.to_string() };
        Ok(Self { _stamping: Stamping::Kernel { _socket: requested().map_err(failed)? } })
    }
}
