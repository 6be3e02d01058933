//! Translates classic BPF into the BPF function `passes` of an XDP, tc or tracing program (`bpf/filter.h`). The
//! kernel has no such translation.
//!
//! The frame is read through a helper, because it may be in fragments; the helper also checks each read against the
//! frame's end. All arithmetic is 32-bit, as in classic BPF.

mod assembler;
mod context;

use libbpf_rs::libbpf_sys::bpf_insn;

use self::assembler::{A, Assembler, OFFSET, Target, X, register};
use super::Reason;
use super::classic::{Condition, Operand, Operation, Size};
pub(super) use context::Context;

/// An offset beyond the end of any frame, including merged frames (`GSO_MAX_SIZE` of linux/netdevice.h). The sum of
/// two such offsets does not wrap around.
const OUTSIDE: u32 = 0x10_0000;

/// The function: it takes the `context` and returns 1 for a frame that passes, 0 for another. Fails if a jump
/// exceeds 16 bits.
pub(super) fn translate(program: &[Operation], context: Context) -> Result<Vec<bpf_insn>, Reason> {
    let mut out = Assembler::begin(context);
    let mut starts = vec![0; program.len()];
    // The kernel rejects unreachable instructions.
    let mut reached = vec![false; program.len()];
    reached[0] = true;
    for (at, operation) in program.iter().enumerate() {
        if reached[at] {
            operation.next(at).for_each(|to| reached[to] = true);
            starts[at] = out.here();
            translate_one(&mut out, context, at, *operation);
        }
    }
    out.finish(&starts)
}

fn translate_one(out: &mut Assembler, context: Context, at: usize, operation: Operation) {
    match operation {
        Operation::Load { size, offset } => match context.special(size, offset) {
            Some(property) => out.load_property(&property, A),
            None => {
                out.set(OFFSET, offset.min(OUTSIDE));
                out.read(size, A);
            }
        },
        Operation::LoadIndexed { size, offset } => {
            out.branch(Condition::GreaterOrEqual, X, Operand::K(OUTSIDE), Target::Refuse);
            out.copy(OFFSET, X);
            out.calculate(libc::BPF_ADD, OFFSET, Operand::K(offset.min(OUTSIDE)));
            out.read(size, A);
        }
        Operation::LoadHeaderLength { offset } => {
            out.set(OFFSET, offset.min(OUTSIDE));
            out.read(Size::Byte, X);
            out.calculate(libc::BPF_AND, X, Operand::K(0x0f));
            out.calculate(libc::BPF_LSH, X, Operand::K(2));
        }
        Operation::LoadLength(to) => out.load_property(&context.length(), register(to)),
        Operation::Set(to, value) => out.set(register(to), value),
        Operation::Fetch(to, word) => out.fetch(register(to), word),
        Operation::Store(from, word) => out.store(register(from), word),
        Operation::Calculate { code, operand } => calculate(out, code, operand),
        Operation::Negate => out.calculate(libc::BPF_NEG, A, Operand::K(0)),
        Operation::Jump { to } => out.jump(Target::Operation(to)),
        Operation::Branch { condition, operand, yes, no } => {
            out.branch(condition, A, operand, Target::Operation(yes));
            if no != at + 1 {
                out.jump(Target::Operation(no));
            }
        }
        Operation::Return(bytes) => out.end(u32::from(bytes > 0)),
        Operation::CopyToX => out.copy(X, A),
        Operation::CopyToA => out.copy(A, X),
    }
}

/// Computes `A` and the operand, with libpcap's result where it is undefined in C: a division by zero rejects the
/// frame, and a shift by 32 or more results in 0.
fn calculate(out: &mut Assembler, code: u32, operand: Operand) {
    match (code, operand) {
        (libc::BPF_DIV | libc::BPF_MOD, Operand::X) => {
            out.branch(Condition::Equal, X, Operand::K(0), Target::Refuse);
        }
        (libc::BPF_LSH | libc::BPF_RSH, Operand::X) => {
            out.branch(Condition::Greater, X, Operand::K(31), Target::Ahead(1));
            out.jump(Target::Ahead(1));
            out.set(A, 0); // and shift that by X modulo 32
        }
        _ => {}
    }
    out.calculate(code, A, operand);
}
