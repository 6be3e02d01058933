//! Functions of libpcap that the `pcap` crate lacks, or calls without checking the result: pcap(3PCAP).
#![expect(unsafe_code, reason = "calls of libpcap, which the pcap crate links")]

use std::ffi::{c_int, c_void};

use pcap::{Capture, Inactive};

/// `PCAP_TSTAMP_HOST` (pcap/pcap.h): the kernel's stamp, not the network card's.
const HOST: c_int = 0;
/// `PCAP_TSTAMP_PRECISION_NANO` (pcap/pcap.h).
const NANOSECONDS: c_int = 1;
/// `ETH_P_CONTROL` (linux/if_ether.h): below 1536, so no Ethernet frame has this type. The kernel does not assign
/// it to frames with a length instead of a type (`eth_type_trans` of net/ethernet/eth.c).
const NO_PROTOCOL: c_int = 0x0016;

unsafe extern "C" {
    fn pcap_set_tstamp_type(pcap: *mut c_void, kind: c_int) -> c_int;
    fn pcap_set_tstamp_precision(pcap: *mut c_void, precision: c_int) -> c_int;
    fn pcap_set_protocol_linux(pcap: *mut c_void, protocol: c_int) -> c_int;
}

/// Requests the kernel's stamps in nanoseconds; the error names the feature that libpcap does not support.
pub(super) fn stamp_in_nanoseconds(pcap: &Capture<Inactive>) -> Result<(), &'static str> {
    let handle = pcap.as_ptr().cast();
    // SAFETY: the handle exists, and both calls are allowed before it is activated.
    let (kind, precision) = unsafe {
        (pcap_set_tstamp_type(handle, HOST), pcap_set_tstamp_precision(handle, NANOSECONDS))
    };
    if kind != 0 {
        return Err("this interface has no kernel stamps for libpcap");
    }
    if precision != 0 {
        return Err("this libpcap has no stamps in nanoseconds");
    }
    Ok(())
}

/// Blocks all packets until the socket is bound to all protocols.
pub(super) fn block_all_packets(pcap: &Capture<Inactive>) {
    // SAFETY: the handle exists and is not active, the only requirements of the call.
    unsafe { pcap_set_protocol_linux(pcap.as_ptr().cast(), NO_PROTOCOL) };
}
