//! Rewrites a program for the kernel's packets, so that its result is the same as for the bytes on the wire.
//!
//! The kernel removes the outer VLAN tag from a frame before a socket's filter or a tc program sees it, and
//! provides the tag on request (linux/filter.h: `SKF_AD_VLAN_*`). So the program is split in two: the original for
//! untagged frames, and one with adjusted offsets for frames whose tag was removed.
//!
//! The kernel also interprets reads after the frame's end differently from libpcap: negative offsets request other
//! data than the frame's bytes, and the sum of `X` and an offset wraps around. Such loads reject the frame here, as
//! in libpcap.

use super::Reason;
use super::classic::{Condition, Operand, Operation, Register, Size};
use super::edit::{append, splice};
use super::reach::remove_unreachable_with_tag;
use crate::receiver::TAG_BYTES;

/// Offset of the tag in a frame: after two addresses.
const TAG: u32 = 12;
/// Offset of the bytes after the tag.
const AFTER: u32 = TAG + TAG_BYTES;
/// Longer than any frame. The sum of two such numbers is not negative as a signed number.
const FRAME_LIMIT: u32 = 1 << 20;

/// The program for sockets, which keeps `snaplen` bytes of each frame that passes.
pub(super) fn for_socket(program: &[Operation], snaplen: u32) -> Result<Vec<Operation>, Reason> {
    check(program)?;
    for_packets(cut(program, snaplen))
}

/// The same for frames without Ethernet header, which have no tags.
pub(super) fn for_socket_without_tags(
    program: &[Operation],
    snaplen: u32,
) -> Result<Vec<Operation>, Reason> {
    check(program)?;
    rewrite(cut(program, snaplen), |operation| Ok(vec![operation]))
}

/// The same for packets without their link header, where the program is for frames with a cooked header (SLL2).
pub(super) fn for_socket_without_link_header(
    program: &[Operation],
    snaplen: u32,
) -> Result<Vec<Operation>, Reason> {
    check(program)?;
    rewrite(cut(program, snaplen), adjust_for_cooked)
}

/// The program that keeps `snaplen` bytes of a frame that passes.
fn cut(program: &[Operation], snaplen: u32) -> Vec<Operation> {
    let cut = |operation: &Operation| match *operation {
        Operation::Return(bytes) if bytes > 0 => Operation::Return(snaplen),
        other => other,
    };
    program.iter().map(cut).collect()
}

/// The program for the kernel's packets.
pub(super) fn for_packets(program: Vec<Operation>) -> Result<Vec<Operation>, Reason> {
    let mut tagged = program.clone();
    remove_unreachable_with_tag(&mut tagged);
    let tagged = rewrite(tagged, adjust_for_tag)?;
    let untagged = rewrite(program, |operation| Ok(vec![operation]))?;

    let mut both = vec![
        ancillary(libc::SKF_AD_VLAN_TAG_PRESENT),
        Operation::Branch { condition: Condition::Equal, operand: Operand::K(0), yes: 3, no: 2 },
        Operation::Jump { to: 3 + untagged.len() },
    ];
    append(&mut both, untagged);
    append(&mut both, vec![Operation::Set(Register::A, 0)]); // the initial state
    append(&mut both, tagged);
    Ok(both)
}

/// Rejects programs with shifts by 32 and more bits: in the kernel's machine for sockets, their result depends on
/// the processor.
fn check(program: &[Operation]) -> Result<(), Reason> {
    let shifts = |operation: &Operation| {
        matches!(
            operation,
            Operation::Calculate { code: libc::BPF_LSH | libc::BPF_RSH, operand: Operand::X }
        )
    };
    if program.iter().any(shifts) { Err("it shifts by a number from the packet") } else { Ok(()) }
}

/// Replaces each instruction by those that `replace` returns. Loads that could read outside the frame reject it.
fn rewrite(
    mut program: Vec<Operation>,
    replace: impl Fn(Operation) -> Result<Vec<Operation>, Reason>,
) -> Result<Vec<Operation>, Reason> {
    // Without these, `X` is at most a header's length.
    let sets_any = |operation: &Operation| {
        matches!(
            operation,
            Operation::CopyToX | Operation::Set(Register::X, _) | Operation::Fetch(Register::X, _)
        )
    };
    let guard = program.iter().any(sets_any);
    // From the end, so that the remaining instructions keep their place.
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

/// The equivalent of `operation` on a frame without its tag.
fn adjust_for_tag(operation: Operation) -> Result<Vec<Operation>, Reason> {
    const ACROSS: Reason = "it reads across the border of a VLAN tag";
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

/// The equivalent of `operation` on a packet without its cooked header (`ring/cooked.rs`), the fields of which the kernel
/// provides elsewhere.
fn adjust_for_cooked(operation: Operation) -> Result<Vec<Operation>, Reason> {
    const HEADER: u32 = 20;
    const UNKNOWN: Reason = "it reads fields of the link header that the kernel does not provide";
    let add = Operation::Calculate { code: libc::BPF_ADD, operand: Operand::K(HEADER) };
    Ok(match operation {
        Operation::Load { size, offset } if offset >= HEADER => {
            vec![Operation::Load { size, offset: offset - HEADER }]
        }
        Operation::Load { size: Size::Half, offset: 0 } => vec![ancillary(libc::SKF_AD_PROTOCOL)],
        Operation::Load { size: Size::Word, offset: 4 } => vec![ancillary(libc::SKF_AD_IFINDEX)],
        Operation::Load { size: Size::Half, offset: 8 } => vec![ancillary(libc::SKF_AD_HATYPE)],
        Operation::Load { size: Size::Byte, offset: 10 } => vec![ancillary(libc::SKF_AD_PKTTYPE)],
        Operation::LoadIndexed { size, offset } if offset >= HEADER => {
            vec![Operation::LoadIndexed { size, offset: offset - HEADER }]
        }
        Operation::LoadHeaderLength { offset } if offset >= HEADER => {
            vec![Operation::LoadHeaderLength { offset: offset - HEADER }]
        }
        Operation::LoadLength(Register::A) => vec![operation, add],
        Operation::Load { .. }
        | Operation::LoadIndexed { .. }
        | Operation::LoadHeaderLength { .. }
        | Operation::LoadLength(Register::X) => return Err(UNKNOWN),
        other => vec![other],
    })
}

/// Loads the kernel's data about a frame.
fn ancillary(what: libc::c_int) -> Operation {
    Operation::Load { size: Size::Half, offset: (libc::SKF_AD_OFF + what).cast_unsigned() }
}
