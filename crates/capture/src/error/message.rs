//! Parts of error messages: the next step after a failed system call or write, and the followed clock.

use std::io;

/// Text of the clock that is followed, by the number of its device.
pub(super) fn followed_clock(number: Option<u32>) -> String {
    number.map_or("no such clock is followed".into(), |n| format!("/dev/ptp{n} is followed"))
}

/// The next step after a failed system call, where one is known.
pub(super) fn next_step(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::ENODEV | libc::ENXIO) => {
            "; the interface is gone: `ip link` lists the existing ones"
        }
        Some(libc::EMFILE | libc::ENFILE) => "; allow more open files with `ulimit -n`",
        Some(libc::EAFNOSUPPORT) => "; load the kernel's packet sockets with `modprobe af_packet`",
        _ if cause.kind() == io::ErrorKind::OutOfMemory => {
            "; use a smaller ring with --buffer-size"
        }
        _ => "",
    }
}

/// Whether the cause is lack of disk space.
pub(super) fn is_full(cause: &io::Error) -> bool {
    matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// The next step after a failed write, where one is known.
pub(super) fn next_step_of_writing(cause: &io::Error) -> &'static str {
    match cause.kind() {
        _ if is_full(cause) => "; free some space and run again",
        io::ErrorKind::NotFound => "; create the folder first",
        _ => "",
    }
}
