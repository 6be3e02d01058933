//! Calls of libbpf that libbpf-rs lacks.
#![expect(unsafe_code, reason = "calls with pointers")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use libbpf_rs::libbpf_sys::{self, bpf_test_run_opts};

/// Attaches an XDP program to the interface with this index in the calling thread's namespace, for as long as the
/// returned link is open.
pub(super) fn attach_xdp(program: BorrowedFd<'_>, interface: i32) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers, and a null pointer, which means "no options".
    let link = unsafe {
        libbpf_sys::bpf_link_create(
            program.as_raw_fd(),
            interface,
            libbpf_sys::BPF_XDP,
            ptr::null(),
        )
    };
    check(link)?;
    // SAFETY: the call succeeded, so the descriptor is open and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(link) })
}

/// Runs an XDP program on copies of `frame` that become real packets (`BPF_F_TEST_XDP_LIVE_FRAMES`): `repeat` times
/// in batches of `batch`. `context` is the start of its struct `xdp_md`.
pub(super) fn run_on_live_frames(
    program: BorrowedFd<'_>,
    frame: &[u8],
    context: &[u32],
    repeat: u32,
    batch: u32,
) -> io::Result<()> {
    let too_many = |_| io::Error::from(io::ErrorKind::InvalidInput);
    let size = |bytes: usize| u32::try_from(bytes).map_err(too_many);
    let mut options = bpf_test_run_opts {
        sz: size_of::<bpf_test_run_opts>() as libbpf_sys::size_t,
        data_in: frame.as_ptr().cast(),
        data_size_in: size(frame.len())?,
        ctx_in: context.as_ptr().cast(),
        ctx_size_in: size(size_of_val(context))?,
        repeat: i32::try_from(repeat).map_err(too_many)?,
        flags: libbpf_sys::BPF_F_TEST_XDP_LIVE_FRAMES,
        batch_size: batch,
        ..bpf_test_run_opts::default()
    };
    // SAFETY: the options and both buffers in them are alive for the call, and their sizes are passed; the kernel
    // only reads the buffers.
    check(unsafe { libbpf_sys::bpf_prog_test_run_opts(program.as_raw_fd(), &raw mut options) })
}

/// libbpf returns the negative error number.
fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::from_raw_os_error(-result)) } else { Ok(()) }
}
