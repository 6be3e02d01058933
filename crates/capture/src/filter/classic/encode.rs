//! Encodes operations as instructions of 8 bytes.

use libc::sock_filter;

use super::{Operand, Operation, Register};
use crate::filter::{Reason, TOO_LONG};

/// Encodes a program for the kernel. Rejects programs longer than the kernel's limit, and branches longer than
/// eight bits.
pub(in crate::filter) fn encode(program: &[Operation]) -> Result<Vec<sock_filter>, Reason> {
    let encoded: Option<Vec<_>> =
        program.iter().enumerate().map(|(at, operation)| instruction(at, *operation)).collect();
    let fits =
        |program: &Vec<_>| i32::try_from(program.len()).is_ok_and(|n| n <= libc::BPF_MAXINSNS);
    encoded.filter(fits).ok_or(TOO_LONG)
}

fn instruction(at: usize, operation: Operation) -> Option<sock_filter> {
    let plain = |code: u32, k| Some((code, 0, 0, k));
    let (a, x) = (libc::BPF_LD, libc::BPF_LDX);
    let load = |register| if register == Register::A { a } else { x };
    let (code, jt, jf, k) = match operation {
        Operation::Load { size, offset } => plain(a | libc::BPF_ABS | size.code(), offset),
        Operation::LoadIndexed { size, offset } => plain(a | libc::BPF_IND | size.code(), offset),
        Operation::LoadHeaderLength { offset } => plain(x | libc::BPF_MSH | libc::BPF_B, offset),
        Operation::LoadLength(register) => plain(load(register) | libc::BPF_LEN, 0),
        Operation::Set(register, k) => plain(load(register) | libc::BPF_IMM, k),
        Operation::Fetch(register, word) => plain(load(register) | libc::BPF_MEM, word),
        Operation::Store(Register::A, word) => plain(libc::BPF_ST, word),
        Operation::Store(Register::X, word) => plain(libc::BPF_STX, word),
        Operation::Calculate { code, operand } => {
            let (source, k) = source(operand);
            plain(libc::BPF_ALU | code | source, k)
        }
        Operation::Negate => plain(libc::BPF_ALU | libc::BPF_NEG, 0),
        Operation::Jump { to } => {
            plain(libc::BPF_JMP | libc::BPF_JA, u32::try_from(to.checked_sub(at + 1)?).ok()?)
        }
        Operation::Branch { condition, operand, yes, no } => {
            let (source, k) = source(operand);
            let distance = |to: usize| u8::try_from(to.checked_sub(at + 1)?).ok();
            Some((libc::BPF_JMP | condition.code() | source, distance(yes)?, distance(no)?, k))
        }
        Operation::Return(bytes) => plain(libc::BPF_RET | libc::BPF_K, bytes),
        Operation::CopyToX => plain(libc::BPF_MISC | libc::BPF_TAX, 0),
        Operation::CopyToA => plain(libc::BPF_MISC | libc::BPF_TXA, 0),
    }?;
    Some(sock_filter { code: u16::try_from(code).ok()?, jt, jf, k })
}

/// The bits for an operand's source, and the number in the instruction.
fn source(operand: Operand) -> (u32, u32) {
    match operand {
        Operand::K(k) => (libc::BPF_K, k),
        Operand::X => (libc::BPF_X, 0),
    }
}
