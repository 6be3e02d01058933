//! Follows packets through the layers of their host. Received packets: times at the driver, in the stack, at the
//! socket and in the application, and the end of the path. Sent packets: times at the socket, in the interface's
//! queue, at the driver, and when sent.
//!
//! Programs at tracepoints of the kernel (`bpf/layers.bpf.c`) read its monotonic clock. All points of a host have
//! the same clock, so a time between two points has no clock error beyond the granularity. A program reads the
//! clock at its start and at its end, so that its own duration is known and subtracted ([`Journey::between`]); the
//! packet is still delayed by it.
//!
//! # Limits
//!
//! - Packets that an XDP program drops, sends back or redirects never become socket buffers (`sk_buff`), and are not
//!   observed.
//! - Where GRO or the network card merges segments, those after the first end there, and one large packet
//!   continues.
//! - TCP frees a segment that it merges with one in the socket's queue without an event: it stays [`End::Open`], or
//!   [`End::Unknown`] if its memory is reused.
//! - Of a multicast datagram for several sockets, only one copy is followed.
//! - The kernel does not show the start of a send call: copying the data, building packets and routing them happen
//!   before the first point.
//! - The network card's handling of a packet to send happens after the last point.
//! - Packets that bypass the queue (`PACKET_QDISC_BYPASS`) are first observed at the driver; those of an AF_XDP
//!   socket in zero-copy mode never.
//! - A kernel may skip tracing programs while it interrupts certain tasks, without counting it: packets of that
//!   moment are not observed, or not at every point. [`Layers::departures`] observes them.
//! - Packets that a driver builds from fragments (`napi_gro_frags`) are first observed in the stack.

mod hooks;
mod journey;
mod ledger;
mod point;
mod programs;
mod reasons;

use std::io;
use std::time::{Duration, Instant};

use serde::Serialize;
use wirestamp_clock::{ClockService, Domain};
use wirestamp_packet::LinkType;

use self::programs::Programs;
use crate::filter::Filter;
use crate::interface::Interface;
use crate::waiter::Waiter;
use crate::{Error, Limit, Stop};

pub use hooks::ObservedPoint;
pub use journey::{End, Journey};
pub use ledger::LayersLedger;
pub use point::{Direction, Point};
pub use reasons::Reasons;

/// Interval at which the reader polls for ended journeys. A longer one would fill more of the ring buffer; a
/// shorter one would disturb the measurement.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Settings of a measurement.
#[derive(Clone, Debug)]
pub struct Config {
    /// Interface name in the calling thread's network namespace.
    pub interface: String,
    /// Whether it receives or sends the packets.
    pub direction: Direction,
    /// Filter in pcap syntax, applied to the packet as the driver passes it on or the queue receives it, as far as
    /// it is contiguous.
    pub filter: Option<String>,
    /// When the measurement ends automatically.
    pub limit: Limit,
}

/// Properties of an open measurement.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "LayersFacts"))]
pub struct Facts {
    /// Interface name.
    pub interface: String,
    /// Whether it receives or sends the packets.
    pub direction: Direction,
    /// Filter in pcap syntax, if any.
    pub filter: Option<String>,
    /// Clock read at all points.
    pub clock: &'static str,
    /// Granularity: the smallest usual step of that clock, in nanoseconds, rounded up.
    pub granularity_ns: i64,
    /// Points at which packets are observed, in order.
    pub points: Vec<ObservedPoint>,
    /// Limitations of this kernel, as text.
    pub notes: Vec<String>,
}

/// An open measurement: packets are already followed.
pub struct Layers {
    interface: Interface,
    limit: Limit,
    programs: Programs,
    facts: Facts,
}

impl Layers {
    /// Opens a measurement in the calling thread's network namespace. Any thread may run it.
    ///
    /// # Errors
    /// The interface or filter does not exist, or a system call fails.
    pub fn open(config: Config, clock: &ClockService) -> Result<Self, Error> {
        let hooks = hooks::of(config.direction);
        Self::at(hooks, config, clock)
    }

    /// Opens a measurement of one point: the time of each packet at the queue of the sending interface
    /// ([`Point::Queue`]), or at its driver where there is no queue, as in virtual cables. It uses one program
    /// instead of six, which reads the clock as its last step. The journey is passed on at once, as [`End::Open`].
    ///
    /// # Errors
    /// As for [`Self::open`]; or the kernel does not have the hook (Linux 6.6).
    pub fn departures(
        interface: &str,
        filter: Option<&str>,
        clock: &ClockService,
    ) -> Result<Self, Error> {
        let config = Config {
            interface: interface.to_owned(),
            direction: Direction::Out,
            filter: filter.map(str::to_owned),
            limit: Limit::default(),
        };
        let layers = Self::at(hooks::DEPARTURE, config, clock)?;
        match layers.facts.notes.first() {
            None => Ok(layers),
            Some(note) => {
                let (interface, reason) = (interface.to_owned(), note.clone());
                Err(Error::Layers { interface, reason })
            }
        }
    }

    fn at(hooks: &[hooks::Hook], config: Config, clock: &ClockService) -> Result<Self, Error> {
        let filter = config.filter.as_deref().map(Filter::compile).transpose()?;
        let interface = Interface::open(&config.interface)?;
        if interface.link != Some(LinkType::Ethernet) {
            let reason = "its packets have no Ethernet header".to_owned();
            return Err(Error::Layers { interface: config.interface, reason });
        }
        let programs = Programs::open(&interface, config.direction, hooks, filter.as_ref())?;
        let granularity = clock.timeline(Domain::Monotonic).difference().granularity();
        let facts = Facts {
            interface: config.interface,
            direction: config.direction,
            filter: config.filter,
            clock: "CLOCK_MONOTONIC",
            granularity_ns: granularity.as_nanos(),
            points: programs.attached.observed.clone(),
            notes: programs.attached.notes.clone(),
        };
        Ok(Self { interface, limit: config.limit, programs, facts })
    }

    /// Properties of the measurement.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The names of the kernel's drop reasons.
    #[must_use]
    pub fn reasons(&self) -> &Reasons {
        &self.programs.reasons
    }

    /// Passes each packet's journey to `consume` when it has ended, until the stop is requested, the limit is
    /// reached or `consume` fails. Then passes the journeys that have not ended.
    ///
    /// The ledger is complete in case of an error, too.
    pub fn run(
        mut self,
        stop: &Stop,
        consume: &mut dyn FnMut(Journey) -> Result<(), Error>,
    ) -> (LayersLedger, Result<(), Error>) {
        let mut journeys = JourneySink::new(self.limit.packets, consume);
        let mut outcome = self.follow(stop, &mut journeys);
        // The count is lost when the programs are detached.
        journeys.ledger.skipped = self.programs.attached.skipped();
        self.programs.attached.detach();
        let rest = self
            .programs
            .take_ended(|journey| journeys.take(journey))
            .and_then(|()| self.programs.take_open(|journey| journeys.take(journey)));
        outcome = outcome.and(self.read(rest));
        let counted = self.programs.count(&mut journeys.ledger);
        (journeys.ledger, outcome.and(self.read(counted)).and(journeys.outcome))
    }

    /// Takes ended journeys until it is time to stop.
    fn follow(&self, stop: &Stop, journeys: &mut JourneySink<'_>) -> Result<(), Error> {
        let started = Instant::now();
        let waiter = self.read(Waiter::new(self.programs.descriptor(), stop))?;
        while !stop.is_requested() && !journeys.is_full() {
            let left = self.limit.duration.map(|limit| limit.saturating_sub(started.elapsed()));
            if left == Some(Duration::ZERO) {
                break;
            }
            self.read(waiter.wait(left.unwrap_or(POLL_INTERVAL).min(POLL_INTERVAL)))?;
            self.read(self.programs.take_ended(|journey| journeys.take(journey)))?;
            self.interface.check()?;
        }
        Ok(())
    }

    fn read<T>(&self, result: io::Result<T>) -> Result<T, Error> {
        result.map_err(|cause| Error::System {
            what: "read the packets' journeys",
            interface: self.facts.interface.clone(),
            cause,
        })
    }
}

/// Passes journeys to the consumer and counts them.
struct JourneySink<'a> {
    limit: Option<u64>,
    consume: &'a mut dyn FnMut(Journey) -> Result<(), Error>,
    ledger: LayersLedger,
    /// Result of the consumer.
    outcome: Result<(), Error>,
}

impl<'a> JourneySink<'a> {
    fn new(limit: Option<u64>, consume: &'a mut dyn FnMut(Journey) -> Result<(), Error>) -> Self {
        Self { limit, consume, ledger: LayersLedger::default(), outcome: Ok(()) }
    }

    /// Whether no more journeys are taken.
    fn is_full(&self) -> bool {
        self.outcome.is_err() || self.limit.is_some_and(|limit| self.ledger.delivered >= limit)
    }

    fn take(&mut self, journey: Option<Journey>) {
        match journey {
            None => self.ledger.dropped += 1,
            Some(_) if self.is_full() => self.ledger.surplus += 1,
            Some(journey) => {
                self.outcome = (self.consume)(journey);
                self.ledger.delivered += 1;
            }
        }
    }
}
