//! Runs a filter's function in the kernel on frames in memory (`Documentation/bpf/bpf_prog_run.rst` in its source).
#![expect(unsafe_code, reason = "system calls of libbpf")]

use std::ffi::c_void;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys::{self, bpf_insn};

use super::machine::SocketFrame;

/// A filter's function, loaded as a program.
pub(super) struct Loaded(OwnedFd);

/// Min length of the kernel's packets: up to the end of the IPv6 header (`bpf_prog_test_run_skb` of
/// net/bpf/test_run.c).
const MIN_BYTES: usize = 14 + 40;

/// The beginning of `struct __sk_buff` of linux/bpf.h, up to the words that programs may write.
#[repr(C)]
struct Packet {
    fields: [u32; 12],
    words: [u32; 5],
}

/// Turns the kernel's packet into the intended one: truncated, with its tag removed. Its length, and the tag's type
/// and control information, are in the packet's words.
///
/// ```c
/// bpf_skb_change_tail(packet, packet->cb[0], 0);
/// if (packet->cb[1])
///         bpf_skb_vlan_push(packet, packet->cb[1], packet->cb[2]);
/// ```
fn make_packet() -> [bpf_insn; 10] {
    let instruction = |code, to, from, off, imm| bpf_insn {
        code,
        _bitfield_1: bpf_insn::new_bitfield_1(to, from),
        off,
        imm,
        ..bpf_insn::default()
    };
    let copy = |to, from| instruction(0xbf, to, from, 0, 0);
    let word = |to, number: i16| instruction(0x61, to, 1, 48 + 4 * number, 0);
    let call = |function: u32| instruction(0x85, 0, 0, 0, function.cast_signed());
    [
        copy(6, 1),
        word(2, 0),
        instruction(0xb7, 3, 0, 0, 0), // r3 = 0
        call(libbpf_sys::BPF_FUNC_skb_change_tail),
        copy(1, 6),
        word(2, 1),
        word(3, 2),
        instruction(0x15, 2, 0, 1, 0), // over the call if r2 = 0
        call(libbpf_sys::BPF_FUNC_skb_vlan_push),
        copy(1, 6),
    ]
}

impl Loaded {
    pub(super) fn xdp(code: &[bpf_insn]) -> io::Result<Self> {
        // SAFETY: the options are plain data, for which all zeroes is a valid value.
        let mut options: libbpf_sys::bpf_prog_load_opts = unsafe { mem::zeroed() };
        options.expected_attach_type = libbpf_sys::BPF_XDP;
        options.prog_flags = libbpf_sys::BPF_F_XDP_HAS_FRAGS;
        Self::load(libbpf_sys::BPF_PROG_TYPE_XDP, code, options)
    }

    pub(super) fn tc(code: &[bpf_insn]) -> io::Result<Self> {
        // SAFETY: as above.
        let options: libbpf_sys::bpf_prog_load_opts = unsafe { mem::zeroed() };
        let code = [&make_packet(), code].concat();
        Self::load(libbpf_sys::BPF_PROG_TYPE_SCHED_CLS, &code, options)
    }

    fn load(
        kind: libbpf_sys::bpf_prog_type,
        code: &[bpf_insn],
        mut options: libbpf_sys::bpf_prog_load_opts,
    ) -> io::Result<Self> {
        options.sz = size_of_val(&options) as libbpf_sys::size_t;
        // SAFETY: strings, instructions and options outlive the call, and their sizes are passed.
        let fd = unsafe {
            libbpf_sys::bpf_prog_load(
                kind,
                c"passes".as_ptr(),
                c"GPL".as_ptr(),
                code.as_ptr(),
                code.len() as libbpf_sys::size_t,
                &raw mut options,
            )
        };
        if fd < 0 {
            return Err(io::Error::from_raw_os_error(-fd));
        }
        // SAFETY: `fd` was just opened and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(super) fn passes(&self, frame: &[u8]) -> bool {
        self.run(frame, &[])
    }

    /// The same for a packet whose tag the kernel has removed.
    pub(super) fn passes_packet(&self, packet: &SocketFrame) -> bool {
        let [tag_type, tag] = packet.tag.unwrap_or_default();
        let length = u32::try_from(packet.bytes.len()).unwrap();
        let words = [length, tag_type.to_be().into(), tag.into(), 0, 0];
        let mut bytes = packet.bytes.clone();
        bytes.resize(bytes.len().max(MIN_BYTES), 0);
        self.run(&bytes, &[Packet { fields: [0; 12], words }])
    }

    fn run(&self, frame: &[u8], context: &[Packet]) -> bool {
        // SAFETY: the options are plain data, for which all zeroes is a valid value.
        let mut options: libbpf_sys::bpf_test_run_opts = unsafe { mem::zeroed() };
        options.sz = size_of_val(&options) as libbpf_sys::size_t;
        options.data_in = frame.as_ptr().cast();
        options.data_size_in = u32::try_from(frame.len()).unwrap();
        if !context.is_empty() {
            options.ctx_in = context.as_ptr().cast::<c_void>();
            options.ctx_size_in = u32::try_from(size_of_val(context)).unwrap();
        }
        options.repeat = 1;
        // SAFETY: the options, the frame and the context outlive the call.
        let result =
            unsafe { libbpf_sys::bpf_prog_test_run_opts(self.0.as_raw_fd(), &raw mut options) };
        assert_eq!(result, 0, "{} bytes", frame.len());
        assert!(options.retval <= 1, "{}", options.retval);
        options.retval == 1
    }
}
