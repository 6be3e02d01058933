//! The kernel's machine for socket filters, as far as wirestamp's programs use it.

use crate::filter::classic::{Operand, Operation, Register};

/// A frame as seen by a socket's filter.
pub(super) struct SocketFrame {
    pub(super) bytes: Vec<u8>,
    /// Type and control information of the removed tag.
    pub(super) tag: Option<[u16; 2]>,
}

impl SocketFrame {
    pub(super) fn of(wire: &[u8]) -> Self {
        let half = |at: usize| u16::from_be_bytes([wire[at], wire[at + 1]]);
        if wire.len() >= 18 && matches!(half(12), 0x8100 | 0x88a8) {
            let bytes = [&wire[..12], &wire[16..]].concat();
            return Self { bytes, tag: Some([half(12), half(14)]) };
        }
        Self { bytes: wire.to_vec(), tag: None }
    }

    /// A load as in the kernel, in the range that a program may use.
    fn load(&self, offset: u32, bytes: u32) -> Option<u32> {
        let special = |what: libc::c_int| (libc::SKF_AD_OFF + what).cast_unsigned();
        let [tag_type, tag] = self.tag.unwrap_or_default().map(u32::from);
        if offset == special(libc::SKF_AD_VLAN_TAG_PRESENT) {
            return Some(self.tag.is_some().into());
        } else if offset == special(libc::SKF_AD_VLAN_TPID) {
            return Some(tag_type);
        } else if offset == special(libc::SKF_AD_VLAN_TAG) {
            return Some(tag);
        }
        assert!(offset.cast_signed() >= 0, "the kernel interprets {offset:#x} differently");
        let (start, bytes) = (offset as usize, bytes as usize);
        let bytes = self.bytes.get(start..start + bytes)?;
        Some(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    fn length(&self) -> u32 {
        u32::try_from(self.bytes.len()).unwrap()
    }

    /// Runs the program; returns the number of bytes to keep.
    pub(super) fn run(&self, program: &[Operation]) -> u32 {
        self.verdict(program).unwrap_or(0)
    }

    fn verdict(&self, program: &[Operation]) -> Option<u32> {
        let (mut a, mut x, mut memory, mut at) = (0_u32, 0_u32, [0; 16], 0);
        loop {
            let operation = program[at];
            at += 1;
            match operation {
                Operation::Load { size, offset } => a = self.load(offset, size.bytes())?,
                Operation::LoadIndexed { size, offset } => {
                    a = self.load(x.wrapping_add(offset), size.bytes())?;
                }
                Operation::LoadHeaderLength { offset } => x = (self.load(offset, 1)? & 0xf) * 4,
                Operation::LoadLength(Register::A) => a = self.length(),
                Operation::LoadLength(Register::X) => x = self.length(),
                Operation::Set(Register::A, k) => a = k,
                Operation::Set(Register::X, k) => x = k,
                Operation::Fetch(Register::A, word) => a = memory[word as usize],
                Operation::Fetch(Register::X, word) => x = memory[word as usize],
                Operation::Store(Register::A, word) => memory[word as usize] = a,
                Operation::Store(Register::X, word) => memory[word as usize] = x,
                Operation::Calculate { code, operand } => {
                    a = calculate(code, a, if let Operand::K(k) = operand { k } else { x })?;
                }
                Operation::Negate => a = a.wrapping_neg(),
                Operation::Jump { to } => at = to,
                Operation::Branch { condition, operand, yes, no } => {
                    let b = if let Operand::K(k) = operand { k } else { x };
                    at = if condition.holds(a, b) { yes } else { no };
                }
                Operation::Return(bytes) => return Some(bytes),
                Operation::CopyToX => x = a,
                Operation::CopyToA => a = x,
            }
        }
    }
}

fn calculate(code: u32, a: u32, b: u32) -> Option<u32> {
    Some(match code {
        libc::BPF_ADD => a.wrapping_add(b),
        libc::BPF_SUB => a.wrapping_sub(b),
        libc::BPF_MUL => a.wrapping_mul(b),
        libc::BPF_DIV => a.checked_div(b)?,
        libc::BPF_MOD => a.checked_rem(b)?,
        libc::BPF_AND => a & b,
        libc::BPF_OR => a | b,
        libc::BPF_XOR => a ^ b,
        libc::BPF_LSH => a.checked_shl(b).unwrap(),
        libc::BPF_RSH => a.checked_shr(b).unwrap(),
        _ => panic!("unknown arithmetic {code:#x}"),
    })
}
