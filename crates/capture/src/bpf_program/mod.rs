//! What the methods that run a program in the kernel have in common: loading errors, where the kernel
//! runs the program, and what the program counts (`bpf/counts.h`).
#![expect(unsafe_code, reason = "the kernel writes a program's counts to memory of ours")]

mod hook;
mod load;
mod stamped_by;
pub(crate) mod with_filter;

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use libbpf_rs::libbpf_sys::bpf_map_lookup_elem;
use libbpf_rs::{MapHandle, MapMut};

use crate::Error;
use crate::interface::Interface;
pub(crate) use hook::{Attached, Hook, Place, attach_tcx};
pub(crate) use load::{lacks_privileges, loaded, opened};
pub(crate) use stamped_by::{Stamped, StampedBy, clock};

/// The error for what libbpf or the kernel refused of a program for `hook`. `capabilities` are those
/// the method takes.
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
            // With its causes: the first line does not say what the kernel said.
            let reason = format!("{error:#}{}", without_types());
            Error::Program { what: hook.program(), interface, reason }
        }
    }
}

/// What is to blame where libbpf cannot look for the kernel's functions that our programs call.
fn without_types() -> &'static str {
    let there = Path::new("/sys/kernel/btf/vmlinux").exists();
    if there { "" } else { "; it takes a kernel that tells its types (CONFIG_DEBUG_INFO_BTF)" }
}

/// Keys of a program's `counts` map.
const SEEN: u32 = 0;
const DROPPED: u32 = 1;
const UNTRACKED: u32 = 2;

/// A program's own counts, kept for each core and added up here.
#[derive(Debug)]
pub(crate) struct Counts {
    map: MapHandle,
    /// Those of each core, which the kernel writes. They are kept, so that to read them takes no
    /// memory.
    per_core: Vec<u64>,
}

impl Counts {
    pub(crate) fn of(map: &MapMut<'_>) -> Result<Self, libbpf_rs::Error> {
        let map = MapHandle::try_from(map)?;
        // The kernel writes one for each core that there could be, in 8 bytes each.
        Ok(Self { map, per_core: vec![0; libbpf_rs::num_possible_cpus()?] })
    }

    /// Frames that came to the program.
    pub(crate) fn seen(&mut self) -> io::Result<u64> {
        self.sum(SEEN)
    }

    /// Frames of these that the program could not hand to us.
    pub(crate) fn dropped(&mut self) -> io::Result<u64> {
        self.sum(DROPPED)
    }

    /// Packets of these that there was no room to follow, in the programs that follow some.
    pub(crate) fn untracked(&mut self) -> io::Result<u64> {
        self.sum(UNTRACKED)
    }

    fn sum(&mut self, key: u32) -> io::Result<u64> {
        let map = self.map.as_fd().as_raw_fd();
        let values = self.per_core.as_mut_ptr().cast();
        // SAFETY: the key is 4 bytes, as the map's keys are, and there is room for the values of all
        // cores, which have 8 bytes each (`bpf/counts.h`).
        let result = unsafe { bpf_map_lookup_elem(map, (&raw const key).cast(), values) };
        match result {
            0 => Ok(self.per_core.iter().sum()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}
