//! Calls of libbpf that libbpf-rs lacks.
#![expect(unsafe_code, reason = "calls with pointers")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;

use libbpf_rs::libbpf_sys::{
    self, bpf_insn, bpf_map_lookup_elem, bpf_object__prepare, bpf_program__set_insns, bpf_tcx_opts,
};
use libbpf_rs::{AsRawLibbpf, ErrorExt, Link, MapHandle, OpenObject, OpenProgramMut, ProgramMut};

/// Attaches a program to tc ingress or egress of the interface with this index, before the existing ones
/// (`BPF_F_BEFORE`) or after them (`BPF_F_AFTER`).
pub(super) fn attach_tcx(
    program: &ProgramMut<'_>,
    interface: i32,
    order: u32,
) -> libbpf_rs::Result<Link> {
    let options = bpf_tcx_opts {
        sz: size_of::<bpf_tcx_opts>() as libbpf_sys::size_t,
        flags: order,
        ..bpf_tcx_opts::default()
    };
    let program = program.as_libbpf_object().as_ptr();
    // SAFETY: the program is loaded, and it and the options, whose size is passed, outlive the call.
    let link =
        unsafe { libbpf_sys::bpf_program__attach_tcx(program, interface, &raw const options) };
    let failed = || Err(io::Error::last_os_error()).context("failed to attach tc program");
    // SAFETY: libbpf returned the link to this caller only.
    NonNull::new(link).map_or_else(failed, |link| Ok(unsafe { Link::from_ptr(link) }))
}

/// Prepares the programs of `object`: creates maps and writes them into the instructions, which can still be changed.
pub(super) fn prepare(object: &mut OpenObject) -> libbpf_rs::Result<()> {
    // SAFETY: the object is open and borrowed exclusively.
    check(unsafe { bpf_object__prepare(object.as_libbpf_object().as_ptr()) })
}

/// Replaces the instructions of a prepared program.
pub(super) fn set_instructions(
    program: &mut OpenProgramMut<'_>,
    code: &mut [bpf_insn],
) -> libbpf_rs::Result<()> {
    // SAFETY: the program is borrowed exclusively, and libbpf copies that many instructions.
    check(unsafe {
        bpf_program__set_insns(
            program.as_libbpf_object().as_ptr(),
            code.as_mut_ptr(),
            code.len() as libbpf_sys::size_t,
        )
    })
}

/// Reads the counts of all cores at `key` of a per-core array map with values of 8 bytes.
///
/// # Panics
/// `counts` has less room than there are possible cores.
pub(super) fn read_per_core(map: &MapHandle, key: u32, counts: &mut [u64]) -> io::Result<()> {
    assert!(libbpf_rs::num_possible_cpus().is_ok_and(|cores| cores <= counts.len()));
    let values = counts.as_mut_ptr().cast();
    // SAFETY: the key is 4 bytes, as the map's keys are, and there is room for the values of all cores.
    match unsafe { bpf_map_lookup_elem(map.as_fd().as_raw_fd(), (&raw const key).cast(), values) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn check(result: libc::c_int) -> libbpf_rs::Result<()> {
    if result == 0 { Ok(()) } else { Err(libbpf_rs::Error::from_raw_os_error(-result)) }
}
