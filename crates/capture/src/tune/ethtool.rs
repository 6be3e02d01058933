//! Settings of an interface's driver, by ioctl (linux/ethtool.h, linux/sockios.h).

use std::io;
use std::os::unix::net::UnixDatagram;

use wirestamp_sys::ethtool::{self, Coalescing};
use wirestamp_sys::socket;

use super::place::Knob;

const LRO: u32 = 1 << 15; // ETH_FLAG_LRO of linux/ethtool.h

/// Access to the driver of one interface, in the namespace in which this was opened.
#[derive(Debug)]
pub(super) struct Ethtool {
    socket: UnixDatagram,
    interface: String,
}

impl Ethtool {
    pub(super) fn open(interface: &str) -> io::Result<Self> {
        Ok(Self { socket: UnixDatagram::unbound()?, interface: interface.to_owned() })
    }

    pub(super) fn read(&self, knob: Knob) -> io::Result<String> {
        let Self { socket, interface } = self;
        Ok(match knob {
            Knob::Gro => on_off(ethtool::gro(socket, interface)?),
            Knob::Lro => on_off(ethtool::flags(socket, interface)? & LRO != 0),
            Knob::AdaptiveRx => on_off(self.coalescing(Coalescing::AdaptiveReceive)? != 0),
            Knob::RxUsecs => self.coalescing(Coalescing::ReceiveMicroseconds)?.to_string(),
        })
    }

    pub(super) fn write(&self, knob: Knob, value: &str) -> io::Result<()> {
        let Self { socket, interface } = self;
        let number = match value {
            "off" => 0,
            "on" => 1,
            number => number.parse().map_err(io::Error::other)?,
        };
        let set = |which| ethtool::set_coalescing(socket, interface, which, number);
        match knob {
            Knob::Gro => ethtool::set_gro(socket, interface, number),
            Knob::Lro => {
                let others = ethtool::flags(socket, interface)? & !LRO;
                ethtool::set_flags(socket, interface, others | (LRO * number.min(1)))
            }
            Knob::AdaptiveRx => set(Coalescing::AdaptiveReceive),
            Knob::RxUsecs => set(Coalescing::ReceiveMicroseconds),
        }
    }

    fn coalescing(&self, which: Coalescing) -> io::Result<u32> {
        ethtool::coalescing(&self.socket, &self.interface, which)
    }

    /// Driver name.
    pub(super) fn driver(&self) -> io::Result<String> {
        ethtool::driver(&self.socket, &self.interface)
    }

    /// The namespace's cookie, which is unique since boot.
    pub(super) fn namespace(&self) -> io::Result<u64> {
        socket::namespace_cookie(&self.socket)
    }
}

fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_gro_and_no_coalescing() {
        let loopback = Ethtool::open("lo").unwrap();
        assert!(["on", "off"].contains(&&*loopback.read(Knob::Gro).unwrap()));
        assert!(loopback.read(Knob::RxUsecs).is_err());
        assert!(loopback.write(Knob::RxUsecs, "many").is_err());
        assert_eq!(loopback.namespace().unwrap(), loopback.namespace().unwrap());
    }
}
