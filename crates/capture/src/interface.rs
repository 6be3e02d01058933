//! A network interface, its state and counters (netdevice(7)).

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixDatagram;

use wirestamp_packet::LinkType;
use wirestamp_sys::{ethtool, interface};

use crate::Error;

/// Hardware types of linux/if_arp.h.
mod hardware {
    pub(super) const ETHER: u16 = 1;
    pub(super) const PPP: u16 = 512;
    pub(super) const RAWIP: u16 = 519;
    pub(super) const TUNNEL: u16 = 768; // IPIP
    pub(super) const TUNNEL6: u16 = 769;
    /// With Ethernet headers of zeroes.
    pub(super) const LOOPBACK: u16 = 772;
    pub(super) const SIT: u16 = 776;
    /// Tun and WireGuard.
    pub(super) const NONE: u16 = 0xfffe;
    /// Of no interface; here, all interfaces at once.
    pub(super) const VOID: u16 = 0xffff;
}

/// Name of all interfaces at once, as in tcpdump.
pub(crate) const ANY: &str = "any";

/// MTU of all interfaces at once: no packet is longer, except for merged ones.
const MAX_MTU: u32 = 65_535;

/// An interface of the network namespace in which it was opened, or all of them ([`ANY`]).
#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) name: String,
    /// 0 for all interfaces.
    pub(crate) index: i32,
    /// Hardware type, `ARPHRD_*` of linux/if_arp.h.
    pub(crate) kind: u16,
    /// How its frames begin; none if captures do not support it.
    pub(crate) link: Option<LinkType>,
    pub(crate) is_loopback: bool,
    /// `/proc/thread-self/net/dev`: reads from any thread show the namespace in which the file was opened.
    counters: File,
    /// Socket of that namespace, for ioctls on the interface.
    socket: UnixDatagram,
}

impl Interface {
    /// Finds an interface that supports captures.
    pub(crate) fn open(name: &str) -> Result<Self, Error> {
        let interface = Self::find(name)?;
        if interface.link.is_none() {
            return Err(Error::UnknownLink { interface: interface.name, kind: interface.kind });
        }
        interface.check()?;
        Ok(interface)
    }

    /// Finds an interface of any kind.
    pub(crate) fn find(name: &str) -> Result<Self, Error> {
        let missing = || Error::NoSuchInterface(name.to_owned());
        let failed =
            |cause| Error::System { what: "read the state", interface: name.to_owned(), cause };
        let counters = File::open("/proc/thread-self/net/dev").map_err(failed)?;
        let socket = UnixDatagram::unbound().map_err(failed)?;
        let (index, kind) = if name == ANY {
            (0, hardware::VOID)
        } else {
            let index = interface::index(&socket, name).map_err(|_| missing())?;
            (index, interface::hardware_type(&socket, name).map_err(failed)?)
        };
        let (link, is_loopback) = (link(kind), kind == hardware::LOOPBACK);
        Ok(Self { name: name.to_owned(), index, kind, link, is_loopback, counters, socket })
    }

    /// Whether it is all interfaces at once.
    pub(crate) fn is_any(&self) -> bool {
        self.index == 0
    }

    /// Whether its packets are captured without their link header, and get a cooked one.
    pub(crate) fn is_cooked(&self) -> bool {
        self.link == Some(LinkType::LinuxCooked2)
    }

    /// Whether packets can still arrive here.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let unusable = |what| Err(Error::Unusable { interface: self.name.clone(), what });
        match self.is_up() {
            Ok(true) => Ok(()),
            Ok(false) => unusable("is down, so no packets arrive; `ip link set up` brings it up"),
            Err(_) => unusable("has disappeared; the capture before that is complete"),
        }
    }

    /// Whether it is up; all interfaces at once always are. An error if it no longer exists.
    pub(crate) fn is_up(&self) -> io::Result<bool> {
        if self.is_any() {
            return Ok(true);
        }
        // A new interface may have its name.
        if interface::index(self, &self.name)? != self.index {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        interface::is_up(self, &self.name)
    }

    /// Max packet length in bytes, without the Ethernet header.
    pub(crate) fn mtu(&self) -> Result<u32, Error> {
        if self.is_any() {
            return Ok(MAX_MTU);
        }
        interface::mtu(self, &self.name).map_err(|cause| Error::System {
            what: "read the MTU",
            interface: self.name.clone(),
            cause,
        })
    }

    /// Number of receive queues, if the driver reports it (ethtool(8), `--show-channels`).
    pub(crate) fn receive_queues(&self) -> io::Result<Option<u32>> {
        match ethtool::receive_queues(self, &self.name) {
            Ok(count) => Ok(Some(count).filter(|&count| count > 0)),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Packets dropped by the driver since the interface came up; 0 if the interface no longer exists.
    pub(crate) fn dropped(&self) -> io::Result<u64> {
        // Reads at offsets, because another thread may read the file at the same time.
        let (mut table, mut part) = (Vec::new(), [0; 4096]);
        loop {
            match self.counters.read_at(&mut part, table.len() as u64)? {
                0 => break,
                count => table.extend_from_slice(&part[..count]),
            }
        }
        let table = String::from_utf8_lossy(&table);
        if self.is_any() {
            return Ok(names(&table).filter_map(|name| dropped(&table, name)).sum());
        }
        Ok(dropped(&table, &self.name).unwrap_or(0))
    }
}

impl AsFd for Interface {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// How frames of a hardware type begin, if captures support it: with an Ethernet header, or with the IP packet, or with a
/// cooked header in place of their own.
pub(crate) fn link(kind: u16) -> Option<LinkType> {
    use hardware::{ETHER, LOOPBACK, NONE, PPP, RAWIP, SIT, TUNNEL, TUNNEL6, VOID};
    match kind {
        ETHER | LOOPBACK => Some(LinkType::Ethernet),
        NONE | RAWIP | TUNNEL | TUNNEL6 | SIT => Some(LinkType::Ip),
        PPP | VOID => Some(LinkType::LinuxCooked2),
        _ => None,
    }
}

/// The interfaces of the calling thread's network namespace that support captures.
///
/// # Errors
/// The kernel's list of interfaces cannot be read.
pub fn interfaces() -> io::Result<Vec<String>> {
    let table = fs::read_to_string("/proc/thread-self/net/dev")?;
    let usable = |name: &&str| Interface::open(name).is_ok();
    Ok(names(&table).filter(usable).map(str::to_owned).collect())
}

/// How frames of an interface begin; none if captures do not support it.
///
/// # Errors
/// There is no such interface in the calling thread's network namespace.
pub fn link_type(interface: &str) -> Result<Option<LinkType>, Error> {
    Ok(Interface::find(interface)?.link)
}

/// All interfaces of the calling thread's network namespace, and `any` for all at once, each with whether it supports captures now, or why not.
///
/// # Errors
/// The kernel's list of interfaces cannot be read.
pub fn interface_states() -> io::Result<Vec<(String, Result<(), Error>)>> {
    let table = fs::read_to_string("/proc/thread-self/net/dev")?;
    let state = |name: &str| (name.to_owned(), Interface::open(name).map(drop));
    Ok(names(&table).chain([ANY]).map(state).collect())
}

/// The names in `/proc/net/dev`, before the colons (proc_net(5)).
fn names(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim()))
}

/// Drops in an interface's line of `/proc/net/dev`: name, then eight receive columns, the fourth of which is drops
/// (proc_net(5)).
fn dropped(table: &str, name: &str) -> Option<u64> {
    let columns = table.lines().find_map(|line| {
        let (interface, columns) = line.split_once(':')?;
        (interface.trim() == name).then_some(columns)
    })?;
    columns.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Inter-|   Receive                                                |\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes\n    \
        lo:  100  2    0    3    0     0          0         0      100       2    0\n \
        tap-b: 5000 40 1 7 0 0 0 0 0 0 0\n";

    #[test]
    fn drops_are_read_from_the_interfaces_own_line() {
        assert_eq!(dropped(TABLE, "tap-b"), Some(7));
        assert_eq!(dropped(TABLE, "tap"), None);
        assert_eq!(dropped("tap: 1", "tap"), None);
    }

    #[test]
    fn every_interface_has_a_line() {
        assert!(names(TABLE).eq(["lo", "tap-b"]));
        assert!(interfaces().unwrap().contains(&"lo".to_owned()));
    }

    #[test]
    fn frames_begin_with_ethernet_or_ip() {
        let lo = Interface::open("lo").unwrap();
        assert_eq!((lo.link, lo.is_loopback), (Some(LinkType::Ethernet), true));
        assert_eq!(
            [1, 0xfffe, 512, 824].map(link),
            [Some(LinkType::Ethernet), Some(LinkType::Ip), Some(LinkType::LinuxCooked2), None]
        );
    }

    #[test]
    fn all_interfaces_have_the_drops_of_all() {
        let any = Interface::open(ANY).unwrap();
        assert!(any.is_any() && any.is_up().unwrap() && any.link == Some(LinkType::LinuxCooked2));
        let (lo, all) = (Interface::open("lo").unwrap().dropped().unwrap(), any.dropped().unwrap());
        assert!(all >= lo, "{all} {lo}");
    }

    #[test]
    fn interface_with_another_index_is_another_one() {
        let mut lo = Interface::open("lo").unwrap();
        assert!(lo.check().is_ok());
        lo.index += 1;
        let error = lo.check().unwrap_err();
        assert!(error.to_string().contains("has disappeared"), "{error}");
    }

    #[test]
    fn unknown_interface_is_reported_by_name() {
        let error = Interface::open("no-such-if").unwrap_err();
        assert!(error.to_string().contains("there is no interface no-such-if"), "{error}");
    }
}
