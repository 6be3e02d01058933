//! Follows the packets that an interface receives through their host: when each was with the driver,
//! in the stack, at its socket and with its application, and how its way ended. Or those that it sends:
//! when each left its socket, came to the interface's queue and to its driver, and was sent.
//!
//! Programs at tracepoints of the kernel (`bpf/layers.bpf.c`) read its monotonic clock, which is one
//! clock for all points of a host, so that a time between two points has no clock error but the clock's
//! granularity. A program reads it when it begins and when it ends, so that what it takes is known and is
//! not counted ([`Journey::between`]); the packet is late by it nevertheless.
//!
//! # What it cannot do
//!
//! - Packets that an XDP program drops, sends back or redirects never are packets of the kernel's, and
//!   are not seen.
//! - Where GRO or the network card joins segments, those behind the first end there, and what goes on is
//!   one large packet.
//! - Where TCP joins a segment to one that waits in the socket's queue, it frees it without telling: its
//!   way stays [`End::Open`], or [`End::Unknown`] if its place in memory is used again.
//! - Of a multicast datagram for several sockets, one is followed, and the copies for others are not.
//! - The kernel does not show the beginning of a call that sends: what it takes to copy the data, to make
//!   packets of them and to route these is before the first point.
//! - What a network card does with a packet that it has been given to send is behind the last point.
//! - Packets that go to the driver past the queue (`PACKET_QDISC_BYPASS`) are seen there first, and those
//!   of an AF_XDP socket in zero-copy mode never.
//! - A kernel may leave tracing programs out while it interrupts certain tasks, without counting it: the
//!   packets of that moment are not seen, or not at every point. [`Layers::departures`] sees them.
//! - Drivers that build packets from fragments (`napi_gro_frags`) show them to the stack first.

mod direction;
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

use self::programs::Programs;
use crate::filter::Filter;
use crate::interface::Interface;
use crate::waiter::Waiter;
use crate::{Error, Limit, Stop};

pub use direction::Direction;
pub use hooks::Seen;
pub use journey::{End, Journey};
pub use ledger::LayersLedger;
pub use point::Point;
pub use reasons::Reasons;

/// How often the reader looks for journeys that have ended. Longer, and more of the ring buffer would
/// be in use; shorter, and it would disturb what it measures.
const LOOK: Duration = Duration::from_millis(50);

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Config {
    /// The interface, by its name in the calling thread's network namespace.
    pub interface: String,
    /// Whether it receives or sends the packets.
    pub direction: Direction,
    /// A filter in pcap syntax, for the packet as the driver hands it over or as the queue is given it, as
    /// far as it is in one piece.
    pub filter: Option<String>,
    /// When it ends by itself.
    pub limit: Limit,
}

/// What was granted.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// The interface.
    pub interface: String,
    /// Whether it receives or sends the packets.
    pub direction: Direction,
    /// The filter in pcap syntax, if there is one.
    pub filter: Option<String>,
    /// The clock that is read at all points.
    pub clock: &'static str,
    /// The smallest usual step of that clock, in nanoseconds, rounded up.
    pub granularity_ns: i64,
    /// The points where packets are seen, in order.
    pub points: Vec<Seen>,
    /// What this kernel cannot show, in words.
    pub notes: Vec<String>,
}

/// A measurement that is set up: packets are being followed already.
pub struct Layers {
    interface: Interface,
    limit: Limit,
    programs: Programs,
    facts: Facts,
}

impl Layers {
    /// Sets a measurement up in the calling thread's network namespace. It stays there, whichever
    /// thread runs it.
    ///
    /// # Errors
    /// An interface or filter that does not exist, or what the kernel refuses.
    pub fn open(config: Config, clock: &ClockService) -> Result<Self, Error> {
        let hooks = hooks::of(config.direction);
        Self::at(hooks, config, clock)
    }

    /// Sets up to see only when each packet comes to the queue of the interface that sends it
    /// ([`Point::Queue`]), and to its driver where it has no queue, as virtual cables have none. One program does
    /// that instead of six, and reads the clock when it is done with all else; the journey is handed over at
    /// once, as [`End::Open`].
    ///
    /// # Errors
    /// As of [`Self::open`]; or the kernel does not have that place (Linux 6.6).
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
            Some(why) => {
                let (interface, reason) = (interface.to_owned(), why.clone());
                Err(Error::Layers { interface, reason })
            }
        }
    }

    fn at(hooks: &[hooks::Hook], config: Config, clock: &ClockService) -> Result<Self, Error> {
        let filter = config.filter.as_deref().map(Filter::compile).transpose()?;
        let interface = Interface::open(&config.interface)?;
        let programs = Programs::open(&interface, config.direction, hooks, filter.as_ref())?;
        let granularity = clock.timeline(Domain::Monotonic).difference().granularity();
        let facts = Facts {
            interface: config.interface,
            direction: config.direction,
            filter: config.filter,
            clock: "CLOCK_MONOTONIC",
            granularity_ns: granularity.as_nanos(),
            points: programs.attached.seen.clone(),
            notes: programs.attached.notes.clone(),
        };
        Ok(Self { interface, limit: config.limit, programs, facts })
    }

    /// What was granted.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// The names of the kernel's reasons to drop packets.
    #[must_use]
    pub fn reasons(&self) -> &Reasons {
        &self.programs.reasons
    }

    /// Hands every packet's journey to `consume` when it has ended, until the stop is requested, the
    /// limit is reached or `consume` fails; then those that have not ended.
    ///
    /// The ledger is good also where there is an error.
    pub fn run(
        mut self,
        stop: &Stop,
        consume: &mut dyn FnMut(Journey) -> Result<(), Error>,
    ) -> (LayersLedger, Result<(), Error>) {
        let mut intake = Intake::new(self.limit.packets, consume);
        let mut outcome = self.follow(stop, &mut intake);
        // The kernel forgets it with the programs.
        intake.ledger.skipped = self.programs.attached.skipped();
        self.programs.attached.detach();
        let rest = self
            .programs
            .take_ended(|journey| intake.take(journey))
            .and_then(|()| self.programs.take_open(|journey| intake.take(journey)));
        outcome = outcome.and(self.read(rest));
        let counted = self.programs.count(&mut intake.ledger);
        (intake.ledger, outcome.and(self.read(counted)).and(intake.outcome))
    }

    /// Takes what ends until it is time to stop.
    fn follow(&self, stop: &Stop, intake: &mut Intake<'_>) -> Result<(), Error> {
        let started = Instant::now();
        let waiter = self.read(Waiter::new(self.programs.descriptor(), stop))?;
        while !stop.is_requested() && !intake.is_full() {
            let left = self.limit.duration.map(|limit| limit.saturating_sub(started.elapsed()));
            if left == Some(Duration::ZERO) {
                break;
            }
            self.read(waiter.wait(left.unwrap_or(LOOK).min(LOOK)))?;
            self.read(self.programs.take_ended(|journey| intake.take(journey)))?;
            self.interface.check()?;
        }
        Ok(())
    }

    fn read<T>(&self, result: io::Result<T>) -> Result<T, Error> {
        result.map_err(|cause| Error::System {
            what: "read what became of packets",
            interface: self.facts.interface.clone(),
            cause,
        })
    }
}

/// Where journeys go to.
struct Intake<'a> {
    limit: Option<u64>,
    consume: &'a mut dyn FnMut(Journey) -> Result<(), Error>,
    ledger: LayersLedger,
    /// What the consumer said.
    outcome: Result<(), Error>,
}

impl<'a> Intake<'a> {
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
