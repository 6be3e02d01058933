//! Sources of raw stamps, one per file, and their detection on this machine.

mod choice;
#[cfg(target_arch = "aarch64")]
pub(crate) mod cntvct;
mod cores;
pub(crate) mod cost;
pub(crate) mod hpet;
#[cfg(target_arch = "x86_64")]
mod hypervisor;
pub(crate) mod os;
pub(crate) mod raw;
pub(crate) mod selection;
#[cfg(target_arch = "x86_64")]
pub(crate) mod tsc;

#[cfg(target_arch = "x86_64")]
pub(crate) use hypervisor::emulated_by;

/// The name of the hypervisor is read on x86-64 only.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn emulated_by(_source: &str) -> Option<String> {
    None
}
