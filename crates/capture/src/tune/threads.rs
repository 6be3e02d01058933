//! The threads of threaded NAPI: kernel threads called `napi/IF-ID` (net/core/dev.c).

use std::fs;
use std::io;
use std::path::Path;

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};
use wirestamp_sys::scheduling;

use super::place::{Attribute, Place};
use crate::affinity::parse_cores;

/// A kernel thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NapiThread {
    pub(super) pid: i32,
    pub(super) name: String,
}

impl NapiThread {
    pub(super) fn place(&self, attribute: Attribute) -> Place {
        Place::Thread { pid: self.pid, name: self.name.clone(), attribute }
    }
}

/// The NAPI threads of interfaces called `interface`, in all namespaces, in the order of their ids.
pub(super) fn of(proc: &Path, interface: &str) -> Vec<NapiThread> {
    let thread = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let name = name(proc, pid).ok()?;
        let id = name.strip_prefix("napi/")?.strip_prefix(interface)?.strip_prefix('-')?;
        id.bytes().all(|byte| byte.is_ascii_digit()).then_some(NapiThread { pid, name })
    };
    let entries = fs::read_dir(proc).into_iter().flatten().flatten();
    let mut threads: Vec<_> = entries.filter_map(thread).collect();
    threads.sort_by_key(|thread| thread.pid);
    threads
}

fn name(proc: &Path, pid: i32) -> io::Result<String> {
    let name = fs::read_to_string(proc.join(pid.to_string()).join("comm"))?;
    Ok(name.trim_end().to_owned())
}

/// The thread, if the id still belongs to it.
fn find(pid: i32, expected: &str) -> io::Result<Pid> {
    let pid =
        Pid::from_raw(pid).filter(|_| name(Path::new("/proc"), pid).is_ok_and(|n| n == expected));
    pid.ok_or(io::ErrorKind::NotFound.into())
}

pub(super) fn read(pid: i32, name: &str, attribute: Attribute) -> io::Result<String> {
    let thread = find(pid, name)?;
    match attribute {
        Attribute::Cores => {
            let set = sched_getaffinity(Some(thread))?;
            let cores = (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core));
            Ok(cores.map(|core| core.to_string()).collect::<Vec<_>>().join(","))
        }
        Attribute::Scheduling => scheduling::policy(thread),
    }
}

pub(super) fn write(pid: i32, name: &str, attribute: Attribute, value: &str) -> io::Result<()> {
    let thread = find(pid, name)?;
    match attribute {
        Attribute::Cores => {
            let mut set = CpuSet::new();
            parse_cores(value)
                .into_iter()
                .filter(|&core| core < CpuSet::MAX_CPU)
                .for_each(|core| set.set(core));
            Ok(sched_setaffinity(Some(thread), &set)?)
        }
        Attribute::Scheduling => scheduling::set_policy(thread, value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_threads_of_the_interface_are_found() {
        let proc = tempfile::tempdir().unwrap();
        let names = ["napi/eth0-8193", "napi/eth0-8194", "napi/eth01-1", "napi/eth0-x", "sshd"];
        for (pid, name) in names.iter().enumerate() {
            let folder = proc.path().join((20 - pid).to_string());
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("comm"), format!("{name}\n")).unwrap();
        }
        let pids: Vec<_> = of(proc.path(), "eth0").iter().map(|thread| thread.pid).collect();
        assert_eq!(pids, [19, 20]);
    }

    #[test]
    fn reused_thread_id_is_not_found() {
        let own = i32::try_from(std::process::id()).unwrap();
        for attribute in [Attribute::Cores, Attribute::Scheduling] {
            let error = write(own, "napi/eth0-1", attribute, "0").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
    }
}
