//! Removes the parts of a program that a tagged frame cannot reach, such as all of `ip` without a `vlan` before it.
//! Those parts read headers at the position of the tag.

use super::classic::{Operand, Operation, Register, Size};
use super::edit::splice;

/// First two bytes of the tags that the kernel removes from a frame (linux/if_vlan.h: `eth_type_vlan`).
const TAG_TYPES: [u32; 2] = [0x8100, 0x88a8];
/// Their offset: after two addresses.
const TAG_TYPE_OFFSET: u32 = 12;

/// The known content of `A`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum A {
    TagType,
    Anything,
}

/// Removes the parts that frames with such a tag do not reach.
pub(super) fn remove_unreachable_with_tag(program: &mut Vec<Operation>) {
    let mut reached = vec![None; program.len()];
    reached[0] = Some(A::Anything);
    for at in 0..program.len() {
        let Some(before) = reached[at] else { continue };
        program[at] = decide(program[at], before);
        let after = after(program[at], before);
        for to in program[at].next(at) {
            let content = *reached[to].get_or_insert(after);
            reached[to] = Some(if content == after { after } else { A::Anything });
        }
    }
    for at in (0..program.len()).rev().filter(|&at| reached[at].is_none()) {
        splice(program, at, &[]);
    }
}

/// Replaces a branch by a jump if it has the same result for every tag.
fn decide(operation: Operation, a: A) -> Operation {
    match operation {
        Operation::Branch { condition, operand: Operand::K(k), yes, no } if a == A::TagType => {
            match TAG_TYPES.map(|tag_type| condition.holds(tag_type, k)) {
                [true, true] => Operation::Jump { to: yes },
                [false, false] => Operation::Jump { to: no },
                _ => operation,
            }
        }
        other => other,
    }
}

/// The known content of `A` after an instruction.
fn after(operation: Operation, before: A) -> A {
    match operation {
        Operation::Load { size: Size::Half, offset: TAG_TYPE_OFFSET } => A::TagType,
        Operation::Jump { .. }
        | Operation::Branch { .. }
        | Operation::Store(..)
        | Operation::CopyToX
        | Operation::LoadHeaderLength { .. }
        | Operation::LoadLength(Register::X)
        | Operation::Set(Register::X, _)
        | Operation::Fetch(Register::X, _) => before,
        _ => A::Anything,
    }
}
