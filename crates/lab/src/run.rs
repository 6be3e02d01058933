//! Runs one command with a test bed that only this command can see.

use std::ffi::OsStr;
use std::process::{Command, ExitStatus};
use std::thread;

use wirestamp_sys::netns::{PASSED_ON, hide_other_names};
use wirestamp_sys::process::{TerminalSignalsIgnored, own_pidfd, run_below_init};

use crate::registry::names;
use crate::{LabError, PathLab};

/// Runs a command that sees the bed's namespaces as `PREFIX-source`, `PREFIX-router` and
/// `PREFIX-sink` (`ip netns exec PREFIX-sink ...`), and returns its exit status.
///
/// The command has its own mount namespace with these names, and its own PID namespace. So nothing
/// remains when the command ends or this process is killed. Names created by `ip netns add` outside
/// are hidden from the command. While it runs, this process ignores SIGINT and SIGQUIT: the terminal
/// also sends them to the command, which decides whether to end. Signal handling affects the whole
/// process, so run only one such command at a time.
///
/// A command ended by signal N has exit status 128 + N, as in shells.
///
/// # Errors
/// [`LabError::System`] when the names cannot be created or the command cannot be started.
pub fn run(
    lab: &PathLab,
    prefix: &str,
    program: &OsStr,
    arguments: &[impl AsRef<OsStr> + Sync],
) -> Result<ExitStatus, LabError> {
    let what = program.display().to_string();
    let names = names(prefix);
    let roles = [lab.source(), lab.router(), lab.sink()];
    let named: Vec<_> = names.iter().map(String::as_str).zip(roles).collect();
    let _ignored = TerminalSignalsIgnored::new();
    // A separate thread enters the new namespaces; the rest of the process stays outside.
    thread::scope(|scope| {
        let work = || {
            hide_other_names(&named)?;
            let mut command = Command::new(program);
            command.args(arguments);
            let started = own_pidfd().and_then(|parent| {
                run_below_init(&mut command, parent, PASSED_ON);
                command.status()
            });
            started.map_err(LabError::system(format!("cannot run `{what}`")))
        };
        let thread = thread::Builder::new()
            .name("lab-run".into())
            .spawn_scoped(scope, work)
            .map_err(LabError::system("cannot start a thread"))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
