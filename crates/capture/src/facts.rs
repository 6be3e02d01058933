//! The properties of an open capture, for the output and the file.

use serde::Serialize;
use wirestamp_clock::{ClockService, Domain, Phc};
use wirestamp_packet::LinkType;

use crate::affinity::ThreadCores;
use crate::bpf_program::{Place, StampedBy};
use crate::capabilities;
use crate::config::Config;
#[cfg(feature = "schema")]
use crate::method::{Method, StampSource};
use crate::pairs::{IN_THE_SOFTIRQ_BY_FUNCTION, Pair};

/// Properties of an open capture, reported in the output and stored in the file.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Facts {
    /// Interface name.
    pub interface: String,
    /// How its frames begin: with an Ethernet header, or with the IP packet.
    pub link: LinkType,
    /// Reception method.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = Method::names())))]
    pub method: &'static str,
    /// Timestamp source.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = StampSource::names())))]
    pub stamp: &'static str,
    /// Where on a packet's path the stamp is taken.
    pub taken: &'static str,
    /// Clock of the stamps.
    pub clock: String,
    /// Granularity: the smallest usual step of that clock, in nanoseconds, rounded up.
    pub granularity_ns: i64,
    /// Snap length: max bytes kept of each packet.
    pub snaplen: u32,
    /// Cores of the threads of each lane; one lane if one thread runs all stages.
    pub cores: Vec<ThreadCores>,
    /// Filter in pcap syntax, if any.
    pub filter: Option<String>,
    /// Notes for the user where the capture has less than was requested.
    pub notes: Vec<String>,
}

impl Facts {
    pub(crate) fn of(pair: &Pair, config: &Config, clock: &ClockService) -> Self {
        Self {
            interface: config.interface.clone(),
            link: LinkType::Ethernet,
            method: pair.method.name(),
            stamp: pair.stamp.name(),
            taken: pair.taken,
            clock: match pair.domain {
                Domain::Counter => clock.counter().name().to_owned(),
                Domain::Realtime => "CLOCK_REALTIME".to_owned(),
                Domain::Monotonic => "CLOCK_MONOTONIC".to_owned(),
                Domain::Nic => clock.nic().map_or_else(|| "none".to_owned(), Phc::name),
            },
            granularity_ns: clock.timeline(pair.domain).difference().granularity().as_nanos(),
            snaplen: config.snaplen,
            cores: Vec::new(),
            filter: config.filter.clone(),
            notes: Vec::new(),
        }
    }

    /// Records which clock stamps in an XDP program, and notes where the program runs later than in the driver.
    pub(crate) fn note_xdp_program(&mut self, place: Place, stamped_by: StampedBy) {
        match stamped_by {
            StampedBy::Kernel | StampedBy::Card | StampedBy::CounterEvent { .. } => {}
            StampedBy::Counter { .. } => self.taken = IN_THE_SOFTIRQ_BY_FUNCTION,
            StampedBy::Reader { reason, .. } => {
                self.taken = capabilities::THREAD_WITHOUT_FUNCTION;
                let note = format!("raw stamps are taken by the acquisition thread: {reason}");
                self.notes.push(note);
            }
        }
        if place == Place::Driver {
            return;
        }
        let mut note =
            format!("{}'s driver has no XDP: the network stack runs the program", self.interface);
        if stamped_by.is_by_program() {
            self.taken = capabilities::STACK_WITHOUT_XDP;
            note += ", and stamps are taken there";
        }
        self.notes.push(note);
    }
}
