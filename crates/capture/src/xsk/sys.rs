//! The system calls of AF_XDP sockets.
#![expect(unsafe_code, reason = "socket calls")]

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

#[expect(clippy::cast_possible_truncation, reason = "AF_XDP is 44")]
const FAMILY: libc::__u16 = libc::AF_XDP as libc::__u16;

pub(super) fn socket() -> io::Result<OwnedFd> {
    // SAFETY: socket takes no pointers; its result is checked before it is owned.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just opened and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

pub(super) fn bind(
    fd: BorrowedFd<'_>,
    interface: u32,
    queue: u32,
    flags: libc::__u16,
) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: FAMILY,
        sxdp_flags: flags,
        sxdp_ifindex: interface,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: 0,
    };
    // SAFETY: the address is a sockaddr_xdp and its size is passed.
    let result = unsafe {
        libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size::<libc::sockaddr_xdp>())
    };
    check(result)
}

/// What [`get`] may fill in.
///
/// # Safety
/// Any bits, all zeroes among them, are a valid value.
pub(super) unsafe trait Plain {}
// SAFETY: it has integers only.
unsafe impl Plain for libc::xdp_mmap_offsets {}
// SAFETY: it has integers only.
unsafe impl Plain for libc::xdp_statistics {}

/// Reads an option of `SOL_XDP`. What the kernel does not fill in is 0.
pub(super) fn get<T: Plain>(fd: BorrowedFd<'_>, option: libc::c_int) -> io::Result<T> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = size::<T>();
    // SAFETY: the memory is writable and its size is passed.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_XDP,
            option,
            value.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    check(result)?;
    // SAFETY: `T` is valid whatever the bits, and all of them were set to zero at least.
    Ok(unsafe { value.assume_init() })
}

/// Has the kernel look for frames that have arrived. Nothing is received by it.
pub(super) fn receive_nothing(fd: BorrowedFd<'_>) -> io::Result<()> {
    let (buffer, flags) = (ptr::null_mut(), libc::MSG_DONTWAIT);
    // SAFETY: no memory is passed.
    let result = unsafe {
        libc::recvfrom(fd.as_raw_fd(), buffer, 0, flags, ptr::null_mut(), ptr::null_mut())
    };
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Has the kernel look for frames that are to be sent.
pub(super) fn send_nothing(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = libc::MSG_DONTWAIT;
    // SAFETY: no memory is passed.
    let result = unsafe { libc::sendto(fd.as_raw_fd(), ptr::null(), 0, flags, ptr::null(), 0) };
    if result >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The size of a `T` as socket calls want it.
fn size<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(mem::size_of::<T>()).expect("what goes to the kernel is small")
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
