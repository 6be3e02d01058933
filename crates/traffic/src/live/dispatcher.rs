//! Keeps the program registered in the kernel's XDP dispatcher.
//!
//! Each run of an unattached program takes about 10 ms longer, because the kernel adds the program
//! to the dispatcher and removes it again. That is too long between two bursts. So the program is
//! attached to an interface without traffic: the loopback interface, which is down, of a network
//! namespace created for this purpose.
#![expect(unsafe_code, reason = "unshare(2), and bpf_link_create")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::thread;

use libbpf_rs::libbpf_sys;

/// The loopback interface's number in every namespace (`LOOPBACK_IFINDEX` in the kernel).
const LOOPBACK: i32 = 1;

/// The program's registration in the dispatcher; dropping it removes the registration.
#[derive(Debug)]
pub(super) struct DispatcherEntry {
    _link: OwnedFd,
    _namespace: File,
}

impl DispatcherEntry {
    /// Registers `program`. Requires `CAP_SYS_ADMIN` for the namespace.
    pub(super) fn new(program: BorrowedFd<'_>) -> io::Result<Self> {
        // A separate thread, because it stays in the new namespace.
        thread::scope(|scope| {
            let attach = move || {
                let namespace = new_namespace()?;
                Ok(Self { _link: attach(program)?, _namespace: namespace })
            };
            let thread = thread::Builder::new().spawn_scoped(scope, attach)?;
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Moves the calling thread into a new network namespace.
fn new_namespace() -> io::Result<File> {
    // SAFETY: takes a number; accesses no memory of this process.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } == -1 {
        return Err(io::Error::last_os_error());
    }
    File::open("/proc/thread-self/ns/net")
}

/// Attaches `program` to the loopback interface of the calling thread's namespace.
fn attach(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers, and a null pointer, which means "no options".
    let link = unsafe {
        libbpf_sys::bpf_link_create(program.as_raw_fd(), LOOPBACK, libbpf_sys::BPF_XDP, ptr::null())
    };
    // libbpf returns the negative error number.
    if link < 0 {
        return Err(io::Error::from_raw_os_error(-link));
    }
    // SAFETY: the call succeeded, so the descriptor is open and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}
