//! Constant flows to a probe, and the jitter of its stamps.

use std::time::Duration;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use wirestamp_capture::{Cores, Stop};
use wirestamp_clock::{Counter, Span, Time, Utc, survey};
use wirestamp_traffic::Pattern;

use super::control::Control;
use super::paper::Pause;
use super::source::{JitterSource, SOURCES};
use super::transit::Transits;
use crate::experiment::{Cell, Design, Factor, Study, deviation, mean};
use crate::probe::{Captures, Departures, Gap, Passage, Probe, SendTimes, gaps};
use wirestamp_report::format::{approximate, length};

/// Ethernet's check sequence, which the report counts to a frame and this project does not.
const CHECK_SEQUENCE: u16 = 4;

/// Shortest time between packets at which the sender also reads the driver's transmit stamps.
const SHORTEST_WITH_DRIVER: Span = Span::from_micros(100);

/// Longest time for the control of the machine before a flow.
const MAX_CONTROL: Duration = Duration::from_secs(1);

/// How long it takes to set captures up and to wait for their last packets.
pub(super) const AROUND: Duration = Duration::from_millis(300);

/// Extent of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JitterScale {
    pub(super) repetitions: u32,
    /// Of frames in bytes, with check sequence.
    pub(super) frames: &'static [u16],
    /// How long a flow lasts.
    pub(super) flow: Duration,
}

impl JitterScale {
    /// All sizes of the report, in 25 minutes.
    pub(super) const FULL: Self = Self {
        repetitions: 3,
        frames: &[84, 300, 600, 900, 1200, 1500],
        flow: Duration::from_secs(4),
    };
    /// The smallest, the one that the report compares its probes by, and the largest, in a minute.
    pub(super) const QUICK: Self =
        Self { repetitions: 3, frames: &[84, 300, 1500], flow: Duration::from_millis(100) };

    /// Frames, pause and source of a cell.
    pub(super) fn of(self, cell: &Cell) -> (u16, Pause, JitterSource) {
        let level = |factor: usize| cell.0.get(factor).copied().unwrap_or(0);
        let frame_bytes = self.frames.get(level(0)).copied().unwrap_or(0);
        let pause = Pause::ALL[level(1) % Pause::ALL.len()];
        (frame_bytes, pause, SOURCES[level(2) % SOURCES.len()])
    }

    /// Factors of the study.
    pub(super) fn design(self) -> Design {
        let frames: Vec<_> = self.frames.iter().map(u16::to_string).collect();
        let sources = SOURCES.map(|source| source.to_string());
        Design {
            name: "timestamp-jitter".to_owned(),
            factors: vec![
                Factor::new("frame", frames.iter().map(String::as_str)),
                Factor::new("pause", Pause::ALL.map(Pause::name)),
                Factor::new("source", sources.iter().map(String::as_str)),
            ],
            repetitions: self.repetitions,
            constants: vec![("milliseconds".to_owned(), self.flow.as_millis().to_string())],
        }
    }
}

/// Frames and pause of a cell, from the names of its first levels.
pub(super) fn flow(design: &Design, cell: &Cell) -> Option<(u16, Pause)> {
    let [frame, pause, ..] = design.levels(cell)[..] else { return None };
    let pause = Pause::ALL.into_iter().find(|known| known.name() == pause)?;
    Some((frame.parse().ok()?, pause))
}

/// A constant flow of frames with check sequence that lasts this long, and its number of packets.
pub(super) fn constant(
    frame_bytes: u16,
    pause: Pause,
    lasts: Duration,
) -> anyhow::Result<(Pattern, u64)> {
    let interval = Span::from_nanos(pause.period_ns(frame_bytes).into());
    let pattern = Pattern::new("constant", frame_bytes.saturating_sub(CHECK_SEQUENCE), interval)?;
    let lasting = i64::try_from(lasts.as_nanos()).unwrap_or(i64::MAX);
    let packets = pattern.packets_in(Span::from_nanos(lasting));
    Ok((pattern, packets))
}

/// Results of a source with a flow. Times are between consecutive packets with known send times, in nanoseconds;
/// none if there are too few.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SourceJitter {
    /// Name of the source (`source`).
    pub(super) source: String,
    /// Packets that were sent.
    pub(super) sent: u64,
    /// Of those, packets that were stamped.
    pub(super) captured: u64,
    /// Packets that the capture lost, by its ledger.
    pub(super) lost: u64,
    /// Number of times from which the statistics are computed.
    pub(super) times: u64,
    /// The least, mean and longest time by the sender, and the standard deviation.
    pub(super) sent_min: Option<f64>,
    pub(super) sent_mean: Option<f64>,
    pub(super) sent_max: Option<f64>,
    pub(super) sent_deviation: Option<f64>,
    /// The same by the stamps.
    pub(super) min: Option<f64>,
    pub(super) mean: Option<f64>,
    pub(super) max: Option<f64>,
    pub(super) deviation: Option<f64>,
    /// The standard deviation of the differences, time by time: the jitter of the stamps alone.
    pub(super) jitter: Option<f64>,
    /// The same against the driver's transmit stamps instead of the times of the calls; none if these were not recorded.
    #[serde(default)]
    pub(super) driver_jitter: Option<f64>,
    /// The standard deviation of the time between two transmit stamps, less that between the two calls: what the sender
    /// itself adds.
    #[serde(default)]
    pub(super) call_jitter: Option<f64>,
    /// Transit from the driver's transmit stamp, or else from the call, to the stamp: the median, and what 99 % and 99.9 %
    /// of the packets do not exceed.
    #[serde(default)]
    pub(super) transit_p50: Option<f64>,
    #[serde(default)]
    pub(super) transit_p99: Option<f64>,
    #[serde(default)]
    pub(super) transit_p999: Option<f64>,
    /// Share of the packets that were late, and the jitter without them ([`Transits`]).
    #[serde(default)]
    pub(super) interrupted: Option<f64>,
    #[serde(default)]
    pub(super) uninterrupted_jitter: Option<f64>,
    /// Of the control on the sender's core, before the flow ([`Control`]): jitter of the same work, interruptions in a
    /// second, and interrupts that the kernel served in a second.
    #[serde(default)]
    pub(super) machine_jitter: Option<f64>,
    #[serde(default)]
    pub(super) machine_interruptions: Option<f64>,
    #[serde(default)]
    pub(super) machine_interrupts: Option<f64>,
    /// The jitter that these interruptions cause in the median transit.
    #[serde(default)]
    pub(super) interruption_jitter: Option<f64>,
    /// CPU time of the capture, and how long it ran. None in runs of earlier versions.
    #[serde(default)]
    pub(super) cpu_ns: Option<u64>,
    #[serde(default)]
    pub(super) capture_ns: Option<u64>,
}

impl SourceJitter {
    /// That of a capture.
    fn of(
        source: JitterSource,
        departures: &Departures,
        captures: &Captures,
        control: &Control,
    ) -> Self {
        let (stamps, origin) = (&captures.stamps, departures.origin());
        let by_driver = times_between(stamps, |packet| departures.by_driver(packet), origin);
        let known = times_between(stamps, |packet| departures.of(packet), origin);
        let stamped: Vec<_> = known.iter().map(|(stamped, _)| *stamped).collect();
        let sent: Vec<_> = known.iter().map(|(_, sent)| *sent).collect();
        let errors = |known: &[(f64, f64)]| -> Vec<_> {
            known.iter().map(|(stamped, sent)| stamped - sent).collect()
        };
        let transits = transits(stamps, departures);
        let least = |times: &[f64]| times.iter().copied().reduce(f64::min);
        let most = |times: &[f64]| times.iter().copied().reduce(f64::max);
        Self {
            source: source.to_string(),
            sent: u64::try_from(departures.sent()).unwrap_or(u64::MAX),
            captured: length(&captures.stamps),
            lost: captures.ledger.lost(),
            times: length(&known),
            sent_min: least(&sent),
            sent_mean: mean(&sent),
            sent_max: most(&sent),
            sent_deviation: deviation(&sent),
            min: least(&stamped),
            mean: mean(&stamped),
            max: most(&stamped),
            deviation: deviation(&stamped),
            jitter: deviation(&errors(&known)),
            driver_jitter: deviation(&errors(&by_driver)),
            call_jitter: deviation(&errors(&calls_to_driver(departures))),
            transit_p50: transits.quantile(500),
            transit_p99: transits.quantile(990),
            transit_p999: transits.quantile(999),
            interrupted: transits.late_share(),
            uninterrupted_jitter: transits.uninterrupted_jitter(),
            machine_jitter: control.jitter_ns,
            machine_interruptions: Some(control.interruptions_per_second),
            machine_interrupts: control.interrupts_per_second,
            interruption_jitter: transits
                .quantile(500)
                .map(|ns| control.jitter_of_interruptions(ns)),
            cpu_ns: u64::try_from(captures.cpu_use.cpu.as_nanos()).ok(),
            capture_ns: u64::try_from(captures.cpu_use.wall.as_nanos()).ok(),
        }
    }
}

/// The transits from the driver's transmit stamps, or from the calls if those were not recorded.
pub(super) fn transits(stamps: &[(u64, Time<Utc>)], departures: &Departures) -> Transits {
    let transit = |(packet, stamp): &(u64, Time<Utc>)| {
        let departure = departures.nearest(*packet)?;
        Some((*packet, approximate((*stamp - departure).as_nanos())))
    };
    Transits::of(stamps.iter().filter_map(transit))
}

/// The times between transmit stamps of the driver, each with that between the calls.
fn calls_to_driver(departures: &Departures) -> Vec<(f64, f64)> {
    let numbers = (0..).take(departures.sent());
    let stamped = numbers.filter_map(|packet| Some((packet, departures.by_driver(packet)?)));
    times_between(&stamped.collect::<Vec<_>>(), |packet| departures.of(packet), departures.origin())
}

/// The times between the stamps of consecutive packets, each with that between the sendings at `sent`.
fn times_between(
    stamps: &[(u64, Time<Utc>)],
    sent: impl Fn(u64) -> Option<Time<Utc>>,
    origin: Option<Time<Utc>>,
) -> Vec<(f64, f64)> {
    let Some(origin) = origin else { return Vec::new() };
    let since = |time: Time<Utc>| approximate((time - origin).as_nanos());
    let passage = |(packet, stamp): &(u64, Time<Utc>)| Passage {
        packet: *packet,
        sent_ns: sent(*packet).map(since),
        stamped_ns: since(*stamp),
    };
    let known = |gap: &Gap| Some((gap.stamped_ns, gap.sent_ns?));
    gaps(stamps.iter().map(passage)).iter().filter_map(known).collect()
}

/// The study.
pub(super) struct Flows {
    size: JitterScale,
    probe: Probe,
    tick_ns: f64,
}

impl Flows {
    pub(super) fn new(size: JitterScale) -> anyhow::Result<Self> {
        let survey = survey();
        let source = survey.sources.iter().find(|source| source.name == Counter::select().name());
        let frequency_hz = source.and_then(|source| source.frequency_hz);
        let tick_ns = 1e9 / frequency_hz.context("the counter's frequency is not known")?;
        Ok(Self { size, probe: Probe::new()?, tick_ns })
    }

    /// The sources that this machine refused, each with the reason.
    pub(super) fn refusals(&self) -> Vec<(String, String)> {
        self.probe.refusals()
    }
}

impl Study for Flows {
    type Sample = SourceJitter;

    fn design(&self) -> Design {
        self.size.design()
    }

    fn lasts(&self, _: &Cell) -> Duration {
        self.size.flow + self.size.flow.min(MAX_CONTROL) + AROUND
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<SourceJitter>> {
        let (frame_bytes, pause, source) = self.size.of(cell);
        let interval = Span::from_nanos(pause.period_ns(frame_bytes).into());
        let (pattern, packets) = constant(frame_bytes, pause, self.size.flow)?;
        let recorded = if interval < SHORTEST_WITH_DRIVER {
            SendTimes::Call
        } else {
            SendTimes::CallAndDriver
        };
        let interval_ns = f64::from(pause.period_ns(frame_bytes));
        let lasts = self.size.flow.min(MAX_CONTROL);
        let core = Cores::choose(1).first().and_then(|cores| cores.convert);
        let packets_of_control = Control::packets_in(lasts, interval_ns);
        let control = Control::measure(core, self.tick_ns, interval_ns, packets_of_control)?;
        self.probe.set_polling(source.is_polled)?;
        let observed = self.probe.observe(&[source.capture], pattern, packets, recorded, stop)?;
        let Some(Some(captures)) = observed.captures.first() else { return Ok(Vec::new()) };
        ensure!(
            captures.ledger.balances(),
            "the ledger of {source} does not balance: its times are not to be trusted"
        );
        Ok(vec![SourceJitter::of(source, &observed.departures, captures, &control)])
    }
}
