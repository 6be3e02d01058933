//! Assembles extended BPF (`Documentation/bpf/standardization/instruction-set.rst` in the kernel's source).

use libbpf_rs::libbpf_sys::{BPF_FUNC_probe_read_kernel, bpf_insn};

use super::context::{Context, Property, memory};
use crate::filter::classic::{Condition, Operand, Register, Size};
use crate::filter::{Reason, TOO_LONG};

/// Register numbers. Calls take arguments from 1 on, return in 0, and preserve 6 to 9.
pub(super) const A: u8 = 7;
pub(super) const X: u8 = 8;
/// Second argument: the offset that [`Assembler::read`] reads from.
pub(super) const OFFSET: u8 = 2;
const RESULT: u8 = 0;
const CONTEXT: u8 = 6;
const STACK: u8 = 10;

/// Offsets below the stack's top: sixteen words of memory, and below them the bytes read of the frame.
const MEMORY: i16 = -64;
const READ: i16 = -72;

// linux/bpf.h, linux/bpf_common.h
const ALU32: u32 = libc::BPF_ALU;
const ALU64: u32 = 0x07;
const JMP32: u32 = 0x06;
const JMP: u32 = libc::BPF_JMP;
const MOV: u32 = 0xb0;
const TO_BIG_ENDIAN: u32 = 0xd0 | 0x08; // BPF_END | BPF_TO_BE
const JNE: u32 = 0x50;
const DOUBLE_WORD: u32 = 0x18; // BPF_DW
const CALL: u32 = 0x80;
const EXIT: u32 = 0x90;

/// Target of a jump.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// The translation of the operation at that index.
    Operation(usize),
    /// Forward over that many instructions.
    Ahead(i16),
    /// The exit that rejects the frame.
    Refuse,
}

/// A function under construction.
pub(super) struct Assembler {
    context: Context,
    code: Vec<bpf_insn>,
    /// Jumps with unresolved distances, by their index.
    jumps: Vec<(usize, Target)>,
}

impl Assembler {
    /// Starts a function: saves the context, and clears `A` and `X`.
    pub(super) fn begin(context: Context) -> Self {
        let mut new = Self { context, code: Vec::new(), jumps: Vec::new() };
        new.push(ALU64 | MOV | libc::BPF_X, [CONTEXT, 1], 0, 0);
        new.set(A, 0);
        new.set(X, 0);
        new
    }

    /// The index of the next instruction.
    pub(super) fn here(&self) -> usize {
        self.code.len()
    }

    /// The complete function, whose operations begin at `starts`.
    pub(super) fn finish(mut self, starts: &[usize]) -> Result<Vec<bpf_insn>, Reason> {
        let refuse = self.here();
        let jumps = std::mem::take(&mut self.jumps);
        if jumps.iter().any(|(_, target)| matches!(target, Target::Refuse)) {
            self.end(0);
        }
        for (at, target) in jumps {
            // All jumps are forward.
            let distance = |to: usize| i16::try_from(to - at - 1).map_err(|_| TOO_LONG);
            self.code[at].off = match target {
                Target::Operation(index) => distance(starts[index])?,
                Target::Ahead(count) => count,
                Target::Refuse => distance(refuse)?,
            };
        }
        Ok(self.code)
    }

    /// Reads from the frame at [`OFFSET`], or rejects the frame if it ends before.
    pub(super) fn read(&mut self, size: Size, to: u8) {
        match self.context.load_bytes() {
            Some(helper) => {
                self.address_of_read(3);
                self.set(4, size.bytes());
                self.call_with_context(helper);
            }
            None => self.read_memory(size),
        }
        self.jumps.push((self.here(), Target::Refuse));
        self.push(JMP | JNE, [RESULT, 0], 0, 0);
        self.push(libc::BPF_LDX | libc::BPF_MEM | size.code(), [to, STACK], READ, 0);
        if size != Size::Byte {
            self.push(ALU32 | TO_BIG_ENDIAN, [to, 0], 0, 8 * size.bytes());
        }
    }

    /// Checks the frame's length, and reads from kernel memory. Returns 0 on success, as the helpers with their own
    /// check.
    fn read_memory(&mut self, size: Size) {
        self.field(3, memory::CAPTURED, libc::BPF_W);
        self.copy(4, OFFSET);
        self.calculate(libc::BPF_ADD, 4, Operand::K(size.bytes()));
        self.jumps.push((self.here(), Target::Refuse));
        self.push(JMP32 | libc::BPF_JGT | libc::BPF_X, [4, 3], 0, 0);
        self.field(3, memory::START, DOUBLE_WORD);
        self.push(ALU64 | libc::BPF_ADD | libc::BPF_X, [3, OFFSET], 0, 0);
        self.address_of_read(1);
        self.set(2, size.bytes());
        self.call(BPF_FUNC_probe_read_kernel);
    }

    /// The register = address on the stack for bytes read.
    fn address_of_read(&mut self, to: u8) {
        self.push(ALU64 | MOV | libc::BPF_X, [to, STACK], 0, 0);
        self.push(ALU64 | libc::BPF_ADD, [to, 0], 0, i32::from(READ).cast_unsigned());
    }

    /// The register = a property of the frame.
    pub(super) fn load_property(&mut self, property: &Property, to: u8) {
        match *property {
            Property::Helper(helper) => {
                self.call_with_context(helper);
                self.copy(to, RESULT);
            }
            Property::Field(at) => self.field(to, at, libc::BPF_W),
            Property::BigEndian(at) => {
                self.field(to, at, libc::BPF_W);
                self.push(ALU32 | TO_BIG_ENDIAN, [to, 0], 0, 16);
            }
        }
    }

    /// The register = a field of the context.
    fn field(&mut self, to: u8, at: i16, size: u32) {
        self.push(libc::BPF_LDX | libc::BPF_MEM | size, [to, CONTEXT], at, 0);
    }

    /// Calls a helper with the context as its first argument.
    fn call_with_context(&mut self, helper: u32) {
        self.push(ALU64 | MOV | libc::BPF_X, [1, CONTEXT], 0, 0);
        self.call(helper);
    }

    /// Calls a helper whose arguments are set.
    fn call(&mut self, helper: u32) {
        self.push(JMP | CALL, [0, 0], 0, helper);
    }

    pub(super) fn fetch(&mut self, to: u8, word: u32) {
        self.push(libc::BPF_LDX | libc::BPF_MEM | libc::BPF_W, [to, STACK], slot(word), 0);
    }

    pub(super) fn store(&mut self, from: u8, word: u32) {
        self.push(libc::BPF_STX | libc::BPF_MEM | libc::BPF_W, [STACK, from], slot(word), 0);
    }

    pub(super) fn set(&mut self, to: u8, value: u32) {
        self.calculate(MOV, to, Operand::K(value));
    }

    pub(super) fn copy(&mut self, to: u8, from: u8) {
        self.push(ALU32 | MOV | libc::BPF_X, [to, from], 0, 0);
    }

    /// The register = the register and the operand, combined by the operation `code`.
    pub(super) fn calculate(&mut self, code: u32, to: u8, operand: Operand) {
        self.with_operand(ALU32 | code, to, operand);
    }

    /// Jumps if the condition holds for the register and the operand.
    pub(super) fn branch(&mut self, condition: Condition, a: u8, b: Operand, target: Target) {
        self.jumps.push((self.here(), target));
        self.with_operand(JMP32 | condition.code(), a, b);
    }

    pub(super) fn jump(&mut self, target: Target) {
        self.jumps.push((self.here(), target));
        self.push(JMP | libc::BPF_JA, [0, 0], 0, 0);
    }

    pub(super) fn end(&mut self, verdict: u32) {
        self.set(RESULT, verdict);
        self.push(JMP | EXIT, [0, 0], 0, 0);
    }

    fn with_operand(&mut self, code: u32, register: u8, operand: Operand) {
        match operand {
            Operand::K(k) => self.push(code | libc::BPF_K, [register, 0], 0, k),
            Operand::X => self.push(code | libc::BPF_X, [register, X], 0, 0),
        }
    }

    /// Appends an instruction with its destination and source.
    fn push(&mut self, code: u32, [to, from]: [u8; 2], offset: i16, immediate: u32) {
        self.code.push(bpf_insn {
            code: u8::try_from(code).expect("the codes above have 8 bits"),
            _bitfield_1: bpf_insn::new_bitfield_1(to, from),
            off: offset,
            imm: immediate.cast_signed(),
            ..bpf_insn::default()
        });
    }
}

pub(super) fn register(register: Register) -> u8 {
    match register {
        Register::A => A,
        Register::X => X,
    }
}

/// Offset of a word of memory on the stack.
fn slot(word: u32) -> i16 {
    MEMORY + i16::try_from(4 * word).expect("there are 16 words")
}
