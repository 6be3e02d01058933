//! Transmit timestamps: `Documentation/networking/timestamping.rst`.

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use libc::{c_uint, c_void};

use super::interface::{Details, ask};
use super::set;

/// Has the kernel report the transmit stamps `kinds` (`SOF_TIMESTAMPING_TX_*`) on the socket's
/// error queue, each with the number of the packet, counted from 0, and without the packet.
/// A software stamp comes even where a hardware stamp of the same packet does.
pub(crate) fn request(socket: &impl AsFd, kinds: c_uint) -> io::Result<()> {
    let report = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_RAW_HARDWARE;
    let options = libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY
        | libc::SOF_TIMESTAMPING_OPT_TX_SWHW;
    set(socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPING, &[kinds | report | options])
}

/// Takes the next message off the socket's error queue without waiting, and puts what is said
/// beside it into `control`. Returns how many bytes that are; none if the queue is empty.
pub(crate) fn take_report(socket: &impl AsFd, control: &mut [u8]) -> io::Result<Option<usize>> {
    // SAFETY: msghdr is plain data, for which all zeroes (no address, no data) is a valid value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_control = control.as_mut_ptr().cast::<c_void>();
    message.msg_controllen = control.len();
    let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
    // SAFETY: the message points to `control` with its length, which is alive and ours to write;
    // it has no other pointers.
    match unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, flags) } {
        -1 => match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            error => Err(error),
        },
        _ => Ok(Some(message.msg_controllen)),
    }
}

/// `ETHTOOL_GET_TS_INFO` (linux/ethtool.h).
const ETHTOOL_GET_TS_INFO: u32 = 0x41;

/// Struct `ethtool_ts_info` (linux/ethtool.h).
#[repr(C)]
#[derive(Default)]
struct TsInfo {
    command: u32,
    so_timestamping: u32,
    phc_index: i32,
    tx_types: u32,
    tx_reserved: [u32; 3],
    rx_filters: u32,
    rx_reserved: [u32; 3],
}

/// The `SOF_TIMESTAMPING_*` flags that the interface's driver says it can do (what `ethtool -T`
/// prints). Any socket of the interface's network namespace can ask.
pub(crate) fn capabilities(socket: &impl AsFd, interface: &str) -> io::Result<u32> {
    let mut info = TsInfo { command: ETHTOOL_GET_TS_INFO, ..TsInfo::default() };
    // SAFETY: the kernel reads the command and writes a struct ethtool_ts_info, which this is.
    unsafe { ask(socket, interface, libc::SIOCETHTOOL, details(&mut info))? };
    Ok(info.so_timestamping)
}

/// Whether the interface's hardware is set up to stamp what it sends (`SIOCGHWTSTAMP`).
pub(crate) fn hardware_is_on(socket: &impl AsFd, interface: &str) -> io::Result<bool> {
    let mut config = libc::hwtstamp_config { flags: 0, tx_type: 0, rx_filter: 0 };
    // SAFETY: the kernel writes a struct hwtstamp_config, which this is.
    unsafe { ask(socket, interface, libc::SIOCGHWTSTAMP, details(&mut config))? };
    Ok(config.tx_type != 0) // HWTSTAMP_TX_OFF
}

/// A place for the answer.
fn details<T>(answer: &mut T) -> Details {
    Details { ifru_data: ptr::from_mut(answer).cast() }
}
