//! What an interface's driver says about itself, by ioctl (linux/ethtool.h, linux/sockios.h).
#![expect(
    unsafe_code,
    reason = "ioctls on a struct ifreq, and a socket option that libraries lack"
)]

use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

use super::place::Knob;

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const GDRVINFO: u32 = 0x03;
const GCOALESCE: u32 = 0x0e;
const SCOALESCE: u32 = 0x0f;
const GFLAGS: u32 = 0x25;
const SFLAGS: u32 = 0x26;
const GGRO: u32 = 0x2b;
const SGRO: u32 = 0x2c;
const LRO: u32 = 1 << 15; // ETH_FLAG_LRO

mod coalesce {
    //! `struct ethtool_coalesce`: 23 numbers, the command first.
    pub(super) const LENGTH: usize = 23;
    pub(super) const RX_USECS: usize = 1;
    pub(super) const ADAPTIVE_RX: usize = 10;
}

const SO_NETNS_COOKIE: libc::c_int = 71; // asm-generic/socket.h, since 5.14

/// Asks the driver of one interface, in the namespace in which this was opened.
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
        Ok(match knob {
            Knob::Gro => on_off(self.flag(GGRO)? != 0),
            Knob::Lro => on_off(self.flag(GFLAGS)? & LRO != 0),
            Knob::AdaptiveRx => on_off(self.coalescing()?[coalesce::ADAPTIVE_RX] != 0),
            Knob::RxUsecs => self.coalescing()?[coalesce::RX_USECS].to_string(),
        })
    }

    pub(super) fn write(&self, knob: Knob, value: &str) -> io::Result<()> {
        let number = match value {
            "off" => 0,
            "on" => 1,
            number => number.parse().map_err(io::Error::other)?,
        };
        match knob {
            Knob::Gro => self.ask(&mut [SGRO, number]),
            Knob::Lro => {
                let others = self.flag(GFLAGS)? & !LRO;
                self.ask(&mut [SFLAGS, others | (LRO * number.min(1))])
            }
            Knob::AdaptiveRx => self.coalesce(coalesce::ADAPTIVE_RX, number),
            Knob::RxUsecs => self.coalesce(coalesce::RX_USECS, number),
        }
    }

    /// The driver's name, from `struct ethtool_drvinfo`: 49 numbers, of which the second to the
    /// ninth are its 32 characters.
    pub(super) fn driver(&self) -> io::Result<String> {
        let mut answer = [0; 49];
        answer[0] = GDRVINFO;
        self.ask(&mut answer)?;
        let name = answer[1..9].iter().flat_map(|word| word.to_ne_bytes());
        let name: Vec<_> = name.take_while(|&byte| byte != 0).collect();
        Ok(String::from_utf8_lossy(&name).into_owned())
    }

    /// What tells this network namespace from every other since the machine was started.
    pub(super) fn namespace(&self) -> io::Result<u64> {
        let mut cookie = 0_u64;
        let mut size = libc::socklen_t::try_from(size_of::<u64>()).map_err(io::Error::other)?;
        // SAFETY: the option writes 64 bits, for which there is room, and the size says so.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                SO_NETNS_COOKIE,
                (&raw mut cookie).cast(),
                &raw mut size,
            )
        };
        if result == 0 { Ok(cookie) } else { Err(io::Error::last_os_error()) }
    }

    fn flag(&self, command: u32) -> io::Result<u32> {
        let mut value = [command, 0];
        self.ask(&mut value)?;
        Ok(value[1])
    }

    fn coalescing(&self) -> io::Result<[u32; coalesce::LENGTH]> {
        let mut answer = [0; coalesce::LENGTH];
        answer[0] = GCOALESCE;
        self.ask(&mut answer)?;
        Ok(answer)
    }

    /// Changes one number of the driver's coalescing, and leaves the others as they are.
    fn coalesce(&self, field: usize, number: u32) -> io::Result<()> {
        let mut request = self.coalescing()?;
        request[0] = SCOALESCE;
        request[field] = number;
        self.ask(&mut request)
    }

    /// Sends a command, the first of `words`. The others go with it, or take the answer: each
    /// command has a structure of its own, and gets an array of its size.
    fn ask<const WORDS: usize>(&self, words: &mut [u32; WORDS]) -> io::Result<()> {
        // SAFETY: ifreq is plain data, for which all zeroes is a valid value.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        // The last byte stays zero: the kernel takes the name up to there.
        let room = request.ifr_name.split_last_mut().map_or(&mut [][..], |(_, room)| room);
        for (to, from) in room.iter_mut().zip(self.interface.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        request.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
        // SAFETY: the request points to an array as large as the structure of its command, which is
        // all that the kernel reads and writes; both are alive during the call.
        match unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_gro_and_no_coalescing() {
        let loopback = Ethtool::open("lo").unwrap();
        assert!(["on", "off"].contains(&&*loopback.read(Knob::Gro).unwrap()));
        assert!(loopback.read(Knob::RxUsecs).is_err());
        assert!(loopback.write(Knob::RxUsecs, "many").is_err());
        assert_eq!(loopback.namespace().unwrap(), loopback.namespace().unwrap());
    }
}
