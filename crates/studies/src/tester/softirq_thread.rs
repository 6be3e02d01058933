//! A kernel thread that receives for an interface, as the softIRQ of a network card's core does: threaded NAPI
//! (`Documentation/networking/napi.rst`).

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::thread::{CpuSet, Pid, sched_setaffinity};
use wirestamp_sys::scheduling;

use super::bed::{Bed, INTERFACE, run};
use super::trial::cpu_time;

/// The threads of [`INTERFACE`], one for each of its queues.
#[derive(Debug)]
pub(crate) struct SoftirqThread {
    threads: Vec<Pid>,
}

impl SoftirqThread {
    /// Lets the threads receive on `core`, instead of the sender's core. They preempt the programs there, as a softIRQ does.
    ///
    /// # Errors
    /// When this kernel has no such threads, or this process may not set them up.
    pub(crate) fn receive_on(bed: &Bed, core: usize) -> anyhow::Result<Self> {
        // sysfs shows the interfaces of the namespace in which it was mounted.
        let script =
            format!("mount -t sysfs sysfs /sys && echo 1 > /sys/class/net/{INTERFACE}/threaded");
        let before = napi_threads()?;
        let mut command = bed.receiver().command("unshare");
        run(command.args(["-m", "sh", "-c", &script])).context("cannot enable threaded NAPI")?;
        let mut threads = napi_threads()?;
        threads.retain(|it| !before.contains(it));
        ensure!(
            !threads.is_empty(),
            "/proc shows no thread of threaded NAPI of {INTERFACE} (a PID namespace has none)"
        );
        let mut cores = CpuSet::new();
        cores.set(core);
        let pin = |thread: &Pid| {
            sched_setaffinity(Some(*thread), &cores)?;
            scheduling::set_policy(*thread, "SCHED_FIFO 1")
        };
        let pinned = threads.iter().try_for_each(pin);
        pinned.context("cannot set up the thread of threaded NAPI")?;
        Ok(Self { threads })
    }

    /// Their CPU time since they started.
    ///
    /// # Errors
    /// /proc does not show them.
    pub(crate) fn cpu_time(&self) -> anyhow::Result<Duration> {
        let time = |thread: &Pid| {
            let folder = PathBuf::from(format!("/proc/{}", thread.as_raw_nonzero()));
            cpu_time(&folder.join("schedstat"))
        };
        self.threads.iter().map(time).sum()
    }
}

/// Threads of threaded NAPI of an interface named [`INTERFACE`] (`napi/NAME-ID`, `napi_kthread_create` of net/core/dev.c).
fn napi_threads() -> anyhow::Result<Vec<Pid>> {
    let prefix = format!("napi/{INTERFACE}-");
    let mut threads = Vec::new();
    for process in fs::read_dir("/proc")? {
        let process = process?;
        let name = process.file_name().into_string().ok();
        let pid = name.and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        // A process may end meanwhile.
        let comm = fs::read_to_string(process.path().join("comm"));
        if comm.is_ok_and(|comm| comm.starts_with(&prefix)) {
            threads.extend(pid);
        }
    }
    Ok(threads)
}
