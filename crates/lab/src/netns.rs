//! One network namespace.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;

use crate::privilege::NEEDED;
use crate::{LabError, sys};

/// Where iproute2 keeps the names of namespaces (ip-netns(8)).
pub(crate) const NAMES: &str = "/run/netns";

/// A network namespace, held open by file descriptor.
///
/// Made by [`Netns::new`], it has no name, and the kernel removes it when the last clone of this
/// value, the last process and the last socket in it are gone, however they ended.
#[derive(Clone, Debug)]
pub struct Netns {
    // Shared, because a command that was prepared may outlive the value it was prepared from.
    fd: Arc<OwnedFd>,
}

impl Netns {
    /// A new, empty namespace: a loopback interface that is down, and nothing else.
    ///
    /// # Errors
    /// [`LabError::System`], most often for want of `CAP_SYS_ADMIN`.
    pub fn new() -> Result<Self, LabError> {
        // A thread of its own, because the thread that makes a namespace is moved into it.
        on_thread(sys::new_network_namespace)
            .and_then(|made| made)
            .map(|fd| Self { fd: Arc::new(fd) })
            .map_err(LabError::system("cannot make a network namespace"))
    }

    /// The namespace that `ip netns` knows as `name`.
    ///
    /// # Errors
    /// [`LabError::NoSuchNetns`] when there is none, [`LabError::Name`] when there cannot be one,
    /// [`LabError::System`] when it is not to be had.
    pub fn open(name: &str) -> Result<Self, LabError> {
        let file = File::open(name_path(name)?).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LabError::NoSuchNetns(name.into()),
            _ => LabError::system(format!("cannot open the network namespace `{name}`"))(error),
        })?;
        Ok(Self { fd: Arc::new(file.into()) })
    }

    /// Runs `work` on a thread inside the namespace. Sockets made there stay there.
    ///
    /// A panic of `work` goes on in the caller.
    ///
    /// # Errors
    /// The thread could not be started or not be moved; `work` has not run then.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_thread(|| sys::enter(self.fd.as_fd()).map(|()| work()))?
    }

    /// A command that will run inside the namespace, with this process's capabilities.
    ///
    /// The kernel kills it when the *thread* that spawned it ends (`PR_SET_PDEATHSIG`, see
    /// prctl(2)), so that it does not survive a killed process: spawn it from a thread that lives
    /// as long as it shall. Its own children are not killed with it.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.command_with(program, &[])
    }

    /// Like [`Netns::command`], and the command can also reach `others` by their
    /// [`path_in_command`](Self::path_in_command).
    pub(crate) fn command_with(&self, program: impl AsRef<OsStr>, others: &[&Self]) -> Command {
        let own = Self::clone(self);
        let others: Vec<Self> = others.iter().map(|&other| other.clone()).collect();
        let parent = std::process::id();
        let mut command = Command::new(program);
        // SAFETY: the closure makes async-signal-safe calls only, and neither allocates nor locks.
        unsafe {
            command.pre_exec(move || {
                sys::die_with_parent()?;
                if !sys::is_child_of(parent) {
                    sys::exit_now(1);
                }
                sys::enter(own.fd.as_fd())?;
                for other in &others {
                    sys::keep_across_exec(other.fd.as_fd())?;
                }
                sys::pass_on_capabilities(&NEEDED.map(|(number, _)| number))
            });
        }
        command
    }

    /// The namespace's path as a command that was given it sees it; iproute2 takes a path wherever
    /// it takes a name. It goes by the command's own `/proc/self`, because one process may not look
    /// into another's descriptors when it has its privileges from file capabilities.
    pub(crate) fn path_in_command(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
    }

    /// Gives the namespace a name that `ip netns` and [`Netns::open`] know. It then stays until
    /// [`Netns::unpublish`], also when this process has ended.
    ///
    /// # Errors
    /// [`LabError::System`] when the name is taken or `/run/netns` cannot be written.
    pub(crate) fn publish(&self, name: &str) -> Result<(), LabError> {
        let path = name_path(name)?;
        share_names().map_err(LabError::system(format!("cannot prepare {NAMES}")))?;
        self.bind(&path).map_err(LabError::system(format!("cannot make {}", path.display())))
    }

    /// Mounts the namespace on a new file at `path`.
    pub(crate) fn bind(&self, path: &Path) -> io::Result<()> {
        OpenOptions::new().write(true).create_new(true).mode(0o444).open(path)?;
        let mounted = sys::mount(&self.path_in_command(), path, None, libc::MS_BIND);
        if mounted.is_err() {
            fs::remove_file(path)?;
        }
        mounted
    }

    /// Takes a name away; says whether there was one. The namespace itself goes when nothing uses
    /// it any more.
    ///
    /// # Errors
    /// [`LabError::System`] when the name exists and cannot be removed.
    pub(crate) fn unpublish(name: &str) -> Result<bool, LabError> {
        let path = name_path(name)?;
        // Fails where one was killed between making the file and mounting on it: a plain file.
        let _ = sys::unmount(&path);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(LabError::system(format!("cannot remove {}", path.display()))(error)),
        }
    }
}

impl AsFd for Netns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Runs `work` on a thread of its own and waits for it.
fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("netns".into()).spawn_scoped(scope, work)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// The file that stands for `name`, if it can be one.
pub(crate) fn name_path(name: &str) -> Result<PathBuf, LabError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.starts_with('.') || name.len() > 200 || !name.chars().all(plain) {
        return Err(LabError::Name(name.into()));
    }
    Ok(Path::new(NAMES).join(name))
}

/// Makes `/run/netns` a mount point that is shared with other mount namespaces, as `ip netns add`
/// does: a name that is removed must go everywhere, or the namespace would live on in the mount
/// namespace of some service.
fn share_names() -> io::Result<()> {
    let names = Path::new(NAMES);
    fs::create_dir_all(names)?;
    let share = || sys::mount(Path::new("none"), names, None, libc::MS_SHARED | libc::MS_REC);
    match share() {
        // Not a mount point yet: mount it on itself.
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            sys::mount(names, names, None, libc::MS_BIND | libc::MS_REC)?;
            share()
        }
        shared => shared,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_the_directory_of_names() {
        for name in ["", ".", "..", "../x", "a/b", ".hidden", "a b"] {
            assert!(matches!(name_path(name), Err(LabError::Name(_))), "{name:?}");
        }
        assert!(name_path("wirestamp-source").is_ok());
    }

    #[test]
    fn whoever_asks_for_a_namespace_that_does_not_exist_is_told_where_the_names_are() {
        let error = Netns::open("no-such-namespace").unwrap_err();
        assert!(matches!(error, LabError::NoSuchNetns(_)), "{error}");
        assert!(error.to_string().contains("`ip netns list`"), "{error}");
    }
}
