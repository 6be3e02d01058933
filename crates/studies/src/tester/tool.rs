//! A capture tool in a process of its own: start, wait, CPU time, stop.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

/// Max time for a tool to start, to become idle, or to exit.
const TOOL_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval between checks of a tool.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A tool that captures. Dropping it kills the process.
#[derive(Debug)]
pub struct Tool {
    name: String,
    child: Child,
    lines: Receiver<String>,
    /// Max time for which the kernel holds back a block that is not full.
    retires_within: Duration,
}

impl Tool {
    /// Starts `command` and waits until it prints `announcement`: then it captures.
    ///
    /// # Errors
    /// When it cannot be started, or ends before.
    pub fn start(
        name: &str,
        command: &mut Command,
        announcement: &str,
        retires_within: Duration,
    ) -> anyhow::Result<Self> {
        let mut tool = Self::launch(name, command)?;
        tool.retires_within = retires_within;
        tool.wait_for(announcement)?;
        Ok(tool)
    }

    /// Starts `command` without waiting for its output.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn launch(name: &str, command: &mut Command) -> anyhow::Result<Self> {
        let (child, lines) =
            spawn(command).with_context(|| format!("cannot start {name}; tools/setup-bench"))?;
        Ok(Self { name: name.to_owned(), child, lines, retires_within: Duration::ZERO })
    }

    fn wait_for(&self, announcement: &str) -> anyhow::Result<()> {
        let mut said = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(TOOL_TIMEOUT) {
            if line.contains(announcement) {
                return Ok(());
            }
            said.push(line);
        }
        bail!("{} does not capture: {}", self.name, said.join("; "));
    }

    /// CPU time of all its threads so far, in seconds. The time of ended threads is not included, but none of the
    /// tools ends a thread during a capture.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let times = processor_time(self.child.id())?;
        Ok(times.values().sum::<Duration>().as_secs_f64())
    }

    /// The same in ticks, which are too coarse to include the short work of a polling thread.
    fn cpu_ticks(&self) -> anyhow::Result<u64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The second field, the name, may hold anything; it ends with the last bracket.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
        Ok(fields.skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?)
    }

    /// Waits until the tool has been idle for longer than the kernel holds packets back. A tool that is stopped
    /// earlier leaves packets in the kernel, which are not losses.
    ///
    /// # Errors
    /// When the process is gone.
    pub fn rest(&self) -> anyhow::Result<()> {
        let quiet = self.retires_within + Duration::from_millis(150);
        let begun = Instant::now();
        let (mut ticks, mut since) = (self.cpu_ticks()?, begun);
        while since.elapsed() < quiet && begun.elapsed() < TOOL_TIMEOUT {
            thread::sleep(POLL_INTERVAL);
            let now = self.cpu_ticks()?;
            if now > ticks {
                (ticks, since) = (now, Instant::now());
            }
        }
        Ok(())
    }

    /// Sends SIGINT, as Ctrl-C does, and waits for the exit. Returns the output, line by line.
    ///
    /// # Errors
    /// When it fails, or does not end.
    pub fn stop(mut self) -> anyhow::Result<Vec<String>> {
        kill_process(Pid::from_child(&self.child), Signal::INT)?;
        let status = self.wait()?;
        let said: Vec<String> = self.lines.iter().collect();
        ensure!(status.success(), "{} failed: {}", self.name, said.join("; "));
        Ok(said)
    }

    fn wait(&mut self) -> anyhow::Result<ExitStatus> {
        let begun = Instant::now();
        while begun.elapsed() < TOOL_TIMEOUT {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(POLL_INTERVAL);
        }
        bail!("{} does not end", self.name);
    }
}

impl Drop for Tool {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The CPU time so far of each thread of a process, by the thread's number: what `utime` and `stime` of
/// proc_pid_stat(5) are in ticks of 10 ms, in nanoseconds (`Documentation/scheduler/sched-stats.rst`).
///
/// # Errors
/// When the process is gone.
pub fn processor_time(process: u32) -> anyhow::Result<BTreeMap<u32, Duration>> {
    let mut times = BTreeMap::new();
    for thread in fs::read_dir(format!("/proc/{process}/task"))? {
        let thread = thread?;
        // A thread that has ended meanwhile has no file.
        let Ok(said) = fs::read_to_string(thread.path().join("schedstat")) else { continue };
        let on_cpu = said.split_whitespace().next().context("an empty schedstat")?;
        let number = thread.file_name().to_string_lossy().parse()?;
        times.insert(number, Duration::from_nanos(on_cpu.parse()?));
    }
    Ok(times)
}

/// The packets in a file, by capinfos(1).
///
/// # Errors
/// When it cannot be run, or counts none.
pub fn packets_in(file: &Path) -> anyhow::Result<u64> {
    // -T and -r make it a table without heads, -M exact, -c the count.
    let output = Command::new("capinfos").args(["-c", "-M", "-T", "-r"]).arg(file).output();
    let output = output.context("cannot run capinfos; tools/setup-bench")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let count = text.trim().rsplit('\t').next().and_then(|count| count.parse().ok());
    count.with_context(|| format!("capinfos counts no packets: {text}"))
}

/// Starts `command`, and forwards the lines of both outputs.
///
/// # Errors
/// When it cannot be started.
pub fn spawn(command: &mut Command) -> anyhow::Result<(Child, Receiver<String>)> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (sender, lines) = channel();
    child.stdout.take().into_iter().for_each(|pipe| forward(pipe, sender.clone()));
    child.stderr.take().into_iter().for_each(|pipe| forward(pipe, sender.clone()));
    Ok((child, lines))
}

fn forward(pipe: impl Read + Send + 'static, lines: Sender<String>) {
    thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if lines.send(line).is_err() {
                break;
            }
        }
    });
}
