//! Filters in the syntax of pcap-filter(7), compiled by libpcap and applied in the kernel.
//!
//! A filter's result is libpcap's result for the whole frame as it was on the wire, with its VLAN tags. [`tagged`]
//! and [`ebpf`] build programs with the same result where the kernel runs them: on a packet socket, and in an XDP
//! or tc program. An XDP program sees the frame as the driver provides it, without a tag that the network card
//! removed.

mod classic;
mod ebpf;
mod edit;
#[cfg(any(test, fuzzing))]
pub(crate) mod fake;
mod offline;
mod reach;
mod tagged;
#[cfg(test)]
mod tests;

use libbpf_rs::libbpf_sys::bpf_insn;
use pcap::{BpfInstruction, BpfProgram, Capture, Linktype};
use wirestamp_packet::LinkType;

use self::classic::Operation;
use self::ebpf::Context;
use crate::Error;

/// Why the kernel cannot apply a filter, as part of a sentence.
type Reason = &'static str;

const DIRECTION: &str = "the direction of a packet is not in its bytes; leave out `inbound` and `outbound`, and choose \
                         the direction with -Q";
const TOO_LONG: Reason = "it is too long";

/// Linux's number of raw IP in libpcap (`DLT_RAW` of pcap/dlt.h), which is not that of files.
pub(crate) const DLT_RAW: Linktype = Linktype(12);

/// Cooked frames of all interfaces (`DLT_LINUX_SLL2` of pcap/dlt.h).
const DLT_LINUX_SLL2: Linktype = Linktype(276);

/// A compiled filter over the frames of a link type.
pub struct Filter {
    program: BpfProgram,
    link: LinkType,
}

impl Filter {
    /// Compiles `expression` for Ethernet frames.
    ///
    /// # Errors
    /// The expression is invalid, with libpcap's reason; or it depends on the direction of a packet, which is not in the
    /// frame.
    pub fn compile(expression: &str) -> Result<Self, Error> {
        Self::compile_for(expression, LinkType::Ethernet)
    }

    /// Compiles `expression` for frames that begin with an Ethernet header, with a cooked header, or with
    /// the IP packet.
    ///
    /// # Errors
    /// As [`Self::compile`].
    pub fn compile_for(expression: &str, link: LinkType) -> Result<Self, Error> {
        let refused = |error: pcap::Error| Error::Filter {
            expression: expression.to_owned(),
            reason: match error {
                pcap::Error::PcapError(reason) => reason,
                other => other.to_string(),
            },
        };
        let number = match link {
            LinkType::Ip => DLT_RAW,
            LinkType::LinuxCooked2 => DLT_LINUX_SLL2,
            _ => Linktype::ETHERNET,
        };
        let program = Capture::dead(number).and_then(|dead| dead.compile(expression, true));
        let filter = Self { program: program.map_err(refused)?, link };
        if filter.operations().is_ok_and(|program| program.iter().any(loads_what_no_frame_has)) {
            return Err(refused(pcap::Error::PcapError(DIRECTION.to_owned())));
        }
        Ok(filter)
    }

    /// Whether a frame passes, of which `captured` is the start, and which has `length` bytes on the wire: that is what
    /// `greater`, `less` and `len` compare. A filter that reads beyond the captured bytes rejects the frame.
    #[must_use]
    pub fn passes(&self, captured: &[u8], length: u32) -> bool {
        offline::passes(&self.program, captured, length)
    }

    /// The program for `SO_ATTACH_FILTER`, which keeps `snaplen` bytes of a frame that passes.
    pub(crate) fn for_socket(&self, snaplen: u32) -> Result<Vec<libc::sock_filter>, Error> {
        let rewrite = match self.link {
            LinkType::Ip => tagged::for_socket_without_tags,
            LinkType::LinuxCooked2 => tagged::for_socket_without_link_header,
            _ => tagged::for_socket,
        };
        let rewritten = self.operations().and_then(|program| rewrite(&program, snaplen));
        rewritten.and_then(|program| classic::encode(&program)).map_err(not_in_kernel)
    }

    /// The function `passes` for an XDP program, inserted by `bpf_program/with_filter.rs`.
    pub(crate) fn for_xdp(&self) -> Result<Vec<bpf_insn>, Error> {
        let translate = |program: Vec<_>| ebpf::translate(&program, Context::Xdp);
        self.operations().and_then(translate).map_err(not_in_kernel)
    }

    /// The same for a tc program.
    pub(crate) fn for_tc(&self) -> Result<Vec<bpf_insn>, Error> {
        self.for_packets(Context::Packet)
    }

    /// The same for the programs of `bpf/layers.bpf.c`.
    pub(crate) fn for_layers(&self) -> Result<Vec<bpf_insn>, Error> {
        self.for_packets(Context::Memory)
    }

    fn for_packets(&self, context: Context) -> Result<Vec<bpf_insn>, Error> {
        let translate = |program: Vec<_>| ebpf::translate(&program, context);
        self.operations().and_then(tagged::for_packets).and_then(translate).map_err(not_in_kernel)
    }

    fn operations(&self) -> Result<Vec<Operation>, Reason> {
        classic::decode(&self.instructions()?)
    }

    /// The compiled program. The `pcap` crate shows an instruction only as text: code, jt, jf and k.
    fn instructions(&self) -> Result<Vec<libc::sock_filter>, Reason> {
        let parse = |instruction: &BpfInstruction| {
            let text = instruction.to_string();
            let mut numbers = text.split(' ').map(|number| number.parse::<u32>().ok());
            let mut next = || numbers.next().flatten();
            let code = u16::try_from(next()?).ok()?;
            let [jt, jf] = [u8::try_from(next()?).ok()?, u8::try_from(next()?).ok()?];
            Some(libc::sock_filter { code, jt, jf, k: next()? })
        };
        let program: Option<_> = self.program.get_instructions().iter().map(parse).collect();
        program.ok_or("libpcap compiled it to an unknown form")
    }
}

/// Whether an instruction loads a property of the packet that only Linux's packet sockets have (linux/filter.h:
/// `SKF_AD_OFF`). libpcap does this for `inbound` and `outbound` only.
fn loads_what_no_frame_has(operation: &Operation) -> bool {
    let of_the_kernel = libc::SKF_AD_OFF.cast_unsigned()..;
    matches!(operation, Operation::Load { offset, .. } if of_the_kernel.contains(offset))
}

fn not_in_kernel(reason: Reason) -> Error {
    Error::FilterNotInKernel { reason: reason.to_owned() }
}
