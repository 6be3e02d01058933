//! A process of the lab: a node of the mesh, or a broker of Kafka.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use schemars::JsonSchema;
use serde::Serialize;
use strum::Display;
use wirestamp_lab::Netns;

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "ProcessKind")]
#[strum(serialize_all = "kebab-case")]
pub(in crate::mesh::lab) enum Kind {
    /// A broker of Apache Kafka.
    Broker,
    /// A controller.
    Controller,
    /// A separate collector.
    Collector,
    /// A probe.
    Probe,
}

/// How to start a process.
pub(super) struct Launch {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) host: Netns,
    /// The core to which it is pinned, if any.
    pub(super) core: Option<usize>,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) log: PathBuf,
}

/// A process, which may have ended and started again.
pub(super) struct Process {
    launch: Launch,
    running: Option<Child>,
    /// Usage of earlier runs.
    earlier: Usage,
}

/// Resources that a process has used since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::mesh::lab) struct Usage {
    /// Processor time of all threads, in steps of a clock tick (10 ms on most machines).
    pub(in crate::mesh::lab) processor_time: Duration,
    /// Peak of the resident memory, in bytes; none if it is unknown.
    pub(in crate::mesh::lab) peak_memory: Option<u64>,
}

impl Process {
    /// Starts a process with arguments for this start only. The kernel kills it when the calling thread ends.
    pub(super) fn start(launch: Launch, first: &[OsString]) -> anyhow::Result<Self> {
        let running = Some(spawn(&launch, first)?);
        Ok(Self { launch, running, earlier: Usage::default() })
    }

    /// Starts it again after [`Self::kill`].
    pub(super) fn start_again(&mut self) -> anyhow::Result<()> {
        self.running = Some(spawn(&self.launch, &[])?);
        Ok(())
    }

    pub(super) fn name(&self) -> &str {
        &self.launch.name
    }

    pub(super) fn kind(&self) -> Kind {
        self.launch.kind
    }

    /// Process ID; none if it was killed.
    #[cfg(feature = "studies")]
    pub(super) fn id(&self) -> Option<u32> {
        self.running.as_ref().map(Child::id)
    }

    /// Checks that it is running, or was killed.
    ///
    /// # Errors
    /// If it has ended, with the last line of its log.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        if let Some(running) = &mut self.running
            && let Some(status) = running.try_wait()?
        {
            bail!("the {} has ended ({status}): {}", self.launch.name, self.last_line());
        }
        Ok(())
    }

    /// Usage of all its runs.
    pub(super) fn usage(&self) -> anyhow::Result<Usage> {
        let Some(running) = &self.running else { return Ok(self.earlier) };
        let now = Usage::read(running.id());
        let now = now.with_context(|| format!("cannot read the usage of {}", self.launch.name))?;
        Ok(self.earlier.with_later(now))
    }

    /// Kills it with SIGKILL.
    pub(super) fn kill(&mut self) -> anyhow::Result<()> {
        self.earlier = self.usage()?;
        if let Some(mut running) = self.running.take() {
            running.kill()?;
            running.wait()?;
        }
        Ok(())
    }

    /// Ends it: a node with SIGINT, a broker with SIGKILL, because its data is not needed any more.
    ///
    /// # Errors
    /// If it exits with an error.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        if self.launch.kind == Kind::Broker {
            return self.kill();
        }
        let Some(running) = &mut self.running else { return Ok(()) };
        interrupt(running)?;
        let status: ExitStatus = running.wait()?;
        if !status.success() {
            bail!("the {} failed ({status}): {}", self.launch.name, self.last_line());
        }
        Ok(())
    }

    pub(super) fn last_line(&self) -> String {
        last_line(&self.launch.log)
    }

    /// Whether its log contains a text.
    pub(super) fn has_logged(&self, text: &str) -> bool {
        fs::read_to_string(&self.launch.log).is_ok_and(|log| log.contains(text))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(running) = &mut self.running {
            // Fails if it has already ended.
            drop(running.kill().and_then(|()| running.wait()));
        }
    }
}

impl Usage {
    /// The usage of a process since its start (`/proc/PID/stat` and `status`, proc(5)).
    fn read(process: u32) -> anyhow::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
        let status = fs::read_to_string(format!("/proc/{process}/status"))?;
        let ticks = ticks(&stat).context("cannot read /proc/PID/stat")?;
        let nanos = ticks.saturating_mul(1_000_000_000) / clock_ticks_per_second().max(1);
        Ok(Self { processor_time: Duration::from_nanos(nanos), peak_memory: peak_memory(&status) })
    }

    fn with_later(self, later: Self) -> Self {
        Self {
            processor_time: self.processor_time.saturating_add(later.processor_time),
            peak_memory: self.peak_memory.max(later.peak_memory),
        }
    }
}

/// User and system time in `/proc/PID/stat`, in clock ticks.
fn ticks(stat: &str) -> Option<u64> {
    // The second field, the name, may contain anything; it ends with the last bracket.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut field = || fields.next()?.parse::<u64>().ok();
    field()?.checked_add(field()?)
}

/// Peak of the resident memory in `/proc/PID/status`, in bytes.
fn peak_memory(status: &str) -> Option<u64> {
    let value = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

fn spawn(launch: &Launch, first: &[OsString]) -> anyhow::Result<Child> {
    let Launch { name, host, core, program, arguments, log, .. } = launch;
    let log_file = File::options().create(true).append(true).open(log);
    let log_file = log_file.with_context(|| format!("cannot write {}", log.display()))?;
    let mut process = host.command(program);
    process
        .args(arguments)
        .args(first)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log_file)
        // Ctrl-C goes to this process only, which ends the nodes after their last results.
        .process_group(0);
    on_core(*core, || process.spawn().with_context(|| format!("cannot start the {name}")))
}

/// Runs `start` pinned to a core, which the started process inherits.
fn on_core<T>(core: Option<usize>, start: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let Some(core) = core else { return start() };
    let before = sched_getaffinity(None).context("cannot see which cores there are")?;
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).with_context(|| format!("cannot run on core {core}"))?;
    let started = start();
    sched_setaffinity(None, &before).context("cannot use other cores again")?;
    started
}

fn interrupt(process: &Child) -> io::Result<()> {
    let id = i32::try_from(process.id()).ok().and_then(Pid::from_raw);
    let id = id.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(id, Signal::INT)?)
}

fn last_line(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().last().unwrap_or("its log is empty").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_on_a_core_restores_the_affinity() {
        let before = sched_getaffinity(None).unwrap();
        let last = (0..before.count() as usize).rfind(|core| before.is_set(*core)).unwrap();
        let inside = on_core(Some(last), || Ok(sched_getaffinity(None)?)).unwrap();
        assert!(inside.count() == 1 && inside.is_set(last));
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }

    #[test]
    fn processor_time_is_user_and_system_time() {
        let stat = "42 (a) b) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 7 9 20 0 1 0 100 0 0";
        assert_eq!(ticks(stat), Some(300));
        assert_eq!((ticks("42 (a) S 1"), ticks("")), (None, None));
    }

    #[test]
    fn unreadable_peak_memory_is_unknown() {
        assert_eq!(peak_memory("Name:\tx\nVmHWM:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!(peak_memory("Name:\tx\nVmHWM:\t    2048\n"), None);
        assert_eq!(peak_memory(""), None);
    }

    #[test]
    fn own_usage_is_known() {
        let usage = Usage::read(std::process::id()).unwrap();
        assert!(usage.peak_memory > Some(0), "{usage:?}");
        let both =
            usage.with_later(Usage { processor_time: Duration::from_secs(1), peak_memory: None });
        assert_eq!(both.processor_time, usage.processor_time + Duration::from_secs(1));
        assert_eq!(both.peak_memory, usage.peak_memory);
    }
}
