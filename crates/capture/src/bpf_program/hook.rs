//! Hooks at which the kernel runs a BPF program for each arriving frame, and attaching to them.

use std::os::fd::AsFd;

use libbpf_rs::libbpf_sys::{BPF_F_BEFORE, XDP_ATTACHED_SKB, bpf_insn};
use libbpf_rs::{Link, ProgramMut, XdpFlags};

use super::libbpf;
use crate::Error;
use crate::filter::Filter;
use crate::interface::Interface;

/// A hook of the kernel's receive path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hook {
    /// XDP, in the driver if it supports XDP.
    Xdp,
    /// tc ingress, where a packet enters the network stack.
    Tc,
    /// The tracepoint `netif_receive_skb`, before tc ingress, and a program there (`bpf/trace.h`).
    Trace,
}

/// Place in the receive path where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the driver, before the kernel has allocated a packet for the frame.
    Driver,
    /// In the network stack, later: at tc ingress, or with XDP if the driver does not support it.
    Stack,
}

/// The attached programs of a hook; they are detached on drop, or when the process ends.
pub(crate) struct Attached {
    link: Link,
    /// The link of the tracing program, whose stamps the tc program needs.
    tracing: Option<Link>,
}

impl Drop for Attached {
    /// Closing the descriptor also detaches, but not before a child process that is being created closes its copy.
    fn drop(&mut self) {
        // If this fails, closing the descriptor detaches the program.
        let _ = self.link.detach();
        // A link of a tracepoint can only be closed.
        drop(self.tracing.take());
    }
}

impl Hook {
    /// Name of the program, for messages.
    pub(crate) fn program(self) -> &'static str {
        match self {
            Self::Xdp => "the XDP program",
            Self::Tc => "the tc program",
            Self::Trace => "the tracing program",
        }
    }

    /// The action of running it, for messages.
    pub(crate) fn running(self) -> &'static str {
        match self {
            Self::Xdp => "run the XDP program",
            Self::Tc => "run the tc program",
            Self::Trace => "run the tracing program",
        }
    }

    /// The function `passes` for a program at this hook.
    pub(super) fn passes(self, filter: &Filter) -> Result<Vec<bpf_insn>, Error> {
        match self {
            Self::Xdp => filter.for_xdp(),
            Self::Tc | Self::Trace => filter.for_tc(),
        }
    }

    /// Attaches a loaded program to `interface`, with the `tracing` program of [`Self::Trace`]; returns where the
    /// kernel runs it.
    pub(super) fn attach(
        self,
        program: &ProgramMut<'_>,
        tracing: Option<&ProgramMut<'_>>,
        interface: &Interface,
    ) -> libbpf_rs::Result<(Attached, Place)> {
        // First, so that the tc program finds the stamp of its first packet.
        let tracing = tracing.map(ProgramMut::attach_trace).transpose()?;
        match self {
            Self::Xdp => {
                let link = program.attach_xdp(interface.index)?;
                Ok((Attached { link, tracing }, place(interface, program)?))
            }
            // Before all other tc programs: packets that they drop or redirect must be captured too, and they must
            // not delay the stamp.
            Self::Tc | Self::Trace => {
                let link = attach_tcx(program, interface, BPF_F_BEFORE)?;
                Ok((Attached { link, tracing }, Place::Stack))
            }
        }
    }
}

/// Queries where the kernel runs an XDP program: in the stack, if the driver does not support XDP.
fn place(interface: &Interface, program: &impl AsFd) -> libbpf_rs::Result<Place> {
    let query = libbpf_rs::Xdp::new(program.as_fd()).query(interface.index, XdpFlags::NONE)?;
    let generic = u32::from(query.attach_mode) == XDP_ATTACHED_SKB;
    Ok(if generic { Place::Stack } else { Place::Driver })
}

/// Attaches a program to tc ingress or egress, before the existing ones (`BPF_F_BEFORE`) or after them
/// (`BPF_F_AFTER`).
pub(crate) fn attach_tcx(
    program: &ProgramMut<'_>,
    interface: &Interface,
    order: u32,
) -> libbpf_rs::Result<Link> {
    libbpf::attach_tcx(program, interface.index, order)
}
