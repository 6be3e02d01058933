//! The interface as the kernel knows and counts it (netdevice(7)).
#![expect(unsafe_code, reason = "if_nametoindex(3), and ioctls on a struct ifreq")]

use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;

use super::LiveError;

const ETHERNET: u16 = 1; // ARPHRD_ETHER (linux/if_arp.h)
const LOOPBACK: u16 = 772; // ARPHRD_LOOPBACK, with Ethernet headers of zeroes

/// What the kernel grants a frame beyond the MTU: the Ethernet header and a VLAN tag
/// (`xdp_ok_fwd_dev` in `net/core/filter.c`).
pub(super) const BEYOND_MTU: u32 = 14 + 4;

/// An interface of the network namespace in which it was opened.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) index: i32,
    /// `/proc/thread-self/net/dev` shows the namespace it was opened in, whoever reads it later.
    counters: File,
    /// Any socket of that namespace answers questions about its interfaces.
    socket: UnixDatagram,
}

/// Frames that the interface's driver has dropped since it came up, whoever sent them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Drops {
    pub(super) received: u64,
    pub(super) sent: u64,
}

impl Link {
    pub(super) fn open(name: &str) -> Result<Self, LiveError> {
        let missing = || LiveError::NoSuchInterface(name.to_owned());
        let c_name = CString::new(name).map_err(|_| missing())?;
        // SAFETY: the name is a NUL-terminated string that outlives the call.
        let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
        let index = i32::try_from(index).ok().filter(|&index| index > 0).ok_or_else(missing)?;
        let failed = |cause| LiveError::System {
            what: "ask the kernel for its state",
            interface: name.to_owned(),
            cause,
        };
        let counters = File::open("/proc/thread-self/net/dev").map_err(failed)?;
        let socket = UnixDatagram::unbound().map_err(failed)?;
        let link = Self { name: name.to_owned(), index, counters, socket };
        // SAFETY: of the union, SIOCGIFHWADDR sets this member.
        let kind = link.ask(libc::SIOCGIFHWADDR, |answer| unsafe { answer.ifru_hwaddr }.sa_family);
        match kind.map_err(failed)? {
            ETHERNET | LOOPBACK => {}
            _ => return Err(link.unusable("is no Ethernet interface; choose one that is")),
        }
        link.check()?;
        Ok(link)
    }

    /// Whether frames can still go through it.
    pub(super) fn check(&self) -> Result<(), LiveError> {
        let up = u16::try_from(libc::IFF_UP).unwrap_or(1);
        // SAFETY: of the union, SIOCGIFFLAGS sets this member.
        match self.ask(libc::SIOCGIFFLAGS, |answer| unsafe { answer.ifru_flags }) {
            Ok(flags) if flags.cast_unsigned() & up != 0 => Ok(()),
            Ok(_) => {
                Err(self.unusable("is down, so no frames pass; `ip link set up` brings it up"))
            }
            Err(_) => Err(self.unusable("has disappeared while frames were sent")),
        }
    }

    fn unusable(&self, what: &'static str) -> LiveError {
        LiveError::Unusable { interface: self.name.clone(), what }
    }

    /// The longest packet in bytes that it takes, without the Ethernet header.
    pub(super) fn mtu(&self) -> io::Result<u32> {
        // SAFETY: of the union, SIOCGIFMTU sets this member.
        let mtu = self.ask(libc::SIOCGIFMTU, |answer| unsafe { answer.ifru_mtu })?;
        u32::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// Its Ethernet address.
    pub(super) fn mac(&self) -> io::Result<[u8; 6]> {
        // SAFETY: of the union, SIOCGIFHWADDR sets this member.
        let bytes =
            self.ask(libc::SIOCGIFHWADDR, |answer| unsafe { answer.ifru_hwaddr }.sa_data)?;
        let mut mac = [0; 6];
        for (to, from) in mac.iter_mut().zip(bytes) {
            [*to] = from.to_ne_bytes();
        }
        Ok(mac)
    }

    fn ask<T>(
        &self,
        question: libc::Ioctl,
        answer: impl Fn(libc::__c_anonymous_ifr_ifru) -> T,
    ) -> io::Result<T> {
        // SAFETY: ifreq is plain data, for which all zeroes is a valid value.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        // The last byte stays zero: the kernel takes the name up to there.
        let room = request.ifr_name.split_last_mut().map_or(&mut [][..], |(_, room)| room);
        for (to, from) in room.iter_mut().zip(self.name.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        // SAFETY: the questions asked here read and write an ifreq, which is what they are given.
        match unsafe { libc::ioctl(self.socket.as_raw_fd(), question, &raw mut request) } {
            0 => Ok(answer(request.ifr_ifru)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// What was dropped up to now; zeroes where the kernel no longer knows the interface.
    pub(super) fn drops(&self) -> io::Result<Drops> {
        let mut table = String::new();
        (&self.counters).rewind()?;
        (&self.counters).read_to_string(&mut table)?;
        Ok(drops(&table, &self.name).unwrap_or_default())
    }
}

/// Finds an interface's line in `/proc/net/dev`: name, eight columns of what was received and eight
/// of what was sent, of each of which the fourth is drops (proc_net(5)).
fn drops(table: &str, name: &str) -> Option<Drops> {
    let columns = table.lines().find_map(|line| {
        let (interface, columns) = line.split_once(':')?;
        (interface.trim() == name).then_some(columns)
    })?;
    let mut columns = columns.split_whitespace().map(str::parse);
    Some(Drops { received: columns.nth(3)?.ok()?, sent: columns.nth(7)?.ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_each_direction_are_read_from_the_interfaces_own_line() {
        let table = "Inter-|   Receive  |  Transmit\n face |bytes    packets errs\n    \
            lo:  1 2 0 3 0 0 0 0 10 20 0 5 0 0 0 0\n tap-b: 5 4 1 7 0 0 0 0 50 40 0 9 0 0 0 0\n";
        assert_eq!(drops(table, "tap-b"), Some(Drops { received: 7, sent: 9 }));
        assert_eq!(drops(table, "tap"), None);
        assert_eq!(drops("tap: 1 2 3 4", "tap"), None);
    }

    #[test]
    fn an_unknown_interface_is_an_error_that_names_it() {
        let error = Link::open("no-such-if").unwrap_err();
        assert!(error.to_string().contains("there is no interface no-such-if"), "{error}");
    }
}
