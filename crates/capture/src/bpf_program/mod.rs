//! Shared by the methods that run a program in the kernel: loading, attaching, and the program's counts
//! (`bpf/counts.h`).

pub(crate) mod counter_events;
mod hook;
mod libbpf;
mod load;
mod stamped_by;
pub(crate) mod with_filter;

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use libbpf_rs::{MapHandle, MapMut};

use crate::Error;
use crate::interface::Interface;
pub(crate) use hook::{Attached, Hook, Place, attach_tcx};
pub(crate) use load::{lacks_privileges, loaded, opened};
pub(crate) use stamped_by::{Stamped, StampedBy, clock};

/// The error for a program at `hook` that libbpf or the kernel refused. `capabilities` are those that the method
/// requires.
pub(crate) fn refused(
    hook: Hook,
    interface: &Interface,
    capabilities: &'static str,
) -> impl Fn(libbpf_rs::Error) -> Error + Copy {
    move |error| {
        let interface = interface.name.clone();
        if lacks_privileges(&error) {
            Error::Permission { what: hook.running(), interface, capabilities }
        } else {
            // `{:#}` includes the causes: the first line does not have the kernel's error.
            let reason = format!("{error:#}{}", missing_btf_hint());
            Error::Program { what: hook.program(), interface, reason }
        }
    }
}

/// Next step if libbpf cannot find the kernel functions that the programs call.
fn missing_btf_hint() -> &'static str {
    let available = Path::new("/sys/kernel/btf/vmlinux").exists();
    if available {
        ""
    } else {
        "; this requires a kernel with type information (CONFIG_DEBUG_INFO_BTF)"
    }
}

/// The inode number of the calling thread's network namespace, which identifies it in the kernel (`bpf/here.h`).
pub(crate) fn namespace() -> io::Result<u32> {
    let inode = fs::metadata("/proc/thread-self/ns/net")?.ino();
    u32::try_from(inode).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Keys of a program's `counts` map.
const SEEN: u32 = 0;
const DROPPED: u32 = 1;
const UNTRACKED: u32 = 2;

/// A program's own counts: kept per core by the kernel, summed here.
#[derive(Debug)]
pub(crate) struct Counts {
    map: MapHandle,
    /// Buffer for the counts of each core, kept to avoid allocation.
    per_core: Vec<u64>,
}

impl Counts {
    pub(crate) fn of(map: &MapMut<'_>) -> Result<Self, libbpf_rs::Error> {
        let map = MapHandle::try_from(map)?;
        // The kernel writes 8 bytes for each possible core.
        Ok(Self { map, per_core: vec![0; libbpf_rs::num_possible_cpus()?] })
    }

    /// Frames that the program received.
    pub(crate) fn seen(&mut self) -> io::Result<u64> {
        self.sum(SEEN)
    }

    /// Number of seen frames that the program could not pass to this process.
    pub(crate) fn dropped(&mut self) -> io::Result<u64> {
        self.sum(DROPPED)
    }

    /// Number of seen packets that the program could not follow for lack of room.
    pub(crate) fn untracked(&mut self) -> io::Result<u64> {
        self.sum(UNTRACKED)
    }

    fn sum(&mut self, key: u32) -> io::Result<u64> {
        libbpf::read_per_core(&self.map, key, &mut self.per_core)?;
        Ok(self.per_core.iter().sum())
    }
}
