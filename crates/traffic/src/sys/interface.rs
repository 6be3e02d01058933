//! Questions about an interface: ioctls on a struct `ifreq` (netdevice(7)). Any socket of the
//! interface's network namespace can ask them.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// What the kernel answers with, and is told beside the interface's name.
pub(super) type Details = libc::__c_anonymous_ifr_ifru;

/// Whether it is up. Costs about a microsecond: no lock, unlike the netlink message that tells it.
pub(crate) fn is_up(socket: &impl AsFd, interface: &str) -> io::Result<bool> {
    // SAFETY: SIOCGIFFLAGS follows no pointers, and sets this member.
    let flags = unsafe {
        let nothing = Details { ifru_flags: 0 };
        ask(socket, interface, libc::SIOCGIFFLAGS, nothing)?.ifru_flags
    };
    Ok(libc::c_int::from(flags) & libc::IFF_UP != 0)
}

/// Asks the kernel about an interface.
///
/// # Safety
/// What `question` follows of pointers in `details` is valid to be read and written.
pub(super) unsafe fn ask(
    socket: &impl AsFd,
    interface: &str,
    question: libc::Ioctl,
    details: Details,
) -> io::Result<Details> {
    // SAFETY: ifreq is plain data, for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero: the kernel takes the name up to there.
    let room = request.ifr_name.split_last_mut().map_or(&mut [][..], |(_, room)| room);
    for (to, from) in room.iter_mut().zip(interface.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    request.ifr_ifru = details;
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the questions asked here read and write an ifreq, and what its details point to as
    // the caller has promised.
    let status = unsafe { libc::ioctl(fd, question, &raw mut request) };
    if status == -1 { Err(io::Error::last_os_error()) } else { Ok(request.ifr_ifru) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        let socket = UnixDatagram::unbound().unwrap();
        is_up(&socket, "lo").unwrap();
        let error = is_up(&socket, "no-such-if").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
    }
}
