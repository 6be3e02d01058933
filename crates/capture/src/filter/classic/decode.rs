//! Decodes instructions of 8 bytes to operations.

use libc::sock_filter;

use super::{Condition, Operand, Operation, Register, Size};
use crate::filter::Reason;

/// Bit fields of an instruction's code (linux/bpf_common.h: `BPF_CLASS`, `BPF_SIZE`, `BPF_MODE`, `BPF_OP`,
/// `BPF_SRC`; linux/filter.h: `BPF_RVAL`, `BPF_MISCOP`).
const CLASS: u32 = 0x07;
const SIZE: u32 = 0x18;
const MODE: u32 = 0xe0;
const OP: u32 = 0xf0;
const SOURCE: u32 = 0x08;
const RESULT: u32 = 0x18;
const MISC: u32 = 0xf8;

const UNKNOWN: Reason = "libpcap compiled unsupported instructions";

/// Decodes a program. Rejects programs with loops (libpcap uses them to follow chains of headers; the kernel does
/// not run them), with undefined results, and with unknown instructions.
pub(in crate::filter) fn decode(program: &[sock_filter]) -> Result<Vec<Operation>, Reason> {
    let decoded: Vec<_> = (0..)
        .zip(program)
        .map(|(at, instruction)| operation(at, instruction))
        .collect::<Option<_>>()
        .ok_or(UNKNOWN)?;
    if decoded.is_empty() {
        return Err(UNKNOWN);
    }
    for (at, operation) in decoded.iter().enumerate() {
        if operation.next(at).any(|to| to <= at) {
            return Err("it has a loop");
        } else if operation.next(at).any(|to| to >= decoded.len()) {
            return Err(UNKNOWN);
        }
    }
    if reads_uninitialised_memory(&decoded) {
        return Err("a flaw of libpcap made it read uninitialised memory");
    }
    Ok(decoded)
}

/// Whether some path reads a word of memory before it is written. libpcap's optimiser produces such programs from
/// some arithmetic, with undefined results; the kernel rejects them (`check_load_and_stores` in net/core/filter.c).
fn reads_uninitialised_memory(program: &[Operation]) -> bool {
    // For each instruction, the words written on every path to it, one bit each.
    let mut written = vec![u16::MAX; program.len()];
    written[0] = 0;
    for (at, operation) in program.iter().enumerate() {
        let mut words = written[at];
        match *operation {
            Operation::Store(_, word) => words |= 1 << word,
            Operation::Fetch(_, word) if words & 1 << word == 0 => return true,
            _ => {}
        }
        operation.next(at).for_each(|to| written[to] &= words);
    }
    false
}

fn operation(at: usize, &sock_filter { code, jt, jf, k }: &sock_filter) -> Option<Operation> {
    let code = u32::from(code);
    let operand = if code & SOURCE == libc::BPF_X { Operand::X } else { Operand::K(k) };
    Some(match code & CLASS {
        libc::BPF_LD => load(code, k)?,
        libc::BPF_LDX => match code & MODE {
            libc::BPF_IMM => Operation::Set(Register::X, k),
            libc::BPF_MEM => Operation::Fetch(Register::X, word(k)?),
            libc::BPF_LEN => Operation::LoadLength(Register::X),
            libc::BPF_MSH => Operation::LoadHeaderLength { offset: k },
            _ => return None,
        },
        libc::BPF_ST => Operation::Store(Register::A, word(k)?),
        libc::BPF_STX => Operation::Store(Register::X, word(k)?),
        libc::BPF_ALU => match code & OP {
            libc::BPF_NEG => Operation::Negate,
            code if code <= libc::BPF_XOR => Operation::Calculate { code, operand },
            _ => return None,
        },
        libc::BPF_JMP if code & OP == libc::BPF_JA => {
            let distance = isize::try_from(k.cast_signed()).ok()?;
            Operation::Jump { to: (at + 1).checked_add_signed(distance)? }
        }
        libc::BPF_JMP => {
            let condition = Condition::of(code & OP)?;
            let [yes, no] = [jt, jf].map(|distance| at + 1 + usize::from(distance));
            Operation::Branch { condition, operand, yes, no }
        }
        libc::BPF_RET if code & RESULT == libc::BPF_K => Operation::Return(k),
        libc::BPF_MISC if code & MISC == libc::BPF_TAX => Operation::CopyToX,
        libc::BPF_MISC if code & MISC == libc::BPF_TXA => Operation::CopyToA,
        _ => return None,
    })
}

fn load(code: u32, k: u32) -> Option<Operation> {
    let size = Size::of(code & SIZE)?;
    Some(match code & MODE {
        libc::BPF_ABS => Operation::Load { size, offset: k },
        libc::BPF_IND => Operation::LoadIndexed { size, offset: k },
        libc::BPF_IMM => Operation::Set(Register::A, k),
        libc::BPF_MEM => Operation::Fetch(Register::A, word(k)?),
        libc::BPF_LEN => Operation::LoadLength(Register::A),
        _ => return None,
    })
}

/// The number of a word of memory, if it is valid.
fn word(k: u32) -> Option<u32> {
    (k < libc::BPF_MEMWORDS.cast_unsigned()).then_some(k)
}
