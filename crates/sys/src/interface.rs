//! Network interfaces: ioctls on a struct `ifreq` (netdevice(7)). A request can use any socket of
//! the interface's network namespace.
#![expect(unsafe_code, reason = "ioctl(2) with a struct ifreq")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use libc::__c_anonymous_ifr_ifru as Details;

/// The index of the interface of this name.
///
/// # Errors
/// `ENODEV` where there is no such interface.
pub fn index(socket: &impl AsFd, interface: &str) -> io::Result<i32> {
    if interface.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    let index = rustix::net::netdevice::name_to_index(socket, interface)?;
    i32::try_from(index).map_err(io::Error::other)
}

/// Whether the interface is up. Costs about a microsecond, and takes no lock in the kernel.
///
/// # Errors
/// `ENODEV` where there is no such interface.
pub fn is_up(socket: &impl AsFd, interface: &str) -> io::Result<bool> {
    // SAFETY: SIOCGIFFLAGS follows no pointers, and sets this member.
    let flags = unsafe { request(socket, interface, libc::SIOCGIFFLAGS, EMPTY)?.ifru_flags };
    Ok(libc::c_int::from(flags) & libc::IFF_UP != 0)
}

/// The longest packet in bytes that the interface sends, without the link-layer header.
///
/// # Errors
/// `ENODEV` where there is no such interface.
pub fn mtu(socket: &impl AsFd, interface: &str) -> io::Result<u32> {
    // SAFETY: SIOCGIFMTU follows no pointers, and sets this member.
    let mtu = unsafe { request(socket, interface, libc::SIOCGIFMTU, EMPTY)?.ifru_mtu };
    u32::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The hardware type of the interface, `ARPHRD_*` of linux/if_arp.h.
///
/// # Errors
/// `ENODEV` where there is no such interface.
pub fn hardware_type(socket: &impl AsFd, interface: &str) -> io::Result<u16> {
    // SAFETY: SIOCGIFHWADDR follows no pointers, and sets this member.
    let address = unsafe { request(socket, interface, libc::SIOCGIFHWADDR, EMPTY)?.ifru_hwaddr };
    Ok(address.sa_family)
}

/// Which packets a network card stamps (struct `hwtstamp_config` of linux/net_tstamp.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HardwareStamping {
    /// Flags, 0 in most drivers.
    pub flags: i32,
    /// Packets that are sent: `HWTSTAMP_TX_*`, 0 for none.
    pub sent: i32,
    /// Packets that arrive: `HWTSTAMP_FILTER_*`, 0 for none, 1 for all.
    pub arriving: i32,
}

/// Reads which packets the network card stamps (`SIOCGHWTSTAMP`).
///
/// # Errors
/// `EOPNOTSUPP` where the card stamps none.
pub fn hardware_stamping(socket: &impl AsFd, interface: &str) -> io::Result<HardwareStamping> {
    let none = HardwareStamping { flags: 0, sent: 0, arriving: 0 };
    stamping_ioctl(socket, interface, libc::SIOCGHWTSTAMP, none)
}

/// Sets which packets the network card stamps (`SIOCSHWTSTAMP`). Returns the driver's answer: it
/// may stamp more than requested.
///
/// # Errors
/// `ERANGE` where the driver lacks a filter, `EPERM` without `CAP_NET_ADMIN`.
pub fn set_hardware_stamping(
    socket: &impl AsFd,
    interface: &str,
    setting: HardwareStamping,
) -> io::Result<HardwareStamping> {
    stamping_ioctl(socket, interface, libc::SIOCSHWTSTAMP, setting)
}

fn stamping_ioctl(
    socket: &impl AsFd,
    interface: &str,
    command: libc::Ioctl,
    setting: HardwareStamping,
) -> io::Result<HardwareStamping> {
    let HardwareStamping { flags, sent, arriving } = setting;
    let mut config = libc::hwtstamp_config { flags, tx_type: sent, rx_filter: arriving };
    // SAFETY: both commands read and write a struct hwtstamp_config, which this is.
    unsafe { request(socket, interface, command, leading_to(&raw mut config))? };
    let libc::hwtstamp_config { flags, tx_type: sent, rx_filter: arriving } = config;
    Ok(HardwareStamping { flags, sent, arriving })
}

/// Commands of linux/ethtool.h whose structs have a fixed size.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum EthtoolCommand {
    GetDriver = 0x03,
    GetCoalescing = 0x0e,
    SetCoalescing = 0x0f,
    GetFlags = 0x25,
    SetFlags = 0x26,
    GetGro = 0x2b,
    SetGro = 0x2c,
    GetChannels = 0x3c,
    GetTimestamping = 0x41,
}

/// Words of the longest struct of a command: `ethtool_drvinfo`.
pub(crate) const ETHTOOL_WORDS: usize = 49;

/// Makes an ethtool request (`SIOCETHTOOL`). The first of `words` is the command; the kernel reads
/// and writes the others as the command's struct.
pub(crate) fn ethtool_ioctl(
    socket: &impl AsFd,
    interface: &str,
    command: EthtoolCommand,
    words: &mut [u32; ETHTOOL_WORDS],
) -> io::Result<()> {
    words[0] = command as u32;
    // SAFETY: the kernel reads and writes a struct of the command, none of which is longer.
    unsafe { request(socket, interface, libc::SIOCETHTOOL, leading_to(words.as_mut_ptr()))? };
    Ok(())
}

/// Details of a request in which only the name matters.
const EMPTY: Details = Details { ifru_ifindex: 0 };

/// Details that point to the command's struct.
fn leading_to<T>(data: *mut T) -> Details {
    Details { ifru_data: data.cast() }
}

/// Makes a request about an interface.
///
/// # Safety
/// The pointers in `details` that the kernel follows for `command` are valid to be read and
/// written.
unsafe fn request(
    socket: &impl AsFd,
    interface: &str,
    command: libc::Ioctl,
    details: Details,
) -> io::Result<Details> {
    let mut request = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru: details };
    // The last byte stays zero, and terminates the name.
    let room = request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1);
    room.zip(interface.bytes()).for_each(|(to, from)| *to = libc::c_char::from_ne_bytes([from]));
    // SAFETY: the commands above read and write an ifreq, and follow its details as the caller
    // promises.
    match unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), command, &raw mut request) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(request.ifr_ifru),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn loopback_interface_is_known_by_name() {
        let socket = UnixDatagram::unbound().unwrap();
        assert!(index(&socket, "lo").unwrap() > 0);
        assert_eq!(hardware_type(&socket, "lo").unwrap(), libc::ARPHRD_LOOPBACK);
        assert!(mtu(&socket, "lo").unwrap() > 1000);
    }

    #[test]
    fn unknown_interface_is_an_error() {
        let socket = UnixDatagram::unbound().unwrap();
        is_up(&socket, "lo").unwrap();
        let error = is_up(&socket, "no-such-if").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        assert_eq!(index(&socket, "no-such-if").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    }
}
