//! Signals of this process, and child processes that are set up between fork and exec.
#![expect(unsafe_code, reason = "signal masks, fork(2), and closures between fork and exec")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::ptr;

use libc::c_int;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mount::{MountFlags, mount};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, getppid, pidfd_open,
    set_parent_process_death_signal, wait,
};
use rustix::thread::{
    CapabilitySet, LinkNameSpaceType, UnshareFlags, capabilities,
    configure_capability_in_ambient_set, move_into_link_name_space, set_capabilities,
    unshare_unsafe,
};

/// Calls `start` with every signal blocked in this thread. Threads that `start` spawns inherit the
/// signal mask, so other threads of the program handle its signals.
pub fn with_signals_blocked<T>(start: impl FnOnce() -> T) -> T {
    // SAFETY: a `sigset_t` is an array of integers, for which zero is a valid value.
    let [mut all, mut before]: [libc::sigset_t; 2] = unsafe { std::mem::zeroed() };
    // SAFETY: `all` is valid to write to.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: both sets are valid; the call fails only for an unknown first argument.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
    let started = start();
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    started
}

/// Ignores the signals that a terminal sends to the whole foreground group (SIGINT, SIGQUIT) for
/// as long as this lives, as `system(3)` does while its command runs.
#[derive(Debug)]
pub struct TerminalSignalsIgnored {
    before: [(c_int, libc::sighandler_t); 2],
}

impl TerminalSignalsIgnored {
    /// Ignores both signals from now on, in the whole process.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it changes the process")]
    pub fn new() -> Self {
        // SAFETY: SIG_IGN is a valid disposition for both, and runs no code of this process.
        let ignore = |signal| (signal, unsafe { libc::signal(signal, libc::SIG_IGN) });
        Self { before: [ignore(libc::SIGINT), ignore(libc::SIGQUIT)] }
    }
}

impl Drop for TerminalSignalsIgnored {
    fn drop(&mut self) {
        for (signal, handler) in self.before {
            // SAFETY: restores the previous disposition.
            unsafe { libc::signal(signal, handler) };
        }
    }
}

/// Gives the calling thread new namespaces (unshare(2)).
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // Keeps the descriptor table shared: otherwise other threads could not use this thread's descriptors.
    let flags = flags.difference(UnshareFlags::FILES);
    // SAFETY: without FILES, the call has no effect on memory or descriptors of other threads.
    Ok(unsafe { unshare_unsafe(flags) }?)
}

/// Moves the calling thread into the network namespace `fd`. Async-signal-safe.
pub(crate) fn enter_network_namespace(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(move_into_link_name_space(fd, Some(LinkNameSpaceType::Network))?)
}

/// A descriptor of the calling process, readable when the process has ended (pidfd_open(2)).
///
/// # Errors
/// A sandbox forbids the call, or there are no more descriptors.
pub fn own_pidfd() -> io::Result<OwnedFd> {
    Ok(pidfd_open(getpid(), PidfdFlags::empty())?)
}

/// Makes the command run inside the network namespace `own`, with the descriptors `others` open
/// and the capabilities `passed_on`. The kernel kills it when the thread that spawned it ends.
pub(crate) fn run_in_namespace<N: AsFd + Send + Sync + 'static>(
    command: &mut Command,
    own: N,
    others: Vec<N>,
    passed_on: CapabilitySet,
) {
    let parent = getpid();
    // SAFETY: the closure makes async-signal-safe calls only, and neither allocates nor locks.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            if getppid() != Some(parent) {
                exit_now(1); // the parent ended before the line above took effect
            }
            enter_network_namespace(own.as_fd())?;
            for other in &others {
                // After the fork only: in the parent, every other child would inherit it.
                rustix::io::fcntl_setfd(other, rustix::io::FdFlags::empty())?;
            }
            pass_on_capabilities(passed_on)
        });
    }
}

/// Makes the command run below its own init process, in the PID namespace that its parent's thread
/// has prepared, with a `/proc` of that namespace and the capabilities `passed_on`.
///
/// The kernel kills the init process when the thread that spawned it ends, and everything in the
/// namespace when the init process ends. `parent` is the [`own_pidfd`] of the spawning process.
pub fn run_below_init(command: &mut Command, parent: OwnedFd, passed_on: CapabilitySet) {
    // SAFETY: the closure makes async-signal-safe calls only, and neither allocates nor locks.
    unsafe {
        command.pre_exec(move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent is in another PID namespace, where `getppid` does not see it.
            if has_ended(parent.as_fd()) {
                exit_now(1);
            }
            mount_proc()?;
            pass_on_capabilities(passed_on)?;
            split_off_init()?;
            for signal in [libc::SIGINT, libc::SIGQUIT] {
                libc::signal(signal, libc::SIG_DFL);
            }
            Ok(())
        });
    }
}

/// Whether the process behind `pidfd` has ended. Async-signal-safe.
fn has_ended(pidfd: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(pidfd, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Mounts a `/proc` of the calling process's PID namespace. Async-signal-safe.
fn mount_proc() -> io::Result<()> {
    Ok(mount(c"proc", c"/proc", c"proc", MountFlags::empty(), None)?)
}

/// Passes the capabilities of this process on to the program that it is about to execute, which
/// otherwise loses them unless it runs as root (capabilities(7), "Ambient"). Async-signal-safe.
fn pass_on_capabilities(passed_on: CapabilitySet) -> io::Result<()> {
    let mut own = capabilities(None)?;
    own.inheritable |= own.permitted;
    set_capabilities(None, own)?;
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        if passed_on.contains(capability) {
            // Fails for a capability that this process does not have; that is not an error.
            let _ = configure_capability_in_ambient_set(capability, true);
        }
    }
    Ok(())
}

/// Forks the process that executes the command; the calling process remains as its init process.
///
/// Returns in the child only. The caller, the first process of its PID namespace, closes every
/// descriptor but the standard three, reaps until the child has ended, and exits with the child's
/// status, or with 128 and the signal's number as shells do. Async-signal-safe.
fn split_off_init() -> io::Result<()> {
    // If SIGCHLD is ignored, possibly by inheritance, the kernel reaps the children itself.
    // SAFETY: SIG_DFL is a valid disposition.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    // SAFETY: both sides call async-signal-safe functions only until they exec or exit.
    let child = match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        0 => return Ok(()),
        child => Pid::from_raw(child),
    };
    // SAFETY: this process uses no descriptor from here on. The last one closed reports the exec
    // to the parent, which waits for that.
    unsafe { libc::syscall(libc::SYS_close_range, 3, c_int::MAX, 0) };
    loop {
        // Waits for any child.
        let Ok(Some((ended, status))) = wait(WaitOptions::empty()) else { continue };
        if Some(ended) == child {
            let by_signal = || 128 + status.terminating_signal().unwrap_or(0);
            exit_now(status.exit_status().unwrap_or_else(by_signal));
        }
    }
}

/// Ends this process at once. Async-signal-safe.
fn exit_now(code: c_int) -> ! {
    // SAFETY: takes a number, does not return, and runs no code of this process.
    unsafe { libc::_exit(code) }
}
