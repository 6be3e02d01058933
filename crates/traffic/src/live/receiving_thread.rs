//! The kernel thread that receives frames for a core, and its CPU time.

use std::time::Duration;
use std::{fs, io};

/// The thread of a core in a map of cores (`cpumap/CORE/map:ID`, `__cpu_map_entry_alloc` of kernel/bpf/cpumap.c).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReceivingThread {
    pub(super) core: u32,
    /// The map's number in the kernel.
    pub(super) map: u32,
}

impl ReceivingThread {
    /// Its CPU time since it started: the first field of its schedstat
    /// (`Documentation/scheduler/sched-stats.rst`).
    ///
    /// # Errors
    /// There is no such thread, or its file is not readable.
    pub(super) fn cpu_time(self) -> io::Result<Duration> {
        let name = self.name();
        for process in fs::read_dir("/proc")? {
            let folder = process?.path();
            // A process may end meanwhile; other entries have no such file.
            let Ok(comm) = fs::read_to_string(folder.join("comm")) else { continue };
            if comm.trim_end() == name {
                return on_cpu(&fs::read_to_string(folder.join("schedstat"))?);
            }
        }
        Err(io::Error::new(io::ErrorKind::NotFound, format!("no kernel thread {name}")))
    }

    fn name(self) -> String {
        format!("cpumap/{}/map:{}", self.core, self.map)
    }
}

fn on_cpu(schedstat: &str) -> io::Result<Duration> {
    let nanos = schedstat.split_whitespace().next().and_then(|nanos| nanos.parse().ok());
    nanos.map(Duration::from_nanos).ok_or(io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_on_the_cpu_is_the_first_field() {
        assert_eq!(on_cpu("1234 56 7\n").unwrap(), Duration::from_nanos(1_234));
        assert!(on_cpu("").is_err() && on_cpu("many 1 2").is_err());
    }

    #[test]
    fn unknown_thread_is_an_error() {
        let thread = ReceivingThread { core: 1, map: u32::MAX };
        assert_eq!(thread.name(), "cpumap/1/map:4294967295");
        assert_eq!(thread.cpu_time().unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
