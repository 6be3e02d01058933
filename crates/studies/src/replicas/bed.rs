//! The links, the captures at their ends, and a round of packets.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use wirestamp_capture::{Capture, Config, Cores, Direction, Ledger, LiveLedger, Stop};
use wirestamp_clock::{ClockService, Counter, Domain, RawStamp, Span};
use wirestamp_lab::wire::{FAR, Wire};
use wirestamp_lab::{Netns, SOURCE_INTERFACE, TAP_A, TAP_B, check_privilege};

use super::round::Round;
use super::sender::{AHEAD, Sender, Sent};
use super::tap::Tap;
use super::technique::Technique;
use crate::tester::{Spinner, stay_on};
use wirestamp_report::format::{approximate, length};

/// Max time to wait for another packet: many times the time for which a ring holds packets back.
const QUIET: Duration = Duration::from_millis(300);
/// Interval of checks for new packets. Lost packets cause no event.
const LOOK: Duration = Duration::from_millis(2);

/// Both links, and a clock for what is sent and captured there.
pub(crate) struct Bed {
    wire: Wire,
    clock: ClockService,
}

/// Result of a round.
pub(crate) struct Measured {
    /// For each packet sent its delay by the sender, and by the taps if both saw it, in nanoseconds.
    pub(crate) packets: Vec<(f64, Option<f64>)>,
    /// How long the sender sent.
    pub(crate) seconds: f64,
    pub(crate) losses: Losses,
}

/// Replicas that were not seen, by cause, and late stamps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Losses {
    /// Lost by the captures themselves, by their ledgers.
    pub(crate) captures: u64,
    /// Dropped by the interfaces, for lack of buffer space. On a veth, packets that AF_XDP dropped are counted
    /// here a second time.
    pub(crate) interfaces: u64,
    /// Missing, but not in any counter.
    pub(crate) unexplained: u64,
    /// Stamped by the kernel later than they should have been.
    pub(crate) stamped_late: u64,
}

impl Bed {
    /// Makes the links.
    ///
    /// # Errors
    /// When privileges are missing, or when the counter cannot be calibrated.
    pub(crate) fn build() -> anyhow::Result<Self> {
        check_privilege()?;
        let clock =
            ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
        Ok(Self { wire: Wire::new()?, clock })
    }

    /// Sends the packets of a round, and captures them at both taps.
    ///
    /// # Errors
    /// When a capture cannot be opened or fails, or nothing can be sent.
    pub(crate) fn run(&self, round: &Round<'_>, stop: &Stop) -> anyhow::Result<Measured> {
        let cores = cores();
        let ends = [(&self.wire.source, SOURCE_INTERFACE), (&self.wire.wire, FAR)];
        let rate = self.clock.timeline(Domain::Counter).difference();
        let mut sender = Sender::open(ends, round.frame_bytes, self.clock.counter(), rate)?;
        let taps = [(&self.wire.wire, TAP_A), (&self.wire.sink, TAP_B)];
        let open = |place: usize| self.capture(round.technique, taps[place], cores.captures[place]);
        let captures = [open(0)?, open(1)?];
        let live = captures.each_ref().map(Capture::live_ledger);
        let domain = captures[0].domain();
        let _spinners = round.stressed.then(|| cores.spinners());
        let packets = usize::try_from(round.packets)?;
        let end = Stop::new().context("cannot make the stop event")?;
        let (sent, taps) = thread::scope(|scope| {
            let captures = captures.map(|capture| {
                scope.spawn(|| {
                    let mut tap = Tap::new(packets);
                    let (ledger, outcome) = capture.run(&self.clock, &end, &mut tap);
                    outcome.map(|()| (tap, ledger))
                })
            });
            let sending = scope.spawn(|| {
                cores.sender.map_or(Ok(()), stay_on)?;
                sender.run(round, stop)
            });
            let sent = join(sending);
            if let Ok(sent) = &sent {
                await_last(&live.each_ref().map(AsRef::as_ref), length(sent) + u64::from(AHEAD));
            }
            end.request();
            let [a, b] = captures.map(|capture| anyhow::Ok(join(capture)?));
            anyhow::Ok((sent?, [a?, b?]))
        })?;
        Ok(self.measured(domain, &sent, &taps))
    }

    fn capture(
        &self,
        Technique { method, stamp }: Technique,
        (netns, interface): (&Netns, &str),
        core: Option<usize>,
    ) -> anyhow::Result<Capture> {
        let lane = Cores { acquire: core, convert: core, consume: core };
        let config = Config {
            direction: Direction::In,
            lanes: vec![lane],
            ..Config::new(interface, method, stamp)
        };
        let open = || Capture::open(config, &self.clock);
        Ok(netns.run(open).context("cannot enter the lab")??)
    }

    /// Records of sender and taps for each packet.
    fn measured(&self, domain: Domain, sent: &[Sent], taps: &[(Tap, Ledger); 2]) -> Measured {
        let [ours, theirs] =
            [Domain::Counter, domain].map(|domain| self.clock.timeline(domain).difference());
        let nanos = |span: Option<Span>| span.map(|span| approximate(span.as_nanos()));
        let ticks = |value: u64| RawStamp { domain: Domain::Counter, value };
        let between = |from: u64, to: u64| nanos(ours.span(ticks(from), ticks(to))).unwrap_or(0.0);
        let [(a, _), (b, _)] = taps;
        let packet = |(sent, (a, b)): (&Sent, (&Option<RawStamp>, &Option<RawStamp>))| {
            let delay = a.zip(*b).and_then(|(a, b)| nanos(theirs.span(a, b)));
            (between(sent[0], sent[1]), delay)
        };
        let packets = sent.iter().zip(a.stamps.iter().zip(&b.stamps)).map(packet).collect();
        let ends = sent.first().zip(sent.last());
        let seconds = ends.map_or(0.0, |(first, last)| between(first[0], last[1]) / 1e9);
        Measured { packets, seconds, losses: Losses::of(sent, taps) }
    }
}

impl Losses {
    fn of(sent: &[Sent], taps: &[(Tap, Ledger); 2]) -> Self {
        let mut losses = Self::default();
        for (tap, ledger) in taps {
            let seen = tap.stamps.iter().take(sent.len()).flatten().count();
            let missing = length(sent).saturating_sub(u64::try_from(seen).unwrap_or(0));
            let counted = ledger.lost() + ledger.interface_dropped;
            losses.captures += ledger.lost();
            losses.interfaces += ledger.interface_dropped;
            losses.unexplained += missing.saturating_sub(counted);
            losses.stamped_late += ledger.stamped_late;
        }
        losses
    }
}

/// Which cores the sender and the captures at both taps have to themselves.
struct Places {
    sender: Option<usize>,
    captures: [Option<usize>; 2],
}

/// Selects the cores. The sender represents another machine: if there are enough cores, no capture thread
/// runs on its core. A veth's softIRQ runs on the sender's core.
fn cores() -> Places {
    let lanes = Cores::choose(2);
    let captures = [0, 1].map(|place| lanes.get(place).and_then(|lane| lane.acquire));
    Places { sender: lanes.last().and_then(|lane| lane.convert), captures }
}

impl Places {
    /// Keeps the captures' cores busy.
    fn spinners(&self) -> Vec<Spinner> {
        let mut cores: Vec<_> = self.captures.iter().copied().flatten().collect();
        cores.dedup();
        cores.into_iter().map(Spinner::on).collect()
    }
}

/// Waits until all packets have come to both captures, or no more come.
fn await_last(taps: &[&LiveLedger; 2], sent: u64) {
    let counts = || taps.map(|tap| tap.snapshot()).map(|now| now.delivered + now.lost());
    let (mut before, mut since) = (counts(), Instant::now());
    while before.iter().any(|count| *count < sent) && since.elapsed() < QUIET {
        thread::sleep(LOOK);
        let now = counts();
        if now != before {
            (before, since) = (now, Instant::now());
        }
    }
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
