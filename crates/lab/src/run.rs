//! One command beside a bed that only it can see.

use std::ffi::OsStr;
use std::process::{Command, ExitStatus};
use std::thread;

use wirestamp_sys::netns::{PASSED_ON, hide_other_names};
use wirestamp_sys::process::{TerminalSignalsIgnored, own_pidfd, run_below_init};

use crate::registry::names;
use crate::{LabError, PathLab};

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
    let roles = [lab.source(), lab.router(), lab.sink()];
    let named: Vec<_> = names.iter().map(String::as_str).zip(roles).collect();
    let _ignored = TerminalSignalsIgnored::new();
    // A thread of its own gets the new namespaces; the rest of the process stays where it is.
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
