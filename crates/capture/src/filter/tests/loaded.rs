//! Runs a filter's function in the kernel on frames that are only in memory
//! (`Documentation/bpf/bpf_prog_run.rst` in its source).
#![expect(unsafe_code, reason = "system calls of libbpf's")]

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libbpf_rs::libbpf_sys::{self, bpf_insn};

/// A filter's function, loaded as an XDP program of its own.
pub(super) struct Loaded(OwnedFd);

impl Loaded {
    pub(super) fn load(code: &[bpf_insn]) -> io::Result<Self> {
        // SAFETY: the options are plain data, for which all zeroes is a valid value.
        let mut options: libbpf_sys::bpf_prog_load_opts = unsafe { mem::zeroed() };
        options.sz = size_of_val(&options) as libbpf_sys::size_t;
        options.expected_attach_type = libbpf_sys::BPF_XDP;
        options.prog_flags = libbpf_sys::BPF_F_XDP_HAS_FRAGS;
        // SAFETY: strings, instructions and options outlive the call, and their sizes are passed.
        let fd = unsafe {
            libbpf_sys::bpf_prog_load(
                libbpf_sys::BPF_PROG_TYPE_XDP,
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
        // SAFETY: the options are plain data, for which all zeroes is a valid value.
        let mut options: libbpf_sys::bpf_test_run_opts = unsafe { mem::zeroed() };
        options.sz = size_of_val(&options) as libbpf_sys::size_t;
        options.data_in = frame.as_ptr().cast();
        options.data_size_in = u32::try_from(frame.len()).unwrap();
        options.repeat = 1;
        // SAFETY: the options and the frame outlive the call.
        let result =
            unsafe { libbpf_sys::bpf_prog_test_run_opts(self.0.as_raw_fd(), &raw mut options) };
        assert_eq!(result, 0, "{} bytes", frame.len());
        assert!(options.retval <= 1, "{}", options.retval);
        options.retval == 1
    }
}
