//! Keeps the program known to the kernel's XDP dispatcher.
//!
//! A run of a program that is attached nowhere takes some 10 ms longer than its frames do, however
//! few they are, far too long between two bursts; a run of one that is attached to an interface
//! does not. (The dispatcher has to learn of the program, and to forget it again.) So it is attached
//! where no packet ever is: to the loopback interface, which is down, of a network namespace of its
//! own.
#![expect(unsafe_code, reason = "unshare(2), and bpf_link_create")]

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;
use std::thread;

use libbpf_rs::libbpf_sys;

/// The loopback interface's number in every namespace (`LOOPBACK_IFINDEX` in the kernel).
const LOOPBACK: i32 = 1;

/// A program is known to the dispatcher for as long as this lives.
#[derive(Debug)]
pub(super) struct Known {
    _link: OwnedFd,
    _namespace: File,
}

impl Known {
    /// Makes `program` known. Takes `CAP_SYS_ADMIN`, for the namespace.
    pub(super) fn new(program: BorrowedFd<'_>) -> io::Result<Self> {
        // A thread of its own, because it stays in the namespace it makes.
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
    // SAFETY: takes a number and touches no memory of ours.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } == -1 {
        return Err(io::Error::last_os_error());
    }
    File::open("/proc/thread-self/ns/net")
}

/// Attaches `program` to the loopback interface of the calling thread's namespace.
fn attach(program: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers, and a null pointer for "no options".
    let link = unsafe {
        libbpf_sys::bpf_link_create(program.as_raw_fd(), LOOPBACK, libbpf_sys::BPF_XDP, ptr::null())
    };
    // libbpf returns the negative error number.
    if link < 0 {
        return Err(io::Error::from_raw_os_error(-link));
    }
    // SAFETY: the call succeeded, so the descriptor is open and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}
