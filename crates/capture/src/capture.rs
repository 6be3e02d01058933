//! A capture: what is asked for, what was granted, and the run.

use serde::Serialize;
use wirestamp_clock::{ClockService, Counter, Domain};

use crate::affinity::Cores;
use crate::filter::Filter;
use crate::interface::Interface;
use crate::method::{Method, Pair, ReceiverKind, StampSource, pair};
use crate::packet_socket::Setup;
use crate::pipeline::{self, Limit, Plan, Sink, Wait};
use crate::priority;
use crate::ring::{BlockRing, PerFrameRing};
use crate::socket::{Call, Recvmmsg, Recvmsg, Socket};
use crate::xdp::{LARGEST_HEAD, Place, XdpPass};
use crate::{Error, Ledger, Stop};

/// What tcpdump keeps of a packet when it is not told otherwise: more than any packet has.
const LARGEST_PACKET: u32 = 262_144;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Config {
    /// The interface, by its name in the calling thread's network namespace.
    pub interface: String,
    /// How packets are received.
    pub method: Method,
    /// Which clock stamps them.
    pub stamp: StampSource,
    /// Bytes of each packet to keep.
    pub snaplen: u32,
    /// A filter in pcap syntax.
    pub filter: Option<String>,
    /// Whether packets that this machine sends are captured too, where the method sees them.
    pub outgoing: bool,
    /// Bytes of memory for the ring between the kernel and us, or for the queue and the buffers
    /// where there is no ring.
    pub ring_bytes: usize,
    /// Where the threads run.
    pub cores: Cores,
    /// How the acquisition thread waits.
    pub wait: Wait,
    /// When the capture ends by itself.
    pub limit: Limit,
}

impl Config {
    /// A capture of whole packets on `interface` with the defaults of the command line. Its cores
    /// are chosen for a process with one capture; see [`Cores::choose`] for more.
    #[must_use]
    pub fn new(interface: &str, method: Method, stamp: StampSource) -> Self {
        Self {
            interface: interface.to_owned(),
            method,
            stamp,
            snaplen: LARGEST_PACKET,
            filter: None,
            outgoing: true,
            ring_bytes: 32 << 20,
            cores: Cores::choose(1).pop().unwrap_or_default(),
            wait: Wait::Block { realtime: false },
            limit: Limit::default(),
        }
    }
}

/// What was granted: goes into the output and into the file.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// The interface.
    pub interface: String,
    /// The reception method.
    pub method: &'static str,
    /// The timestamp source.
    pub stamp: &'static str,
    /// Where on a packet's way the stamp is taken.
    pub taken: &'static str,
    /// The clock that is read.
    pub clock: &'static str,
    /// Bytes kept of each packet at the most.
    pub snaplen: u32,
    /// Where less was granted than asked for, in words.
    pub notes: Vec<String>,
}

/// A capture that is set up: packets arrive in its ring already.
pub struct Capture {
    config: Config,
    pair: &'static Pair,
    facts: Facts,
    interface: Interface,
    /// What the interface had dropped before.
    dropped: u64,
    /// What the consumer has to filter by.
    filter: Option<Filter>,
    source: Source,
}

enum Source {
    Blocks(BlockRing),
    PerFrame(PerFrameRing),
    Recvmsg(Socket<Recvmsg>),
    Recvmmsg(Socket<Recvmmsg>),
    Xdp(XdpPass),
}

impl Capture {
    /// Sets a capture up in the calling thread's network namespace. It stays in that namespace,
    /// whichever thread runs it.
    ///
    /// # Errors
    /// An interface, pair, filter or core that does not exist, or what the kernel refuses.
    pub fn open(mut config: Config, clock: &ClockService) -> Result<Self, Error> {
        let pair = pair(config.method, config.stamp)?;
        config.cores.check()?;
        let filter = config.filter.as_deref().map(Filter::compile).transpose()?;
        let interface = Interface::open(&config.interface)?;
        let failed = |e| Error::system("read the counters", &config.interface, "cap_net_raw", e);
        let dropped = interface.dropped().map_err(failed)?;
        let mut facts = Facts::of(pair, &config, clock);
        if config.wait == (Wait::Block { realtime: true })
            && let Err(reason) = priority::realtime_is_granted()
        {
            config.wait = Wait::Block { realtime: false };
            facts.notes.push(format!("no real-time priority for the stamping thread: {reason}"));
        }
        let in_kernel = |filter: &&Filter| pair.filtered_by_kernel && !filter.looks_for_tags();
        let kernel_filter = filter.as_ref().filter(in_kernel);
        let consumer_filter = filter.is_some() && kernel_filter.is_none();
        // What the consumer filters has to come whole; it is cut after that.
        let snaplen = if consumer_filter { LARGEST_PACKET } else { config.snaplen };
        let setup = Setup { snaplen, bytes: config.ring_bytes, outgoing: config.outgoing };
        let source = Source::open(pair, &setup, &mut facts, &interface, kernel_filter, clock)?;
        facts.snaplen = facts.snaplen.min(config.snaplen);
        let filter = filter.filter(|_| consumer_filter);
        Ok(Self { config, pair, facts, interface, dropped, filter, source })
    }

    /// What was granted.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Captures until `stop` is requested or the limit reached. The ledger is complete in either
    /// case; an error says what ended the capture early.
    ///
    /// The calling thread becomes the consumer, and stays on [`Cores::consume`] if that is set.
    pub fn run(
        self,
        clock: &ClockService,
        stop: &Stop,
        sink: &mut dyn Sink,
    ) -> (Ledger, Result<(), Error>) {
        let plan = Plan {
            clock,
            domain: self.pair.domain,
            cores: self.config.cores,
            wait: self.config.wait,
            limit: self.config.limit,
            stop,
            interface: &self.interface,
            snaplen: self.facts.snaplen,
        };
        let filter = self.filter.as_ref();
        let (mut ledger, outcome) = match self.source {
            Source::Blocks(ring) => pipeline::run(ring, &plan, filter, sink),
            Source::PerFrame(ring) => pipeline::run(ring, &plan, filter, sink),
            Source::Recvmsg(socket) => pipeline::run(socket, &plan, filter, sink),
            Source::Recvmmsg(socket) => pipeline::run(socket, &plan, filter, sink),
            Source::Xdp(xdp) => pipeline::run(xdp, &plan, filter, sink),
        };
        if let Ok(dropped) = self.interface.dropped() {
            ledger.interface_dropped = dropped.saturating_sub(self.dropped);
        }
        (ledger, outcome)
    }
}

impl Facts {
    fn of(pair: &Pair, config: &Config, clock: &ClockService) -> Self {
        Self {
            interface: config.interface.clone(),
            method: pair.method.name(),
            stamp: pair.stamp.name(),
            taken: pair.taken,
            clock: match pair.domain {
                Domain::Counter => clock.counter().name(),
                Domain::Realtime => "CLOCK_REALTIME",
                Domain::Monotonic => "CLOCK_MONOTONIC",
            },
            snaplen: config.snaplen,
            notes: Vec::new(),
        }
    }
}

impl Source {
    fn open(
        pair: &Pair,
        setup: &Setup,
        facts: &mut Facts,
        interface: &Interface,
        filter: Option<&Filter>,
        clock: &ClockService,
    ) -> Result<Self, Error> {
        let counter = (pair.domain == Domain::Counter).then(|| clock.counter());
        Ok(match pair.receiver {
            ReceiverKind::Blocks => Self::Blocks(BlockRing::open(interface, filter, setup)?),
            ReceiverKind::PerFrame => {
                let ring = PerFrameRing::open(interface, filter, setup, clock.counter())?;
                facts.snaplen = ring.snaplen();
                Self::PerFrame(ring)
            }
            ReceiverKind::Recvmsg => {
                Self::Recvmsg(open_socket(interface, filter, setup, counter, facts)?)
            }
            ReceiverKind::Recvmmsg => {
                Self::Recvmmsg(open_socket(interface, filter, setup, counter, facts)?)
            }
            ReceiverKind::Xdp => {
                let (xdp, place) = XdpPass::open(interface, setup.snaplen, setup.bytes)?;
                facts.snaplen = setup.snaplen.min(LARGEST_HEAD);
                if place == Place::Stack {
                    facts.taken = "in the network stack, because the driver has no XDP";
                    facts.notes.push(format!(
                        "{}'s driver has no XDP: stamps are taken in the network stack instead",
                        interface.name
                    ));
                }
                Self::Xdp(xdp)
            }
        })
    }
}

fn open_socket<C: Call>(
    interface: &Interface,
    filter: Option<&Filter>,
    setup: &Setup,
    counter: Option<Counter>,
    facts: &mut Facts,
) -> Result<Socket<C>, Error> {
    let socket = Socket::open(interface, filter, setup, counter)?;
    facts.snaplen = socket.snaplen();
    facts.notes.extend(socket.shortage().map(str::to_owned));
    Ok(socket)
}
