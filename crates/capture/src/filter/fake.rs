//! Synthetic programs, as from fuzzers, which libpcap would not compile: they are refused, or translated to every
//! form.

use libc::sock_filter;

use super::classic::{decode, encode};
use super::ebpf::{Context, translate};
use super::tagged::{for_packets, for_socket};

/// Codes that libpcap uses, and two others (linux/bpf_common.h, linux/filter.h).
const CODES: [u16; 43] = [
    0x00, 0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x60,
    0x80, // A = a number, bytes, memory, length
    0x01, 0x61, 0x81, 0xb1, // X likewise
    0x02, 0x03, // memory = A or X
    0x04, 0x0c, 0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3c, 0x44, 0x4c, 0x54,
    0x5c, // A = A op operand
    0x64, 0x6c, 0x74, 0x7c, 0x84, 0x94, 0xa4, // the same: shifts, -A, the rest
    0x05, 0x15, 0x1d, 0x25, 0x35, 0x45, // jumps
    0x06, 0x16, // verdicts: a number, and A
    0xff,
];

/// Reads each eight bytes as an instruction, and translates the program to every form.
pub(crate) fn try_program(bytes: &[u8]) {
    let mut program: Vec<_> = bytes.chunks_exact(8).map(instruction).collect();
    program.extend([1, 0].map(|k| sock_filter { code: 0x06, jt: 0, jf: 0, k }));
    let Ok(operations) = decode(&program) else { return };
    if let Ok(encoded) = encode(&operations) {
        assert_eq!(decode(&encoded).as_ref(), Ok(&operations));
    }
    let _ = for_socket(&operations, 96).and_then(|program| encode(&program));
    let _ = translate(&operations, Context::Xdp);
    for context in [Context::Packet, Context::Memory] {
        let packets = for_packets(operations.clone());
        let _ = packets.and_then(|program| translate(&program, context));
    }
}

/// An instruction. Half of its numbers are small, because large ones are rarely valid.
fn instruction(bytes: &[u8]) -> sock_filter {
    let number = u32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]);
    sock_filter {
        code: CODES[usize::from(bytes[0]) % CODES.len()],
        jt: bytes[1] >> (bytes[3] % 8),
        jf: bytes[2] >> (bytes[3] % 8),
        k: number >> (bytes[3] / 8),
    }
}
