//! Classic BPF: the machine that libpcap compiles filters for. It has an accumulator `A` and an index `X`, both
//! initially zero, sixteen words of memory, and unsigned 32-bit arithmetic (`Documentation/networking/filter.rst`
//! in the kernel's source).

mod decode;
mod encode;

pub(super) use decode::decode;
pub(super) use encode::encode;

/// One instruction. Jump targets are indexes into the program, not distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// `A` = the big-endian number of `size` bytes at `offset` of the frame. This load and the next two reject a frame
    /// that is too short.
    Load { size: Size, offset: u32 },
    /// `A` = the same at `X + offset`.
    LoadIndexed { size: Size, offset: u32 },
    /// `X` = four times the low half of the byte at `offset`: the length of an IPv4 header.
    LoadHeaderLength { offset: u32 },
    /// The register = the frame's length on the wire.
    LoadLength(Register),
    /// The register = a number.
    Set(Register, u32),
    /// The register = a word of memory.
    Fetch(Register, u32),
    /// A word of memory = the register.
    Store(Register, u32),
    /// `A` = `A` and the operand, combined by `BPF_ADD` to `BPF_XOR` (linux/bpf_common.h).
    Calculate { code: u32, operand: Operand },
    /// `A` = 0 - `A`.
    Negate,
    /// Jumps.
    Jump { to: usize },
    /// Compares `A` with the operand and jumps to one of two targets.
    Branch { condition: Condition, operand: Operand, yes: usize, no: usize },
    /// Ends the program: number of bytes to keep, 0 for a frame that does not pass.
    Return(u32),
    /// `X` = `A`.
    CopyToX,
    /// `A` = `X`.
    CopyToA,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    A,
    X,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    K(u32),
    X,
}

/// Number of bytes of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    Byte = 1,
    Half = 2,
    Word = 4,
}

/// Comparison of `A` with an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    Equal,
    Greater,
    GreaterOrEqual,
    SharesBits,
}

impl Operation {
    /// Indexes of the possible next operations, for an operation at `at`.
    pub(super) fn next(self, at: usize) -> impl Iterator<Item = usize> {
        let [one, other] = match self {
            Self::Return(_) => [None, None],
            Self::Jump { to } => [Some(to), None],
            Self::Branch { yes, no, .. } => [Some(yes), Some(no)],
            _ => [Some(at + 1), None],
        };
        one.into_iter().chain(other)
    }
}

impl Size {
    const CODES: [(Self, u32); 3] =
        [(Self::Byte, libc::BPF_B), (Self::Half, libc::BPF_H), (Self::Word, libc::BPF_W)];

    /// The size for `bits` in an instruction, classic or extended.
    fn of(bits: u32) -> Option<Self> {
        value_of(&Self::CODES, bits)
    }

    pub(super) fn bytes(self) -> u32 {
        self as u32
    }

    /// Its bits in an instruction.
    pub(super) fn code(self) -> u32 {
        code(&Self::CODES, self)
    }
}

impl Condition {
    const CODES: [(Self, u32); 4] = [
        (Self::Equal, libc::BPF_JEQ),
        (Self::Greater, libc::BPF_JGT),
        (Self::GreaterOrEqual, libc::BPF_JGE),
        (Self::SharesBits, libc::BPF_JSET),
    ];

    /// The condition for `bits` in an instruction, classic or extended.
    fn of(bits: u32) -> Option<Self> {
        value_of(&Self::CODES, bits)
    }

    pub(super) fn holds(self, a: u32, b: u32) -> bool {
        match self {
            Self::Equal => a == b,
            Self::Greater => a > b,
            Self::GreaterOrEqual => a >= b,
            Self::SharesBits => a & b != 0,
        }
    }

    /// Its bits in an instruction.
    pub(super) fn code(self) -> u32 {
        code(&Self::CODES, self)
    }
}

/// The bits for `value`.
fn code<T: Copy + PartialEq>(codes: &[(T, u32)], value: T) -> u32 {
    codes.iter().find(|(candidate, _)| *candidate == value).map_or(0, |&(_, code)| code)
}

/// The value for `bits`.
fn value_of<T: Copy>(codes: &[(T, u32)], bits: u32) -> Option<T> {
    codes.iter().find(|(_, code)| *code == bits).map(|&(value, _)| value)
}
