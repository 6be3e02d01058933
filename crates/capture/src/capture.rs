//! A capture: what is asked for, what was granted, and the run.

use std::path::Path;

use serde::Serialize;
use wirestamp_clock::ClockService;

use crate::affinity::Cores;
use crate::filter::Filter;
use crate::interface::{Counters, Interface};
use crate::method::{Method, Pair, StampSource, pair};
use crate::pipeline::{self, Limit, Plan, Sink, Wait};
use crate::priority;
use crate::ring::{BlockRing, PerFrameRing, Setup};
use crate::xdp::{LARGEST_HEAD, Place, XdpPass};
use crate::{Error, Ledger, Stop};

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
    /// Bytes of memory for the ring between the kernel and us.
    pub ring_bytes: usize,
    /// Where the threads run.
    pub cores: Cores,
    /// How the acquisition thread waits.
    pub wait: Wait,
    /// When the capture ends by itself.
    pub limit: Limit,
}

impl Config {
    /// A capture of whole packets on `interface` with the defaults of the command line.
    #[must_use]
    pub fn new(interface: &str, method: Method, stamp: StampSource) -> Self {
        Self {
            interface: interface.to_owned(),
            method,
            stamp,
            snaplen: 262_144, // tcpdump's
            filter: None,
            outgoing: true,
            ring_bytes: 32 << 20,
            cores: Cores::choose(),
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
    facts: Facts,
    interface: Interface,
    before: Counters,
    filter: Option<Filter>,
    source: Source,
}

enum Source {
    Blocks(BlockRing),
    PerFrame(PerFrameRing),
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
        let filter = config.filter.as_deref().map(Filter::compile).transpose()?;
        let mut interface = Interface::open(&config.interface)?;
        let failed = |e| Error::system("read the counters", &config.interface, "cap_net_raw", e);
        let before = interface.counters().map_err(failed)?;
        let mut facts = Facts::of(pair, &config, clock);
        if config.wait == (Wait::Block { realtime: true })
            && let Err(reason) = priority::realtime_is_granted()
        {
            config.wait = Wait::Block { realtime: false };
            facts.notes.push(format!("no real-time priority for the stamping thread: {reason}"));
        }
        let source = Source::open(&config, &mut facts, &interface, filter.as_ref(), clock)?;
        // The ring filters in the kernel; what XDP copies is filtered by the consumer.
        let filter = filter.filter(|_| config.method == Method::XdpPass);
        Ok(Self { config, facts, interface, before, filter, source })
    }

    /// What was granted.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Captures until `stop` is requested or the limit reached. The ledger is complete in either
    /// case; an error says what ended the capture early.
    pub fn run(
        mut self,
        clock: &ClockService,
        stop: &Stop,
        sink: &mut dyn Sink,
    ) -> (Ledger, Result<(), Error>) {
        let plan = Plan {
            clock,
            domain: self.config.stamp.domain(),
            cores: self.config.cores,
            wait: self.config.wait,
            limit: self.config.limit,
            stop,
            interface: &self.config.interface,
        };
        let filter = self.filter.as_ref();
        let (mut ledger, outcome) = match self.source {
            Source::Blocks(ring) => pipeline::run(ring, &plan, filter, sink),
            Source::PerFrame(ring) => pipeline::run(ring, &plan, filter, sink),
            Source::Xdp(xdp) => pipeline::run(xdp, &plan, filter, sink),
        };
        if let Ok(after) = self.interface.counters() {
            ledger.interface_dropped = after.dropped.saturating_sub(self.before.dropped);
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
            clock: match pair.stamp {
                StampSource::Raw => clock.counter().name(),
                StampSource::Kernel => "CLOCK_REALTIME",
                StampSource::Xdp => "CLOCK_MONOTONIC",
            },
            snaplen: config.snaplen,
            notes: Vec::new(),
        }
    }
}

impl Source {
    fn open(
        config: &Config,
        facts: &mut Facts,
        interface: &Interface,
        filter: Option<&Filter>,
        clock: &ClockService,
    ) -> Result<Self, Error> {
        let setup =
            Setup { snaplen: config.snaplen, bytes: config.ring_bytes, outgoing: config.outgoing };
        Ok(match config.stamp {
            StampSource::Kernel => Self::Blocks(BlockRing::open(interface, filter, &setup)?),
            StampSource::Raw => {
                Self::PerFrame(PerFrameRing::open(interface, filter, &setup, clock.counter())?)
            }
            StampSource::Xdp => {
                let (xdp, place) = XdpPass::open(interface, config.snaplen, config.ring_bytes)?;
                facts.snaplen = config.snaplen.min(LARGEST_HEAD);
                if place == Place::Stack {
                    facts.taken = "in the network stack, because the driver has no XDP";
                    facts.notes.push(format!(
                        "{}'s driver has no XDP: stamps are taken in the network stack instead",
                        config.interface
                    ));
                }
                Self::Xdp(xdp)
            }
        })
    }
}

/// Whether `name` is an interface of the calling thread's network namespace rather than a file.
#[must_use]
pub fn is_interface(name: &Path) -> bool {
    name.to_str().is_some_and(|name| Interface::open(name).is_ok())
}
