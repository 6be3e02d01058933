//! Applies a program to bytes in memory, by libpcap: pcap_offline_filter(3PCAP).
#![expect(unsafe_code, reason = "a call of libpcap, which the pcap crate links")]

use std::ffi::c_int;

use pcap::{BpfInstruction, BpfProgram, PacketHeader};

/// `struct bpf_program` (pcap/bpf.h).
#[repr(C)]
struct Program {
    length: u32,
    instructions: *const BpfInstruction,
}

unsafe extern "C" {
    fn pcap_offline_filter(
        program: *const Program,
        header: *const PacketHeader,
        bytes: *const u8,
    ) -> c_int;
}

/// Whether a frame of `length` bytes on the wire passes, of which `captured` is the start. `BpfProgram::filter` of the `pcap`
/// crate passes the number of captured bytes as the length, so `greater`, `less` and `len` differ from tcpdump's.
///
/// A frame with more bytes than a `u32` counts does not pass.
pub(super) fn passes(program: &BpfProgram, captured: &[u8], length: u32) -> bool {
    let instructions = program.get_instructions();
    let Ok(caplen) = u32::try_from(captured.len()) else { return false };
    let Ok(count) = u32::try_from(instructions.len()) else { return false };
    let program = Program { length: count, instructions: instructions.as_ptr() };
    let ts = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let header = PacketHeader { ts, caplen, len: length };
    // SAFETY: libpcap compiled the instructions, and their number is that of the slice. It reads at most `caplen` bytes of
    // the frame, and keeps no pointer.
    unsafe { pcap_offline_filter(&raw const program, &raw const header, captured.as_ptr()) > 0 }
}
