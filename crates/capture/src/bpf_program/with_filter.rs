//! Inserts a translated filter into a program, in the place reserved by `bpf/filter.h`.
//!
//! libbpf prepares the program first: it creates the maps, writes their descriptors into the instructions, and
//! appends the called function. Then the function is replaced, and libbpf loads the result as if it were from the
//! object file.
#![expect(unsafe_code, reason = "calls of libbpf that libbpf-rs lacks")]

use libbpf_rs::libbpf_sys::{
    self, BPF_PSEUDO_CALL, bpf_insn, bpf_object__prepare, bpf_program__set_insns,
};
use libbpf_rs::{AsRawLibbpf, ErrorExt, OpenObject, OpenProgramMut};

use crate::Error;

/// `BPF_JMP | BPF_CALL` (linux/bpf.h): calls a helper, or with [`BPF_PSEUDO_CALL`] a function of the program.
const CALL: u8 = 0x85;

/// Prepares the programs of `object`, so that [`insert`] can change their instructions. Constants and map sizes can
/// no longer be set after that.
pub(crate) fn prepare(object: &mut OpenObject) -> libbpf_rs::Result<()> {
    // SAFETY: the object is open and borrowed exclusively.
    let result = unsafe { bpf_object__prepare(object.as_libbpf_object().as_ptr()) };
    check(result).context("cannot prepare the program")
}

/// Whether a `program` calls a filter.
pub(crate) fn calls_filter(program: &OpenProgramMut<'_>) -> bool {
    called_function(program.insns()).is_some()
}

/// Replaces the filter function from `bpf/filter.h` in a prepared `program` by `passes`.
pub(crate) fn insert(
    program: &mut OpenProgramMut<'_>,
    passes: &[bpf_insn],
) -> libbpf_rs::Result<()> {
    let mut code = program.insns().to_vec();
    let Some(start) = called_function(&code) else {
        let error = std::io::Error::other("it does not include bpf/filter.h");
        return Err(error).context("cannot insert the filter into the program");
    };
    code.truncate(start);
    code.extend(passes);
    // SAFETY: the program is borrowed exclusively, and libbpf copies that many instructions.
    let result = unsafe {
        bpf_program__set_insns(
            program.as_libbpf_object().as_ptr(),
            code.as_mut_ptr(),
            code.len() as libbpf_sys::size_t,
        )
    };
    check(result).context("cannot insert the filter into the program")
}

/// The error for a program that the kernel does not load with a filter in it.
pub(crate) fn refused(error: &libbpf_rs::Error) -> Error {
    Error::FilterNotInKernel { reason: format!("as a BPF program, {error}") }
}

/// Start of the only function that `code` calls. It is the last one.
fn called_function(code: &[bpf_insn]) -> Option<usize> {
    let mut calls = code.iter().enumerate().filter(|(_, instruction)| {
        instruction.code == CALL && u32::from(instruction.src_reg()) == BPF_PSEUDO_CALL
    });
    let (at, call) = calls.next()?;
    let start = (at + 1).checked_add_signed(isize::try_from(call.imm).ok()?)?;
    (calls.next().is_none() && start < code.len()).then_some(start)
}

fn check(result: libc::c_int) -> libbpf_rs::Result<()> {
    if result == 0 { Ok(()) } else { Err(libbpf_rs::Error::from_raw_os_error(-result)) }
}
