//! A capture in a process of its own: started, waited for, measured, stopped.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::bed::Bed;
use crate::contenders::{Contender, Programs};
use crate::statistics::real;

/// Longer than any of them takes to begin, to come to rest, or to end.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(10);

/// A capture that runs. Dropping it kills the process and removes the file.
pub(crate) struct Running {
    contender: Contender,
    child: Child,
    file: PathBuf,
    lines: Receiver<String>,
}

/// A capture that ended well.
pub(crate) struct Finished {
    pub(crate) file: PathBuf,
    /// What it printed, line by line.
    said: Vec<String>,
}

impl Running {
    /// Starts `contender` with `more` arguments and waits until it captures.
    pub(crate) fn start(
        contender: Contender,
        more: &[&str],
        programs: &Programs,
        bed: &Bed,
    ) -> anyhow::Result<Self> {
        let file = programs.capture_file(contender);
        let mut command = contender.command(programs, bed, &file);
        let (child, lines) = spawn(command.args(more))
            .with_context(|| format!("cannot start {}; tools/setup-bench", contender.name()))?;
        let running = Self { contender, child, file, lines };
        running.wait_until_it_captures()?;
        Ok(running)
    }

    fn wait_until_it_captures(&self) -> anyhow::Result<()> {
        let mut said = Vec::new();
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            if line.contains(self.contender.announcement()) {
                return Ok(());
            }
            said.push(line);
        }
        bail!("{} does not capture: {}", self.contender.name(), said.join("; "));
    }

    /// Seconds of CPU time of all its threads so far: what `utime` and `stime` of proc_pid_stat(5)
    /// add up to in ticks of 10 ms, here in nanoseconds (`Documentation/scheduler/sched-stats.rst`).
    /// None of the tools ends a thread while it captures, which would take its time along.
    pub(crate) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let mut nanos = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let times = fs::read_to_string(thread?.path().join("schedstat"))?;
            let on_cpu = times.split_whitespace().next().context("an empty schedstat")?;
            nanos += on_cpu.parse::<u64>()?;
        }
        Ok(real(nanos) / 1e9)
    }

    /// The same in ticks, in which what a thread does that only looks at the clock is not seen.
    fn cpu_ticks(&self) -> anyhow::Result<u64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The second field, the name, may hold anything; it ends with the last bracket.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
        Ok(fields.skip(11).take(2).map(str::parse::<u64>).sum::<Result<u64, _>>()?)
    }

    /// Waits until it has done nothing for longer than the kernel keeps packets from it. A tool that
    /// is stopped earlier leaves packets behind that were not lost.
    pub(crate) fn rest(&self) -> anyhow::Result<()> {
        let quiet = self.contender.retires_within() + Duration::from_millis(150);
        let begun = Instant::now();
        let (mut ticks, mut since) = (self.cpu_ticks()?, begun);
        while since.elapsed() < quiet && begun.elapsed() < PATIENCE {
            thread::sleep(LOOK);
            let now = self.cpu_ticks()?;
            if now > ticks {
                (ticks, since) = (now, Instant::now());
            }
        }
        Ok(())
    }

    /// Asks it to end, as Ctrl-C does, and waits for that.
    pub(crate) fn stop(mut self) -> anyhow::Result<Finished> {
        kill_process(Pid::from_child(&self.child), Signal::INT)?;
        let status = self.wait()?;
        let said: Vec<String> = self.lines.iter().collect();
        let name = self.contender.name();
        ensure!(status.success(), "{name} failed: {}", said.join("; "));
        Ok(Finished { file: std::mem::take(&mut self.file), said })
    }

    fn wait(&mut self) -> anyhow::Result<ExitStatus> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            thread::sleep(LOOK);
        }
        bail!("{} does not end", self.contender.name());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.file);
    }
}

impl Finished {
    /// The packets in its file, by capinfos(1).
    pub(crate) fn written(&self) -> anyhow::Result<u64> {
        // -T and -r make it a table without heads, -M exact, -c the count.
        let output =
            Command::new("capinfos").args(["-c", "-M", "-T", "-r"]).arg(&self.file).output();
        let output = output.context("cannot run capinfos; tools/setup-bench")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let count = text.trim().rsplit('\t').next().and_then(|count| count.parse().ok());
        count.with_context(|| format!("capinfos counts no packets: {text}"))
    }

    /// What `wirestamp` printed as JSON.
    pub(crate) fn json(&self) -> anyhow::Result<Value> {
        let from = self.said.iter().position(|line| line == "{").unwrap_or(0);
        let to =
            self.said.iter().rposition(|line| line == "}").map_or(self.said.len(), |at| at + 1);
        let document = self.said.get(from..to).unwrap_or_default().join("\n");
        serde_json::from_str(&document).with_context(|| format!("not JSON: {document}"))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.file
    }
}

impl Drop for Finished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

/// Starts `command`, and sends on what it prints to either output, line by line.
pub(crate) fn spawn(command: &mut Command) -> anyhow::Result<(Child, Receiver<String>)> {
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
