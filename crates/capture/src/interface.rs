//! A network interface as the kernel knows and counts it (netdevice(7)).
#![expect(unsafe_code, reason = "if_nametoindex(3), and ioctls on a struct ifreq")]

use std::ffi::CString;
use std::fs::{self, File};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixDatagram;

use crate::Error;

const ETHERNET: u16 = 1; // ARPHRD_ETHER (linux/if_arp.h)
const LOOPBACK: u16 = 772; // ARPHRD_LOOPBACK, with Ethernet headers of zeroes
const SIOCETHTOOL: libc::Ioctl = 0x8946; // linux/sockios.h
const ETHTOOL_GCHANNELS: u32 = 0x3c; // linux/ethtool.h

/// `struct ethtool_channels` of linux/ethtool.h: how many queues there may be, then how many there
/// are. A combined one receives and sends.
#[repr(C)]
#[derive(Default)]
struct Channels {
    command: u32,
    max: [u32; 4],
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

/// An interface of the network namespace in which it was opened.
#[derive(Debug)]
pub(crate) struct Interface {
    pub(crate) name: String,
    pub(crate) index: i32,
    /// Its hardware type, `ARPHRD_*` of linux/if_arp.h.
    pub(crate) kind: u16,
    pub(crate) is_loopback: bool,
    /// `/proc/thread-self/net/dev` shows the namespace it was opened in, whoever reads it later.
    counters: File,
    /// Any socket of that namespace answers questions about its interfaces.
    socket: UnixDatagram,
}

impl Interface {
    /// Finds an interface that can be captured on.
    pub(crate) fn open(name: &str) -> Result<Self, Error> {
        let interface = Self::find(name)?;
        if !is_ethernet(interface.kind) {
            return Err(Error::NotEthernet { interface: interface.name, kind: interface.kind });
        }
        interface.check()?;
        Ok(interface)
    }

    /// Finds an interface, whatever it is.
    pub(crate) fn find(name: &str) -> Result<Self, Error> {
        let missing = || Error::NoSuchInterface(name.to_owned());
        let c_name = CString::new(name).map_err(|_| missing())?;
        // SAFETY: the name is a NUL-terminated string that outlives the call.
        let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
        let index = i32::try_from(index).ok().filter(|&index| index > 0).ok_or_else(missing)?;
        let failed = |cause| Error::System {
            what: "ask the kernel for its state",
            interface: name.to_owned(),
            cause,
        };
        let counters = File::open("/proc/thread-self/net/dev").map_err(failed)?;
        let socket = UnixDatagram::unbound().map_err(failed)?;
        let mut interface =
            Self { name: name.to_owned(), index, kind: 0, is_loopback: false, counters, socket };
        interface.kind = interface.ask_kind().map_err(failed)?;
        interface.is_loopback = interface.kind == LOOPBACK;
        Ok(interface)
    }

    /// Whether packets can still arrive here.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let unusable = |what| Err(Error::Unusable { interface: self.name.clone(), what });
        match self.is_up() {
            Ok(true) => Ok(()),
            Ok(false) => unusable("is down, so no packets arrive; `ip link set up` brings it up"),
            Err(_) => unusable("has disappeared; what was captured before is complete"),
        }
    }

    /// Whether it is up.
    pub(crate) fn is_up(&self) -> io::Result<bool> {
        let up = u16::try_from(libc::IFF_UP).unwrap_or(1);
        // SAFETY: of the union, SIOCGIFFLAGS sets this member.
        let flags = self.ask(libc::SIOCGIFFLAGS, |answer| unsafe { answer.ifru_flags })?;
        Ok(flags.cast_unsigned() & up != 0)
    }

    /// The longest packet in bytes that it takes, without the Ethernet header.
    pub(crate) fn mtu(&self) -> Result<u32, Error> {
        // SAFETY: of the union, SIOCGIFMTU sets this member.
        let mtu = self.ask(libc::SIOCGIFMTU, |answer| unsafe { answer.ifru_mtu });
        let mtu =
            mtu.and_then(|mtu| u32::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData.into()));
        mtu.map_err(|cause| Error::System {
            what: "read the MTU",
            interface: self.name.clone(),
            cause,
        })
    }

    /// How many receive queues it has, if its driver says so (ethtool(8), `--show-channels`).
    pub(crate) fn receive_queues(&self) -> io::Result<Option<u32>> {
        let mut channels = Channels { command: ETHTOOL_GCHANNELS, ..Channels::default() };
        // SAFETY: it is the struct of that command.
        match unsafe { self.ethtool(&mut channels) } {
            Ok(()) => Ok(channels.rx.checked_add(channels.combined).filter(|&count| count > 0)),
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn ask_kind(&self) -> io::Result<u16> {
        // SAFETY: of the union, SIOCGIFHWADDR sets this member.
        self.ask(libc::SIOCGIFHWADDR, |answer| unsafe { answer.ifru_hwaddr }.sa_family)
    }

    fn ask<T>(
        &self,
        question: libc::Ioctl,
        answer: impl Fn(libc::__c_anonymous_ifr_ifru) -> T,
    ) -> io::Result<T> {
        let mut request = self.request();
        // SAFETY: the questions asked here read and write an ifreq, which is what they are given.
        match unsafe { libc::ioctl(self.socket.as_raw_fd(), question, &raw mut request) } {
            0 => Ok(answer(request.ifr_ifru)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Asks its driver, by way of the kernel, with an ethtool(8) command that `T` begins with and
    /// that fills the rest of it.
    ///
    /// # Safety
    /// `T` is the struct that the kernel reads and writes for that command (linux/ethtool.h).
    pub(crate) unsafe fn ethtool<T>(&self, command: &mut T) -> io::Result<()> {
        // SAFETY: the struct is of the command's kind, as the caller vouches.
        unsafe { self.ioctl(SIOCETHTOOL, command) }
    }

    /// Asks its driver with an ioctl(2) whose request leads to `data`.
    ///
    /// # Safety
    /// `T` is the struct that the kernel reads and writes for that question.
    pub(crate) unsafe fn ioctl<T>(&self, question: libc::Ioctl, data: &mut T) -> io::Result<()> {
        let mut request = self.request();
        request.ifr_ifru.ifru_data = std::ptr::from_mut(data).cast();
        // SAFETY: the request leads to a struct of the question's kind, as the caller vouches, which
        // outlives the call.
        match unsafe { libc::ioctl(self.socket.as_raw_fd(), question, &raw mut request) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// A request about this interface, with nothing asked yet.
    fn request(&self) -> libc::ifreq {
        // SAFETY: ifreq is plain data, for which all zeroes is a valid value.
        let mut request: libc::ifreq = unsafe { mem::zeroed() };
        // The last byte stays zero: the kernel takes the name up to there.
        let room = request.ifr_name.split_last_mut().map_or(&mut [][..], |(_, room)| room);
        for (to, from) in room.iter_mut().zip(self.name.bytes()) {
            *to = libc::c_char::from_ne_bytes([from]);
        }
        request
    }

    /// The packets that the driver has dropped since the interface came up; zero where the kernel
    /// no longer knows the interface.
    pub(crate) fn dropped(&self) -> io::Result<u64> {
        // By position, because another thread may read it at the same time.
        let (mut table, mut part) = (Vec::new(), [0; 4096]);
        loop {
            match self.counters.read_at(&mut part, table.len() as u64)? {
                0 => break,
                count => table.extend_from_slice(&part[..count]),
            }
        }
        Ok(dropped(&String::from_utf8_lossy(&table), &self.name).unwrap_or(0))
    }
}

impl AsFd for Interface {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Whether packets of a hardware type begin with an Ethernet header.
pub(crate) fn is_ethernet(kind: u16) -> bool {
    matches!(kind, ETHERNET | LOOPBACK)
}

/// The interfaces of the calling thread's network namespace that can be captured on.
///
/// # Errors
/// When the kernel's list of interfaces cannot be read.
pub fn interfaces() -> io::Result<Vec<String>> {
    let table = fs::read_to_string("/proc/thread-self/net/dev")?;
    let usable = |name: &&str| Interface::open(name).is_ok();
    Ok(names(&table).filter(usable).map(str::to_owned).collect())
}

/// The names in `/proc/net/dev`: what stands before the colons (proc_net(5)).
fn names(table: &str) -> impl Iterator<Item = &str> {
    table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim()))
}

/// Finds an interface's line in `/proc/net/dev`: name, then eight receive columns of which the
/// fourth is drops (proc_net(5)).
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
    fn an_unknown_interface_is_an_error_that_names_it() {
        let error = Interface::open("no-such-if").unwrap_err();
        assert!(error.to_string().contains("there is no interface no-such-if"), "{error}");
    }
}
