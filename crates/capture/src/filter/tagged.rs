//! Rewrites a program for the kernel's packets, so that it says of a frame what it would say of the
//! bytes on the wire.
//!
//! The kernel takes the outer VLAN tag out of a frame before it shows the frame to a socket's
//! filter or to a tc program, and gives the tag on request (linux/filter.h: `SKF_AD_VLAN_*`). So
//! the program becomes two: one for frames without a tag, as it is, and one for frames whose tag
//! was taken, which finds each byte where it is now.
//!
//! The kernel also means something of its own where libpcap reads behind the frame: an offset that
//! is negative with a sign asks for other things than the frame's bytes, and the sum of `X` and an
//! offset wraps around. Such loads refuse the frame here, as they do in libpcap.

use super::Reason;
use super::classic::{Condition, Operand, Operation, Register, Size};
use super::edit::{append, splice};
use super::reach::drop_what_tags_rule_out;
use crate::vlan::TAG_BYTES;

/// Where the tag stands in a frame: after two addresses.
const TAG: u32 = 12;
/// Where the frame goes on after the tag.
const AFTER: u32 = TAG + TAG_BYTES;
/// No frame is as long, and no sum of two such numbers is negative with a sign.
const FRAME_LIMIT: u32 = 1 << 20;

/// The program for sockets, which keeps `snaplen` bytes of each frame that passes.
pub(super) fn for_socket(program: &[Operation], snaplen: u32) -> Result<Vec<Operation>, Reason> {
    check(program)?;
    let cut = |operation: &Operation| match *operation {
        Operation::Return(bytes) if bytes > 0 => Operation::Return(snaplen),
        other => other,
    };
    for_packets(program.iter().map(cut).collect())
}

/// The program for packets of the kernel's.
pub(super) fn for_packets(program: Vec<Operation>) -> Result<Vec<Operation>, Reason> {
    let mut tagged = program.clone();
    drop_what_tags_rule_out(&mut tagged);
    let tagged = rewrite(tagged, find_behind_tag)?;
    let untagged = rewrite(program, |operation| Ok(vec![operation]))?;

    let mut both = vec![
        ancillary(libc::SKF_AD_VLAN_TAG_PRESENT),
        Operation::Branch { condition: Condition::Equal, operand: Operand::K(0), yes: 3, no: 2 },
        Operation::Jump { to: 3 + untagged.len() },
    ];
    append(&mut both, untagged);
    append(&mut both, vec![Operation::Set(Register::A, 0)]); // as programs begin
    append(&mut both, tagged);
    Ok(both)
}

/// Refuses what the kernel's machine for sockets does in another way: shifts by 32 and more bits
/// depend on the processor there.
fn check(program: &[Operation]) -> Result<(), Reason> {
    let shifts = |operation: &Operation| {
        matches!(
            operation,
            Operation::Calculate { code: libc::BPF_LSH | libc::BPF_RSH, operand: Operand::X }
        )
    };
    if program.iter().any(shifts) { Err("it shifts by a number from the packet") } else { Ok(()) }
}

/// Replaces each instruction by those that `replace` gives for it at its place, and has loads that
/// could leave the frame refuse it.
fn rewrite(
    mut program: Vec<Operation>,
    replace: impl Fn(Operation) -> Result<Vec<Operation>, Reason>,
) -> Result<Vec<Operation>, Reason> {
    // Without these, `X` is what fits a header's length, and no large number.
    let sets_any = |operation: &Operation| {
        matches!(
            operation,
            Operation::CopyToX | Operation::Set(Register::X, _) | Operation::Fetch(Register::X, _)
        )
    };
    let guard = program.iter().any(sets_any);
    // From the end, so that what is still to come keeps its place.
    for at in (0..program.len()).rev() {
        match program[at] {
            Operation::Load { offset, .. }
            | Operation::LoadIndexed { offset, .. }
            | Operation::LoadHeaderLength { offset }
                if offset >= FRAME_LIMIT =>
            {
                splice(&mut program, at, &[Operation::Return(0)]);
            }
            operation => {
                let replacement = replace(operation)?;
                splice(&mut program, at, &replacement);
                if guard && matches!(operation, Operation::LoadIndexed { .. }) {
                    let load = guarded(at, program[at]);
                    splice(&mut program, at, &load);
                }
            }
        }
    }
    Ok(program)
}

/// A load at `X + offset`, for any `X`. It may use `A`, which the load overwrites.
fn guarded(at: usize, load: Operation) -> [Operation; 4] {
    let (condition, operand) = (Condition::GreaterOrEqual, Operand::K(FRAME_LIMIT));
    let branch = Operation::Branch { condition, operand, yes: at + 2, no: at + 3 };
    [Operation::CopyToA, branch, Operation::Return(0), load]
}

/// What does on a frame without its tag what `operation` does on the whole frame.
fn find_behind_tag(operation: Operation) -> Result<Vec<Operation>, Reason> {
    const ACROSS: Reason = "it reads across the edge of a VLAN tag";
    let shift = |code, bits| Operation::Calculate { code, operand: Operand::K(bits) };
    let (tag_type, tag) = (ancillary(libc::SKF_AD_VLAN_TPID), ancillary(libc::SKF_AD_VLAN_TAG));
    let first = |half| vec![half, shift(libc::BPF_RSH, 8)];
    let second = |half| vec![half, shift(libc::BPF_AND, 0xff)];
    Ok(match operation {
        Operation::Load { size, offset } if offset >= AFTER => {
            vec![Operation::Load { size, offset: offset - TAG_BYTES }]
        }
        Operation::Load { size, offset } if offset + size.bytes() <= TAG => vec![operation],
        Operation::Load { size: Size::Half, offset: 12 } => vec![tag_type],
        Operation::Load { size: Size::Half, offset: 14 } => vec![tag],
        Operation::Load { size: Size::Byte, offset: 12 } => first(tag_type),
        Operation::Load { size: Size::Byte, offset: 13 } => second(tag_type),
        Operation::Load { size: Size::Byte, offset: 14 } => first(tag),
        Operation::Load { size: Size::Byte, offset: 15 } => second(tag),
        Operation::LoadIndexed { size, offset } if offset >= AFTER => {
            vec![Operation::LoadIndexed { size, offset: offset - TAG_BYTES }]
        }
        Operation::LoadHeaderLength { offset } if offset >= AFTER => {
            vec![Operation::LoadHeaderLength { offset: offset - TAG_BYTES }]
        }
        Operation::LoadHeaderLength { offset } if offset < TAG => vec![operation],
        Operation::LoadLength(Register::A) => vec![operation, shift(libc::BPF_ADD, TAG_BYTES)],
        Operation::Load { .. }
        | Operation::LoadIndexed { .. }
        | Operation::LoadHeaderLength { .. }
        | Operation::LoadLength(Register::X) => return Err(ACROSS),
        other => vec![other],
    })
}

/// Reads what the kernel knows beside the frame.
fn ancillary(what: libc::c_int) -> Operation {
    Operation::Load { size: Size::Half, offset: (libc::SKF_AD_OFF + what).cast_unsigned() }
}
