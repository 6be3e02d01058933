//! The receivers of a capture: one for each lane.

use wirestamp_clock::{ClockService, Counter, Domain};

use crate::af_xdp::AfXdp;
use crate::bpf_program::{Hook, StampedBy};
use crate::capabilities::{Obstacle, counter_event, counter_function, xdp_slows_transfers};
use crate::config::LARGEST_PACKET;
use crate::facts::Facts;
use crate::filter::Filter;
use crate::interface::Interface;
use crate::libpcap::LibPcap;
use crate::method::{Method, StampSource};
use crate::packet_socket::Setup;
use crate::pairs::{Pair, ReceiverKind};
use crate::pass::{MAX_HEAD, Pass};
use crate::pipeline::{self, PipelineContext, Sink};
use crate::ring::{BlockRing, PerFrameRing};
use crate::socket::{Call, Recvmmsg, Recvmsg, Socket};
use crate::{Error, Ledger};

/// Arguments for opening receivers.
#[derive(Clone, Copy)]
pub(crate) struct OpenRequest<'a> {
    pub(crate) interface: &'a Interface,
    pub(crate) setup: Setup<'a>,
    pub(crate) lanes: usize,
    pub(crate) clock: &'a ClockService,
}

/// The open receivers of one method.
pub(crate) enum Source {
    Blocks(Vec<BlockRing>),
    PerFrame(Vec<PerFrameRing>),
    Recvmsg(Vec<Socket<Recvmsg>>),
    Recvmmsg(Vec<Socket<Recvmmsg>>),
    LibPcap(Vec<LibPcap>),
    AfXdp(AfXdp),
    Pass(Pass),
}

impl Source {
    /// Opens the receivers with the filter in the kernel. Returns the filter if the kernel cannot apply it.
    /// Adds notes to `facts` where the capture has less than was requested.
    pub(crate) fn open_filtered(
        pair: &Pair,
        opening: &OpenRequest<'_>,
        filter: Option<Filter>,
        facts: &mut Facts,
    ) -> Result<(Self, Option<Filter>), Error> {
        let snaplen = opening.setup.snaplen;
        let opened = match Self::open(pair, opening, filter.as_ref(), facts) {
            Err(Error::FilterNotInKernel { reason }) => {
                // The consumer filters whole packets and cuts them afterwards.
                let setup = Setup { snaplen: LARGEST_PACKET, ..opening.setup };
                let source = Self::open(pair, &OpenRequest { setup, ..*opening }, None, facts)?;
                facts.notes.push(format!(
                    "the filter runs in this process instead of the kernel, on up to {} bytes of \
                     each packet: {reason}",
                    facts.snaplen
                ));
                (source, filter)
            }
            opened => (opened?, None),
        };
        facts.snaplen = facts.snaplen.min(snaplen);
        Ok(opened)
    }

    fn open(
        pair: &Pair,
        opening: &OpenRequest<'_>,
        filter: Option<&Filter>,
        facts: &mut Facts,
    ) -> Result<Self, Error> {
        let OpenRequest { interface, setup, clock, .. } = opening;
        let counter = (pair.domain == Domain::Counter).then(|| clock.counter());
        Ok(match pair.receiver {
            ReceiverKind::Blocks => {
                let open = || BlockRing::open(interface, filter, setup);
                Self::Blocks(opening.each_lane(open)?)
            }
            ReceiverKind::PerFrame => {
                let open = || PerFrameRing::open(interface, filter, setup, clock.counter());
                let rings = opening.each_lane(open)?;
                facts.snaplen = rings[0].snaplen();
                Self::PerFrame(rings)
            }
            ReceiverKind::Recvmsg => Self::Recvmsg(opening.sockets(filter, counter, facts)?),
            ReceiverKind::Recvmmsg => Self::Recvmmsg(opening.sockets(filter, counter, facts)?),
            ReceiverKind::LibPcap => {
                let open = || LibPcap::open(interface, filter, setup, counter);
                let handles = opening.each_lane(open)?;
                facts.snaplen = handles[0].snaplen();
                Self::LibPcap(handles)
            }
            ReceiverKind::AfXdp => Self::AfXdp(opening.af_xdp(pair, filter, facts)?),
            ReceiverKind::Pass(hook) => Self::Pass(opening.pass(hook, pair, filter, facts)?),
        })
    }

    /// Whether packets arrive already stamped, so that no thread of this process stamps.
    pub(crate) fn is_stamped(&self, pair: &Pair) -> bool {
        match self {
            Self::AfXdp(xdp) => xdp.is_stamped(),
            Self::Pass(_) => true,
            _ => pair.domain != Domain::Counter,
        }
    }

    /// Runs the pipeline on the receivers.
    pub(crate) fn run(
        self,
        context: &PipelineContext<'_>,
        filter: Option<&Filter>,
        sink: &mut dyn Sink,
    ) -> (Ledger, Result<(), Error>) {
        match self {
            Self::Blocks(rings) => pipeline::run(rings, context, filter, sink),
            Self::PerFrame(rings) => pipeline::run(rings, context, filter, sink),
            Self::Recvmsg(sockets) => pipeline::run(sockets, context, filter, sink),
            Self::Recvmmsg(sockets) => pipeline::run(sockets, context, filter, sink),
            Self::LibPcap(handles) => pipeline::run(handles, context, filter, sink),
            Self::AfXdp(xdp) => pipeline::run(vec![xdp], context, filter, sink),
            Self::Pass(pass) => pipeline::run(vec![pass], context, filter, sink),
        }
    }
}

impl OpenRequest<'_> {
    /// A receiver for each lane.
    fn each_lane<R>(&self, open: impl Fn() -> Result<R, Error>) -> Result<Vec<R>, Error> {
        (0..self.lanes).map(|_| open()).collect()
    }

    fn af_xdp(
        &self,
        pair: &Pair,
        filter: Option<&Filter>,
        facts: &mut Facts,
    ) -> Result<AfXdp, Error> {
        let stamped_by = self.stamped_by(pair, Hook::Xdp)?;
        let (xdp, granted) = AfXdp::open(self.interface, filter, &self.setup, stamped_by)?;
        facts.snaplen = granted.snaplen;
        facts.notes.extend(granted.notes);
        facts.note_xdp_program(granted.place, stamped_by);
        Ok(xdp)
    }

    fn pass(
        &self,
        hook: Hook,
        pair: &Pair,
        filter: Option<&Filter>,
        facts: &mut Facts,
    ) -> Result<Pass, Error> {
        let Setup { snaplen, bytes, .. } = self.setup;
        let stamped_by = self.stamped_by(pair, hook)?;
        let (pass, place) = Pass::open(hook, self.interface, filter, stamped_by, snaplen, bytes)?;
        facts.snaplen = snaplen.min(MAX_HEAD);
        if hook == Hook::Xdp {
            facts.note_xdp_program(place, stamped_by);
            facts.notes.extend(xdp_slows_transfers(self.interface));
        }
        Ok(pass)
    }

    /// The component that stamps the frames of a program at `hook`. If the program passes frames on, only it can stamp.
    fn stamped_by(&self, pair: &Pair, hook: Hook) -> Result<StampedBy, Error> {
        let counter = self.clock.counter();
        let refused = |reason: Obstacle| {
            let (what, interface) = (hook.program(), self.interface.name.clone());
            Error::Program { what, interface, reason: reason.to_string() }
        };
        match pair.stamp {
            StampSource::Kernel | StampSource::Xdp | StampSource::Tc | StampSource::Trace => {
                Ok(StampedBy::Kernel)
            }
            StampSource::Hardware => Ok(StampedBy::Card),
            StampSource::Raw if hook == Hook::Trace => match counter_event(counter) {
                Ok(()) => Ok(StampedBy::CounterEvent { counter }),
                Err(reason) => Err(refused(reason)),
            },
            StampSource::Raw => match counter_function(counter) {
                Ok(function) => Ok(StampedBy::Counter { counter, function }),
                Err(reason) if pair.method == Method::Xdp => {
                    Ok(StampedBy::Reader { counter, reason })
                }
                Err(reason) => Err(refused(reason)),
            },
        }
    }

    fn sockets<C: Call>(
        &self,
        filter: Option<&Filter>,
        counter: Option<Counter>,
        facts: &mut Facts,
    ) -> Result<Vec<Socket<C>>, Error> {
        let open = || Socket::open(self.interface, filter, &self.setup, counter);
        let sockets: Vec<Socket<C>> = self.each_lane(open)?;
        facts.snaplen = sockets[0].snaplen();
        facts.notes.extend(sockets[0].shortage().map(str::to_owned));
        Ok(sockets)
    }
}
