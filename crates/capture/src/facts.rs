//! The properties of an open capture, for the output and the file.

use serde::Serialize;
use wirestamp_clock::{ClockService, Domain, Phc};

use crate::bpf_program::{Place, StampedBy};
use crate::capabilities;
use crate::config::Config;
use crate::method::{IN_THE_SOFTIRQ_BY_FUNCTION, Pair};

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
    pub clock: String,
    /// The smallest usual step of that clock, in nanoseconds, rounded up.
    pub granularity_ns: i64,
    /// Bytes kept of each packet at the most.
    pub snaplen: u32,
    /// The filter in pcap syntax, if there is one.
    pub filter: Option<String>,
    /// Where less was granted than asked for, in words.
    pub notes: Vec<String>,
}

impl Facts {
    pub(crate) fn of(pair: &Pair, config: &Config, clock: &ClockService) -> Self {
        Self {
            interface: config.interface.clone(),
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
            filter: config.filter.clone(),
            notes: Vec::new(),
        }
    }

    /// Says who stamps where there is an XDP program, and where it runs if that is later than it
    /// should be.
    pub(crate) fn xdp_program(&mut self, place: Place, stamped_by: StampedBy) {
        match stamped_by {
            StampedBy::Kernel | StampedBy::Card => {}
            StampedBy::Counter { .. } => self.taken = IN_THE_SOFTIRQ_BY_FUNCTION,
            StampedBy::Reader { because, .. } => {
                self.taken = capabilities::THREAD_WITHOUT_FUNCTION;
                let note = format!("raw stamps are taken by the acquisition thread: {because}");
                self.notes.push(note);
            }
        }
        if place == Place::Driver {
            return;
        }
        let mut note =
            format!("{}'s driver has no XDP: the network stack runs the program", self.interface);
        if stamped_by.is_program() {
            self.taken = capabilities::STACK_WITHOUT_XDP;
            note += ", and stamps are taken there";
        }
        self.notes.push(note);
    }
}
