//! A process that removes a trace instance if its owner cannot: after SIGKILL or a crash.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Waits for the end of its standard input, whose other end only the owner holds; the kernel closes it when the owner
/// ends. The instance is busy until the kernel has closed the owner's rings: the script tries again for 10 s. `$0` is the
/// instance.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
read -r _
[ -d "$0" ] || exit 0
echo 0 > "$0/tracing_on"
tries=0
until rmdir "$0" || [ "$tries" -ge 100 ]; do
    tries=$((tries + 1))
    sleep 0.1
done
"#;

/// The running guard: a shell of a process group of its own, so that Ctrl-C does not end it.
#[derive(Debug)]
pub(super) struct Guard(Child);

impl Guard {
    /// Starts the guard of the instance `name` in the folder `instances`, which need not exist yet.
    pub(super) fn start(instances: &Path, name: &str) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, name]).current_dir(instances).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().map(Self)
    }

    /// Ends the guard; the instance stays.
    pub(super) fn dismiss(mut self) {
        // Fails only if the guard has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// Lets the guard remove the instance, and waits for that.
    pub(super) fn remove(mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
