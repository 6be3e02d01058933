//! The system calls of this crate but those of the impairment stage's sockets, each in a safe
//! function. The only `unsafe` elsewhere is in `impair/socket.rs`, and what hands closures over to
//! run between fork and exec; the functions marked async-signal-safe are those that may be called
//! there.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::ptr;

use libc::{c_int, c_ulong};

/// Turns the C convention of -1 and `errno` into a result.
fn check(status: c_int) -> io::Result<c_int> {
    if status == -1 { Err(io::Error::last_os_error()) } else { Ok(status) }
}

/// Gives the calling thread new namespaces of the kinds in `flags` (`unshare(2)`).
pub(crate) fn unshare(flags: c_int) -> io::Result<()> {
    // SAFETY: takes a number and touches no memory of ours.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

/// A new network namespace, by way of the calling thread, which is left inside it.
pub(crate) fn new_network_namespace() -> io::Result<OwnedFd> {
    unshare(libc::CLONE_NEWNET)?;
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

/// Moves the calling thread into the network namespace `fd`. Async-signal-safe.
pub(crate) fn enter(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes two numbers; the borrow keeps the descriptor open for the call.
    check(unsafe { libc::setns(fd.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Has the kernel kill this process when the thread that forked it ends. Async-signal-safe.
pub(crate) fn die_with_parent() -> io::Result<()> {
    // SAFETY: this option takes one number and touches no memory of ours.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(drop)
}

/// Whether this process is a child of `parent`. It is not if the parent ended before
/// [`die_with_parent`] took hold. Async-signal-safe.
pub(crate) fn is_child_of(parent: u32) -> bool {
    // SAFETY: takes nothing and cannot fail.
    u32::try_from(unsafe { libc::getppid() }) == Ok(parent)
}

/// A descriptor that becomes readable when the calling process ends (`pidfd_open(2)`).
pub(crate) fn own_pidfd() -> io::Result<OwnedFd> {
    // SAFETY: takes two numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0) };
    let fd = RawFd::try_from(fd).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    check(fd)?;
    // SAFETY: the call succeeded, so `fd` is open and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether the process behind `pidfd` has ended. Async-signal-safe.
pub(crate) fn has_ended(pidfd: BorrowedFd<'_>) -> bool {
    let mut poll = libc::pollfd { fd: pidfd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd, as the count says, alive during the call.
    unsafe { libc::poll(&raw mut poll, 1, 0) > 0 }
}

/// Lets `fd` survive the next exec. Async-signal-safe; for a child after the fork only, because
/// in the parent it would leak the descriptor into every other child.
pub(crate) fn keep_across_exec(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: takes three numbers; the borrow keeps the descriptor open for the call.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, 0) }).map(drop)
}

/// Header of `capget(2)` and `capset(2)`, version 3 (`linux/capability.h`).
#[repr(C)]
struct CapHeader {
    version: u32,
    pid: c_int,
}

/// 32 of the 64 capabilities, in each of three sets.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// `_LINUX_CAPABILITY_VERSION_3` of `linux/capability.h`.
const CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// Passes the capabilities of this process on to the program it is about to execute, which loses
/// them otherwise unless it runs as root (capabilities(7), "Ambient"). Async-signal-safe.
pub(crate) fn pass_on_capabilities(capabilities: &[u32]) -> io::Result<()> {
    let mut header = CapHeader { version: CAPABILITY_VERSION_3, pid: 0 };
    let mut data = [CapData::default(); 2];
    // SAFETY: version 3 reads one header and writes two data records; both are alive.
    let got = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, data.as_mut_ptr()) };
    if got == -1 {
        return Err(io::Error::last_os_error());
    }
    for half in &mut data {
        half.inheritable |= half.permitted;
    }
    // SAFETY: version 3 reads one header and two data records; both are alive.
    let set = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, data.as_ptr()) };
    if set == -1 {
        return Err(io::Error::last_os_error());
    }
    for &capability in capabilities {
        let raise = libc::PR_CAP_AMBIENT_RAISE;
        // Refused for a capability this process does not have: then there is none to pass on.
        // SAFETY: this option takes numbers only.
        unsafe { libc::prctl(libc::PR_CAP_AMBIENT, raise, c_ulong::from(capability), 0, 0) };
    }
    Ok(())
}

/// A path as C wants it.
fn c_path(path: &Path) -> io::Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from)
}

/// `mount(2)` of `source` at `target`.
pub(crate) fn mount(
    source: &Path,
    target: &Path,
    kind: Option<&str>,
    flags: c_ulong,
) -> io::Result<()> {
    let (source, target) = (c_path(source)?, c_path(target)?);
    let kind = kind.map(CString::new).transpose()?;
    let kind = kind.as_ref().map_or(ptr::null(), |kind| kind.as_ptr());
    // SAFETY: three strings that end in NUL or a null pointer, which mount(2) allows for the type
    // and the data; all alive during the call.
    check(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, ptr::null()) })
        .map(drop)
}

/// Mounts a `/proc` of the calling process's PID namespace. Async-signal-safe.
pub(crate) fn mount_proc() -> io::Result<()> {
    let (kind, target) = (c"proc", c"/proc");
    // SAFETY: strings that end in NUL, and no data.
    check(unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, ptr::null()) })
        .map(drop)
}

/// Detaches whatever is mounted at `target`.
pub(crate) fn unmount(target: &Path) -> io::Result<()> {
    let target = c_path(target)?;
    // SAFETY: a string that ends in NUL, and a number.
    check(unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) }).map(drop)
}

/// Splits off the process that goes on to execute the command, and stays behind as its init.
///
/// Returns in the child only. The caller, the first process of its PID namespace, closes every
/// descriptor but the standard three, reaps until the child has ended, and exits with the child's
/// status, or with 128 and the signal's number as shells do. The kernel then kills whatever is
/// left in the namespace (pid_namespaces(7)). Async-signal-safe.
pub(crate) fn split_off_init() -> io::Result<()> {
    // An ignored SIGCHLD, which may have been inherited, would have nobody to reap.
    // SAFETY: SIG_DFL is a valid disposition.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    // SAFETY: both sides call async-signal-safe functions only until they exec or exit.
    let child = check(unsafe { libc::fork() })?;
    if child == 0 {
        return Ok(());
    }
    // SAFETY: this process uses no descriptor from here on. The last one closed reports the exec
    // to the parent, which waits for that.
    unsafe { libc::syscall(libc::SYS_close_range, 3, c_int::MAX, 0) };
    loop {
        let mut status = 0;
        // SAFETY: writes one status; -1 waits for any child.
        let ended = unsafe { libc::waitpid(-1, &raw mut status, 0) };
        if ended != child {
            continue;
        }
        let code = if libc::WIFEXITED(status) {
            libc::WEXITSTATUS(status)
        } else {
            128 + libc::WTERMSIG(status)
        };
        // SAFETY: ends the process without running anything of the parent's.
        unsafe { libc::_exit(code) };
    }
}

/// Ends this process at once. Async-signal-safe.
pub(crate) fn exit_now(code: c_int) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code) }
}

/// The signals that a terminal sends to the whole foreground group, ignored by this process for
/// as long as this lives: `system(3)` does the same while its command runs.
pub(crate) struct TerminalSignalsIgnored {
    before: [(c_int, libc::sighandler_t); 2],
}

impl TerminalSignalsIgnored {
    pub(crate) fn new() -> Self {
        // SAFETY: SIG_IGN is a valid disposition for both, and runs no code of ours.
        let ignore = |signal| (signal, unsafe { libc::signal(signal, libc::SIG_IGN) });
        Self { before: [ignore(libc::SIGINT), ignore(libc::SIGQUIT)] }
    }

    /// Gives the signals their default effect, in the child. Async-signal-safe.
    pub(crate) fn restore_default() {
        for signal in [libc::SIGINT, libc::SIGQUIT] {
            // SAFETY: SIG_DFL is a valid disposition for both.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

impl Drop for TerminalSignalsIgnored {
    fn drop(&mut self) {
        for (signal, handler) in self.before {
            // SAFETY: puts back the disposition that was found.
            unsafe { libc::signal(signal, handler) };
        }
    }
}
