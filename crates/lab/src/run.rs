//! One command beside a bed that only it can see.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;

use crate::netns::{NAMES, name_path};
use crate::privilege::NEEDED;
use crate::registry::names;
use crate::{LabError, PathLab, sys};

/// Runs a command that sees the bed's namespaces as `PREFIX-source`, `PREFIX-router` and
/// `PREFIX-sink` (`ip netns exec PREFIX-sink ...`), and returns how it ended.
///
/// The names exist in a mount namespace of the command's own, and the command and everything it
/// starts are in a PID namespace of their own, so that nothing is left of either when the command
/// ends, and nothing when this process is killed. Names made by `ip netns add` outside are hidden
/// from it. While it runs, this process ignores SIGINT and SIGQUIT: the terminal sends them to the
/// command as well, and how that ends is the command's decision. As signal handling is the whole
/// process's, only one such command is to run at a time.
///
/// A command that was ended by signal N is reported as exit status 128 + N, as shells do.
///
/// # Errors
/// [`LabError::System`] when the names cannot be made or the command cannot be started.
pub fn run(
    lab: &PathLab,
    prefix: &str,
    program: &OsStr,
    arguments: &[impl AsRef<OsStr> + Sync],
) -> Result<ExitStatus, LabError> {
    let what = program.display().to_string();
    let names = names(prefix);
    let [source, router, sink] = &names;
    let paths = [name_path(source)?, name_path(router)?, name_path(sink)?];
    let _ignored = sys::TerminalSignalsIgnored::new();
    // A thread of its own gets the new namespaces; the rest of the process stays where it is.
    thread::scope(|scope| {
        let work = || {
            prepare(lab, &paths).map_err(LabError::system("cannot name the bed's namespaces"))?;
            sys::own_pidfd()
                .and_then(|parent| confined(program, arguments, parent).status())
                .map_err(LabError::system(format!("cannot run `{what}`")))
        };
        let thread = thread::Builder::new()
            .name("lab-run".into())
            .spawn_scoped(scope, work)
            .map_err(LabError::system("cannot start a thread"))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Moves the calling thread into a mount namespace in which the bed's namespaces are at `paths`,
/// and has its next child begin a PID namespace.
fn prepare(lab: &PathLab, paths: &[PathBuf; 3]) -> io::Result<()> {
    fs::create_dir_all(NAMES)?;
    sys::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWPID)?;
    sys::mount(Path::new("none"), Path::new("/"), None, libc::MS_REC | libc::MS_PRIVATE)?;
    let flags = libc::MS_NOSUID | libc::MS_NODEV;
    sys::mount(Path::new("tmpfs"), Path::new(NAMES), Some("tmpfs"), flags)?;
    let roles = [lab.source(), lab.router(), lab.sink()];
    roles.into_iter().zip(paths).try_for_each(|(netns, path)| netns.bind(path))
}

/// The command, below an init of its own that the kernel kills when the calling thread ends.
fn confined(program: &OsStr, arguments: &[impl AsRef<OsStr>], parent: OwnedFd) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    // SAFETY: the closure makes async-signal-safe calls only, and neither allocates nor locks.
    unsafe {
        command.pre_exec(move || {
            sys::die_with_parent()?;
            // The parent is in another PID namespace, so `getppid` cannot tell that it has ended.
            if sys::has_ended(parent.as_fd()) {
                sys::exit_now(1);
            }
            sys::mount_proc()?;
            sys::pass_on_capabilities(&NEEDED.map(|(number, _)| number))?;
            sys::split_off_init()?;
            sys::TerminalSignalsIgnored::restore_default();
            Ok(())
        });
    }
    command
}
