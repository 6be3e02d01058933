//! Inserts a translated filter into a program, in the place reserved by `bpf/filter.h`.
//!
//! libbpf prepares the program first: it creates the maps, writes their descriptors into the instructions, and
//! appends the called function. Then the function is replaced, and libbpf loads the result as if it were from the
//! object file.

use libbpf_rs::libbpf_sys::{BPF_PSEUDO_CALL, bpf_insn};
use libbpf_rs::{ErrorExt, OpenObject, OpenProgramMut};

use super::libbpf;
use crate::Error;

/// `BPF_JMP | BPF_CALL` (linux/bpf.h): calls a helper, or with [`BPF_PSEUDO_CALL`] a function of the program.
const CALL: u8 = 0x85;

/// Prepares the programs of `object`, so that [`insert`] can change their instructions. Constants and map sizes can
/// no longer be set after that.
pub(crate) fn prepare(object: &mut OpenObject) -> libbpf_rs::Result<()> {
    libbpf::prepare(object).context("cannot prepare the program")
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
    libbpf::set_instructions(program, &mut code)
        .context("cannot insert the filter into the program")
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
