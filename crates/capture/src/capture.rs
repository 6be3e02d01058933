//! An open capture and its run.

use std::sync::Arc;

use wirestamp_clock::{ClockService, Domain, Time, Utc};
use wirestamp_packet::LinkType;
use wirestamp_sys::scheduling;

use crate::affinity::{Cores, ThreadCores};
use crate::capabilities;
use crate::card_stamps::CardStamping;
use crate::config::{Config, Direction};
use crate::facts::Facts;
use crate::filter::Filter;
use crate::interface::Interface;
use crate::live_ledger::LiveLedger;
use crate::packet_socket::{Fanout, Setup};
use crate::pairs::{Pair, pair};
use crate::pipeline::{self, MERGE_TIMEOUT, PipelineContext, Sink, Wait};
use crate::source::{OpenRequest, Source};
use crate::{Error, Ledger, Stop};

/// An open capture: its ring already receives packets.
pub struct Capture {
    config: Config,
    pair: &'static Pair,
    facts: Facts,
    interface: Arc<Interface>,
    live: Arc<LiveLedger>,
    /// The interface's drop count when the capture was opened.
    dropped: u64,
    /// Filter for the consumer, where the kernel cannot filter.
    filter: Option<Filter>,
    source: Source,
    /// A time before the receivers were opened.
    opened: Time<Utc>,
    card_stamps: Option<CardStamping>,
}

impl Capture {
    /// Opens a capture in the calling thread's network namespace. The capture may run on any thread.
    ///
    /// # Errors
    /// The interface, pair, filter or core does not exist, the interface does not support the pair
    /// ([`capabilities::verdict`]), or a system call fails.
    pub fn open(mut config: Config, clock: &ClockService) -> Result<Self, Error> {
        let pair = pair(config.method, config.stamp)?;
        config.lanes.iter().try_for_each(Cores::check)?;
        pair.check_lanes(config.lanes.len())?;
        pair.check_direction(config.direction)?;
        let interface = Arc::new(Interface::open(&config.interface)?);
        let link = interface.link.unwrap_or(LinkType::Ethernet);
        let compile = |filter| Filter::compile_for(filter, link);
        let filter = config.filter.as_deref().map(compile).transpose()?;
        capabilities::require(pair, &interface)?;
        let card_stamps = card_stamps(pair, &config.interface, clock)?;
        let failed = |e| Error::system("read the counters", &config.interface, "cap_net_raw", e);
        let dropped = interface.dropped().map_err(failed)?;
        let live = Arc::new(LiveLedger::new(Arc::clone(&interface), dropped));
        let mut facts = Facts { link, ..Facts::of(pair, &config, clock) };
        if config.wait == (Wait::Block { realtime: true })
            && let Err(reason) = scheduling::check_realtime()
        {
            config.wait = Wait::Block { realtime: false };
            facts.notes.push(format!("the stamping thread has no real-time priority: {reason}"));
        }
        let lanes = config.lanes.len();
        let fanout = Fanout::default();
        let setup = Setup {
            snaplen: config.snaplen,
            bytes: config.ring_bytes / lanes,
            direction: config.direction,
            promiscuous: config.promiscuous,
            spins: config.wait == Wait::Spin,
            fanout: (lanes > 1).then_some(&fanout),
            card_stamps: card_stamps.is_some(),
        };
        if setup.card_stamps && setup.direction != Direction::In && !pair.method.runs_xdp() {
            facts.notes.push(
                "outgoing packets have kernel stamps, and are counted: the network card stamps only \
                 incoming packets"
                    .to_owned(),
            );
        }
        if setup.direction == Direction::Out && interface.is_loopback {
            facts.notes.push(format!(
                "{} has no outgoing packets: each packet on loopback counts once, as a received one",
                interface.name
            ));
        }
        let request = OpenRequest { interface: &interface, setup, lanes, clock };
        let opened = pipeline::now();
        let (source, filter) = Source::open_filtered(pair, &request, filter, &mut facts)?;
        let stamped = source.is_stamped(pair);
        let one_thread = pipeline::suits_one_thread(stamped, lanes, config.wait);
        facts.cores = ThreadCores::of(&config.lanes, one_thread);
        if lanes > 1 {
            facts.notes.push(format!(
                "packets of {lanes} threads are merged by their stamps; a packet that arrives more \
                 than {} ms after its stamp may be out of order, and is counted",
                MERGE_TIMEOUT.as_millis()
            ));
        }
        Ok(Self {
            config,
            pair,
            facts,
            interface,
            live,
            dropped,
            filter,
            source,
            opened,
            card_stamps,
        })
    }

    /// Properties of the open capture.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Clock domain of the stamps.
    #[must_use]
    pub fn domain(&self) -> Domain {
        self.pair.domain
    }

    /// Ledger that other threads may read while the capture runs.
    #[must_use]
    pub fn live_ledger(&self) -> Arc<LiveLedger> {
        Arc::clone(&self.live)
    }

    /// Captures until `stop` is requested or the limit is reached. The ledger is complete in either case; an error
    /// reports what ended the capture early.
    ///
    /// The calling thread becomes the consumer, and runs on [`Cores::consume`] if that is set.
    pub fn run(
        self,
        clock: &ClockService,
        stop: &Stop,
        sink: &mut dyn Sink,
    ) -> (Ledger, Result<(), Error>) {
        let context = PipelineContext {
            clock,
            domain: self.pair.domain,
            fallback: self.pair.fallback(),
            stamped: self.source.is_stamped(self.pair),
            lanes: &self.config.lanes,
            wait: self.config.wait,
            limit: self.config.limit,
            shared_count: self.config.shared_count.as_ref(),
            stop,
            interface: &self.interface,
            wait_for_interface: self.config.wait_for_interface,
            snaplen: self.facts.snaplen,
            opened: self.opened,
            live: &self.live,
        };
        let filter = self.filter.as_ref();
        let (mut ledger, mut outcome) = self.source.run(&context, filter, sink);
        if let Some(Err(cause)) = self.card_stamps.map(CardStamping::restore) {
            let what = "restore the network card's stamping";
            let failed = Error::system(what, &self.config.interface, "cap_net_admin", cause);
            outcome = outcome.and(Err(failed));
        }
        if let Ok(dropped) = self.interface.dropped() {
            ledger.interface_dropped = dropped.saturating_sub(self.dropped);
        }
        (ledger, outcome)
    }
}

/// Enables the network card's stamps if `pair` uses them and `clock` can convert them.
fn card_stamps(
    pair: &Pair,
    interface: &str,
    clock: &ClockService,
) -> Result<Option<CardStamping>, Error> {
    if pair.domain != Domain::Nic {
        return Ok(None);
    }
    match (capabilities::card_clock(pair, interface)?, clock.nic()) {
        (Some(stamps), followed) if followed != Some(stamps) => {
            Err(Error::OtherCardClock { interface: interface.to_owned(), stamps, followed })
        }
        _ => CardStamping::of(interface).map(Some),
    }
}
