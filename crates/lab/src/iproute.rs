//! Runs batches of `ip` and `tc` inside a namespace.

use std::env;
use std::io::{self, Write};
use std::process::{Command, Output, Stdio};

use crate::{LabError, Netns};

/// One of iproute2's programs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Program {
    Ip,
    Tc,
}

impl Program {
    const fn name(self) -> &'static str {
        match self {
            Self::Ip => "ip",
            Self::Tc => "tc",
        }
    }

    /// Runs the lines of `script` in `netns`, in one process. The script may refer to `others` by
    /// [`Netns::path_in_command`].
    ///
    /// # Errors
    /// [`LabError::Command`] with the failed line; the lines before it took effect.
    pub(crate) fn batch(
        self,
        netns: &Netns,
        script: &str,
        others: &[&Netns],
    ) -> Result<(), LabError> {
        self.run(netns, others, &["-batch", "-"], script).map(drop)
    }

    /// Standard output of the program, run with `arguments` in `netns`.
    pub(crate) fn query(self, netns: &Netns, arguments: &[&str]) -> Result<Vec<u8>, LabError> {
        self.run(netns, &[], arguments, "")
    }

    fn run(
        self,
        netns: &Netns,
        others: &[&Netns],
        arguments: &[&str],
        script: &str,
    ) -> Result<Vec<u8>, LabError> {
        let mut command = netns.command_with(self.name(), others);
        // Debian installs `tc` in /usr/sbin, which is not in the PATH of ordinary users.
        let path = env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin:/sbin:/usr/bin:/bin")).args(arguments);
        let output = run(&mut command, script).map_err(|error| self.failed(error))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let (number, message) = failure(&String::from_utf8_lossy(&output.stderr));
        let line = number.and_then(|number| script.lines().nth(number.checked_sub(1)?));
        let line = line.map_or_else(|| arguments.join(" "), str::to_owned);
        Err(LabError::Command { program: self.name(), line, message })
    }

    fn failed(self, error: io::Error) -> LabError {
        if error.kind() == io::ErrorKind::NotFound {
            LabError::MissingProgram { program: self.name() }
        } else {
            LabError::system(format!("cannot run `{}` in the namespace", self.name()))(error)
        }
    }
}

/// Runs `command` with `input` on its standard input.
fn run(command: &mut Command, input: &str) -> io::Result<Output> {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // A batch is far shorter than a pipe (64 KiB), and the program prints nothing before it has read
    // the batch. A program that ends early breaks the pipe; its message is better than that error.
    if let Some(mut pipe) = child.stdin.take() {
        let _ = pipe.write_all(input.as_bytes());
    }
    child.wait_with_output()
}

/// The line number of `Command failed -:N`, and the rest of the error output, on one line.
fn failure(stderr: &str) -> (Option<usize>, String) {
    let number = |line: &str| line.strip_prefix("Command failed -:").map(str::parse);
    let failed_line = stderr.lines().find_map(number).and_then(Result::ok);
    let rest: Vec<_> = stderr
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && number(line).is_none())
        .collect();
    (failed_line, if rest.is_empty() { "no message".into() } else { rest.join("; ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_line_number_is_read_from_stderr() {
        let stderr = "Error: Specified qdisc kind is unknown.\nCommand failed -:5\n";
        assert_eq!(failure(stderr), (Some(5), "Error: Specified qdisc kind is unknown.".into()));
        assert_eq!(failure(""), (None, "no message".into()));
    }
}
