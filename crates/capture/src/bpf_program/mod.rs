//! What the methods that run a program in the kernel have in common: loading errors, where the kernel
//! runs the program, and what the program counts (`bpf/counts.h`).

mod hook;
mod stamped_by;
pub(crate) mod with_filter;

use std::io;
use std::path::Path;

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapMut};

use crate::Error;
use crate::interface::Interface;
pub(crate) use hook::{Attached, Hook, Place};
pub(crate) use stamped_by::{Stamped, StampedBy, clock};

/// The error for what libbpf or the kernel refused of a program for `hook`. `capabilities` are those
/// the method takes.
pub(crate) fn refused(
    hook: Hook,
    interface: &Interface,
    capabilities: &'static str,
) -> impl Fn(libbpf_rs::Error) -> Error + Copy {
    move |error| {
        // The verifier says "permission denied" too, and root is not helped by sudo.
        let privileged = rustix::process::geteuid().is_root();
        let (what, interface) = (hook.program(), interface.name.clone());
        if !privileged && error.kind() == libbpf_rs::ErrorKind::PermissionDenied {
            Error::Permission { what, interface, capabilities }
        } else {
            // With its causes: the first line does not say what the kernel said.
            let reason = format!("{error:#}{}", without_types());
            Error::Program { what, interface, reason }
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

/// A program's own counts, kept for each core and added up here.
#[derive(Debug)]
pub(crate) struct Counts(MapHandle);

impl Counts {
    pub(crate) fn of(map: &MapMut<'_>) -> Result<Self, libbpf_rs::Error> {
        MapHandle::try_from(map).map(Self)
    }

    /// Frames that came to the program.
    pub(crate) fn seen(&self) -> io::Result<u64> {
        self.sum(SEEN)
    }

    /// Frames of these that the program could not hand to us.
    pub(crate) fn dropped(&self) -> io::Result<u64> {
        self.sum(DROPPED)
    }

    fn sum(&self, key: u32) -> io::Result<u64> {
        let per_core = self
            .0
            .lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY)
            .map_err(io::Error::other)?
            .unwrap_or_default();
        let value = |bytes: &Vec<u8>| bytes.as_slice().try_into().map_or(0, u64::from_ne_bytes);
        Ok(per_core.iter().map(value).sum())
    }
}
