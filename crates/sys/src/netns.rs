//! Network namespaces: network_namespaces(7), ip-netns(8).

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;

use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, unmount,
};
pub use rustix::thread::CapabilitySet;
use rustix::thread::UnshareFlags;

use crate::process::{enter_network_namespace, run_in_namespace, unshare};

/// The directory in which iproute2 keeps the names of namespaces (ip-netns(8)).
const NAMES: &str = "/run/netns";

/// The capabilities that a command in a namespace keeps.
pub const PASSED_ON: CapabilitySet =
    CapabilitySet::SYS_ADMIN.union(CapabilitySet::NET_ADMIN).union(CapabilitySet::NET_RAW);

/// A failed operation on a network namespace.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    /// A system call failed.
    #[error("{doing}: {cause}{}", hint(cause))]
    System {
        /// The operation, such as "cannot make a network namespace".
        doing: String,
        /// The kernel's error.
        cause: io::Error,
    },
    /// No namespace has this name.
    #[error("there is no network namespace `{0}`: `ip netns list` shows the names")]
    NotFound(String),
    /// The name is not valid for a namespace.
    #[error("`{0}` cannot name a namespace: use letters, digits, `-`, `_` and `.`")]
    InvalidName(String),
}

impl NetnsError {
    fn system(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        |cause| Self::System { doing, cause }
    }
}

/// The next step after an error, where the kernel's message alone does not show it.
fn hint(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::PermissionDenied => "; run it with sudo, or grant cap_sys_admin with setcap",
        _ => "",
    }
}

/// A network namespace, held open by a file descriptor.
///
/// A namespace from [`Netns::new`] has no name. The kernel removes it when the last clone of this
/// value, the last process and the last socket in it are gone, however they ended.
#[derive(Clone, Debug)]
pub struct Netns {
    // Shared, because a prepared command may outlive the value that it was prepared from.
    fd: Arc<OwnedFd>,
}

impl Netns {
    /// Makes an empty namespace: a loopback interface that is down, and nothing else.
    ///
    /// # Errors
    /// [`NetnsError::System`], usually because `CAP_SYS_ADMIN` is missing.
    pub fn new() -> Result<Self, NetnsError> {
        // On a separate thread, because unshare(2) moves the thread into the new namespace.
        on_thread(new_network_namespace)
            .and_then(|made| made)
            .map(|fd| Self { fd: Arc::new(fd) })
            .map_err(NetnsError::system("cannot make a network namespace"))
    }

    /// Opens the namespace with this name in `ip netns`.
    ///
    /// # Errors
    /// [`NetnsError::NotFound`] or [`NetnsError::InvalidName`] for the name, otherwise
    /// [`NetnsError::System`].
    pub fn open(name: &str) -> Result<Self, NetnsError> {
        let file = File::open(name_path(name)?).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => NetnsError::NotFound(name.into()),
            _ => NetnsError::system(format!("cannot open the network namespace `{name}`"))(error),
        })?;
        Ok(Self { fd: Arc::new(file.into()) })
    }

    /// Runs `work` on a thread inside the namespace. Sockets made there stay there. A panic of
    /// `work` continues in the caller.
    ///
    /// # Errors
    /// The thread could not be started or moved; `work` has not run then.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_thread(|| enter_network_namespace(self.fd.as_fd()).map(|()| work()))?
    }

    /// A command that runs inside the namespace with the capabilities [`PASSED_ON`].
    ///
    /// The kernel kills it when the *thread* that spawned it ends (`PR_SET_PDEATHSIG`, prctl(2)),
    /// so that it does not survive a killed process. Spawn it from a thread that lives long enough.
    /// Its own children are not killed with it.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.command_with(program, &[])
    }

    /// Like [`Netns::command`]; the command can also reach `others` by their
    /// [`path_in_command`](Self::path_in_command).
    #[must_use]
    pub fn command_with(&self, program: impl AsRef<OsStr>, others: &[&Self]) -> Command {
        let mut command = Command::new(program);
        let others = others.iter().map(|&other| other.clone()).collect();
        run_in_namespace(&mut command, self.clone(), others, PASSED_ON);
        command
    }

    /// Path of the namespace for a command that received it; iproute2 takes it in place of a name.
    ///
    /// It uses the command's own `/proc/self`: a process may not access the descriptors of another
    /// process whose privileges are from file capabilities.
    #[must_use]
    pub fn path_in_command(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
    }

    /// Gives the namespace a name for `ip netns` and [`Netns::open`]. The namespace then stays
    /// until [`Netns::unpublish`], also after this process has ended.
    ///
    /// # Errors
    /// [`NetnsError::System`] when the name is taken or `/run/netns` cannot be written.
    pub fn publish(&self, name: &str) -> Result<(), NetnsError> {
        let path = name_path(name)?;
        share_names().map_err(NetnsError::system(format!("cannot prepare {NAMES}")))?;
        self.bind(&path).map_err(NetnsError::system(format!("cannot make {}", path.display())))
    }

    /// Mounts the namespace on a new file at `path`.
    fn bind(&self, path: &Path) -> io::Result<()> {
        OpenOptions::new().write(true).create_new(true).mode(0o444).open(path)?;
        let mounted = mount_bind(self.path_in_command(), path);
        if mounted.is_err() {
            fs::remove_file(path)?;
        }
        Ok(mounted?)
    }

    /// Removes a name; returns whether there was one. The kernel removes the namespace itself when
    /// nothing uses it any more.
    ///
    /// # Errors
    /// [`NetnsError::System`] when the name exists and cannot be removed.
    pub fn unpublish(name: &str) -> Result<bool, NetnsError> {
        let path = name_path(name)?;
        // Fails for a plain file: a process that created it was killed before the mount.
        let _ = unmount(&path, UnmountFlags::DETACH);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => {
                Err(NetnsError::system(format!("cannot remove {}", path.display()))(error))
            }
        }
    }
}

impl AsFd for Netns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Moves the calling thread into a mount namespace in which `ip netns` has these names only. The
/// thread's next child becomes the first process of a new PID namespace.
///
/// # Errors
/// [`NetnsError::InvalidName`], or [`NetnsError::System`] without `CAP_SYS_ADMIN`.
pub fn hide_other_names(named: &[(&str, &Netns)]) -> Result<(), NetnsError> {
    let paths = named.iter().map(|(name, netns)| Ok((name_path(name)?, *netns)));
    let paths = paths.collect::<Result<Vec<_>, NetnsError>>()?;
    let hide = || {
        fs::create_dir_all(NAMES)?;
        unshare(UnshareFlags::NEWNS | UnshareFlags::NEWPID)?;
        mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
        mount("tmpfs", NAMES, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, None)?;
        paths.iter().try_for_each(|(path, netns)| netns.bind(path))
    };
    hide().map_err(NetnsError::system("cannot name the network namespaces"))
}

/// Makes a network namespace, and leaves the calling thread inside it.
fn new_network_namespace() -> io::Result<OwnedFd> {
    unshare(UnshareFlags::NEWNET)?;
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

/// Runs `work` on a thread of its own and waits for it.
fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("netns".into()).spawn_scoped(scope, work)?;
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Path of the file for `name`, if the name is valid.
fn name_path(name: &str) -> Result<PathBuf, NetnsError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.starts_with('.') || name.len() > 200 || !name.chars().all(plain) {
        return Err(NetnsError::InvalidName(name.into()));
    }
    Ok(Path::new(NAMES).join(name))
}

/// Makes `/run/netns` a mount point that is shared with other mount namespaces, as `ip netns add`
/// does. Otherwise a removed name could remain in the mount namespace of a service.
fn share_names() -> io::Result<()> {
    fs::create_dir_all(NAMES)?;
    let share = || mount_change(NAMES, MountPropagationFlags::SHARED | MountPropagationFlags::REC);
    match share() {
        // Not a mount point yet: mount it on itself.
        Err(rustix::io::Errno::INVAL) => {
            mount_bind_recursive(NAMES, NAMES)?;
            Ok(share()?)
        }
        shared => Ok(shared?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_cannot_leave_the_directory_of_names() {
        for name in ["", ".", "..", "../x", "a/b", ".hidden", "a b"] {
            assert!(matches!(name_path(name), Err(NetnsError::InvalidName(_))), "{name:?}");
        }
        assert!(name_path("wirestamp-source").is_ok());
    }

    #[test]
    fn missing_namespace_error_points_to_the_list_of_names() {
        let error = Netns::open("no-such-namespace").unwrap_err();
        assert!(matches!(error, NetnsError::NotFound(_)), "{error}");
        assert!(error.to_string().contains("`ip netns list`"), "{error}");
    }
}
