//! What the methods that run an XDP program have in common: loading errors, where the kernel runs
//! the program, and what the program counts (`bpf/counts.h`).

mod stamped_by;
pub(crate) mod with_filter;

use std::io;
use std::os::fd::AsFd;
use std::path::Path;

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapMut, XdpFlags};

use crate::Error;
use crate::interface::Interface;
pub(crate) use stamped_by::{Stamped, StampedBy, clock};

/// Where in the receive path the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the driver, before the kernel has made a packet of the frame.
    Driver,
    /// In the network stack, because the driver has no XDP: later, and slower.
    Stack,
}

/// Asks the kernel where it put the program: a driver without XDP gets it in the stack.
fn place(interface: &Interface, program: &impl AsFd) -> Result<Place, libbpf_rs::Error> {
    let query = libbpf_rs::Xdp::new(program.as_fd()).query(interface.index, XdpFlags::NONE)?;
    let generic = u32::from(query.attach_mode) == libbpf_rs::libbpf_sys::XDP_ATTACHED_SKB;
    Ok(if generic { Place::Stack } else { Place::Driver })
}

/// A program that runs on an interface, until this is dropped or the process ends in any way.
pub(crate) struct Attached(Link);

impl Attached {
    fn new(link: Link) -> Self {
        Self(link)
    }
}

impl Drop for Attached {
    /// Closing the descriptor detaches too, but not while a child that is just being made has a
    /// copy of it.
    fn drop(&mut self) {
        // Where it fails, closing is what is left.
        let _ = self.0.detach();
    }
}

/// The error for what libbpf or the kernel refused. `capabilities` are those the method takes.
pub(crate) fn refused(
    interface: &Interface,
    capabilities: &'static str,
) -> impl Fn(libbpf_rs::Error) -> Error + Copy {
    move |error| {
        // The verifier says "permission denied" too, and root is not helped by sudo.
        let privileged = rustix::process::geteuid().is_root();
        let interface = interface.name.clone();
        if !privileged && error.kind() == libbpf_rs::ErrorKind::PermissionDenied {
            Error::Permission { what: "an XDP program", interface, capabilities }
        } else {
            // With its causes: the first line does not say what the kernel said.
            let reason = format!("{error:#}{}", without_types());
            Error::Xdp { interface, reason }
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
