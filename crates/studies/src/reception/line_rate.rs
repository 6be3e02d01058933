//! Packets measured at the line rate of a link: the second measure of the paper (Figure 6).
//!
//! The kernel makes the frames and sends them over a veth pair, faster than a program can send replicas. A kernel thread on
//! another core receives them from the veth's ring, as the softIRQ of a network card does from that of the card, and the
//! capture reads them. Frames for which the ring had no room were never received.

use std::time::Duration;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use wirestamp_capture::{CapturedPacket, Config, Cores, Direction, Error, Sink, Stop};
use wirestamp_clock::{ClockService, Counter, Span};
use wirestamp_report::format::{approximate, real};
use wirestamp_traffic::live::{Limit, Pace};

use super::cells::Conditions;
use super::paper::{FRAME_BYTES, LINE_RATES, LOADS, Speed};
use crate::experiment::{Cell, Design, Estimate, Factor, Runs, Study};
use crate::replicas::Technique;
use crate::tester::{
    Bed, CAPTURE_CORE, Ends, INTERFACE, Load, SoftirqThread, Spinner, capture_during,
};

/// Max frames that are made at a time. The ring of a veth has room for 256 (`VETH_RING_SIZE` of drivers/net/veth.c).
const MAX_BURST_FRAMES: u32 = 192;

/// Duration of a run without sending: start and end of the capture.
const AROUND: Duration = Duration::from_millis(350);

/// Techniques of this part: those of the paper, with stamps that the kernel takes.
fn techniques() -> Vec<Technique> {
    let is_of_kernel = |it: &Technique| it.stamp == it.method.default_stamp();
    Technique::all().filter(|it| is_of_kernel(it) && it.works_here()).collect()
}

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineRateScale {
    pub(super) repetitions: u32,
    /// How long a run sends.
    pub(super) time_ms: u32,
    pub(super) frame_bytes: &'static [u16],
    pub(super) speeds: &'static [Speed],
}

impl LineRateScale {
    /// The paper's frames and links, in six minutes.
    pub(super) const FULL: Self =
        Self { repetitions: 10, time_ms: 200, frame_bytes: &FRAME_BYTES, speeds: &LINE_RATES };
    /// Those of Figure 6, in twenty seconds.
    pub(super) const QUICK: Self =
        Self { repetitions: 2, time_ms: 50, frame_bytes: &[64], speeds: &[LINE_RATES[0]] };
}

/// Frames of a run: a row of the raw results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Arrived {
    /// Sent, and how long that took.
    pub(super) sent: u64,
    pub(super) elapsed_ns: i64,
    /// For which the ring of the receiving interface had no room.
    pub(super) ring_dropped: u64,
    /// Lost by the capture, by its ledger.
    pub(super) capture_lost: u64,
    /// Delivered by the capture.
    pub(super) captured: u64,
}

impl Arrived {
    /// The share of the frames sent that the capture delivered, in percent; none without frames.
    pub(super) fn measured_percent(run: &[Self]) -> Option<f64> {
        Self::percent(run, |run| run.captured)
    }

    fn ring_dropped_percent(run: &[Self]) -> Option<f64> {
        Self::percent(run, |run| run.ring_dropped)
    }

    fn capture_lost_percent(run: &[Self]) -> Option<f64> {
        Self::percent(run, |run| run.capture_lost)
    }

    /// `part` of the frames sent, in percent; none without frames.
    fn percent(run: &[Self], part: fn(&Self) -> u64) -> Option<f64> {
        let run = run.first().filter(|run| run.sent > 0)?;
        Some(100.0 * real(part(run)) / real(run.sent))
    }

    fn packets_per_second(run: &[Self]) -> Option<f64> {
        let run = run.first().filter(|run| run.elapsed_ns > 0)?;
        Some(real(run.sent) * 1e9 / approximate(run.elapsed_ns))
    }

    /// Time from one frame that was taken from the ring of the interface to the next, in nanoseconds; none without frames.
    pub(super) fn ns_per_received_frame(&self) -> Option<f64> {
        let received = self.sent.checked_sub(self.ring_dropped).filter(|frames| *frames > 0)?;
        Some(approximate(self.elapsed_ns) / real(received))
    }

    /// Both runs together.
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            elapsed_ns: self.elapsed_ns + other.elapsed_ns,
            ring_dropped: self.ring_dropped + other.ring_dropped,
            capture_lost: self.capture_lost + other.capture_lost,
            captured: self.captured + other.captured,
        }
    }
}

/// The study, with the link that it needs.
pub(super) struct LineRate {
    size: LineRateScale,
    techniques: Vec<Technique>,
    /// None until the first run, so that stored results can be shown without privileges.
    link: Option<(Bed, ClockService)>,
}

impl LineRate {
    pub(super) fn new(size: LineRateScale) -> Self {
        Self { size, techniques: techniques(), link: None }
    }

    fn link(&mut self) -> anyhow::Result<&(Bed, ClockService)> {
        let link = match self.link.take() {
            Some(link) => link,
            None => link()?,
        };
        Ok(self.link.insert(link))
    }
}

/// A link whose frames the core of the capture receives, and a clock.
///
/// # Errors
/// When privileges or a second core are missing, or the counter cannot be calibrated.
pub(super) fn link() -> anyhow::Result<(Bed, ClockService)> {
    wirestamp_lab::check_privilege()?;
    let bed = Bed::build()?;
    SoftirqThread::receive_on(&bed, CAPTURE_CORE)?;
    let clock = ClockService::start(Counter::select());
    Ok((bed, clock.context("cannot calibrate the counter")?))
}

/// Frames at the line rate of a link for some milliseconds.
///
/// # Errors
/// When the rate is out of range.
pub(super) fn load(frame_bytes: u16, speed: Speed, time_ms: u32) -> anyhow::Result<Load> {
    let pace = Pace::rate(speed.frames_per_second(frame_bytes))?;
    Ok(Load {
        frame_bytes,
        pace: pace.with_burst(pace.burst().min(MAX_BURST_FRAMES))?,
        limit: Limit { frames: None, duration: Some(Span::from_millis(time_ms.into())) },
        ends: Ends::of_the_bed(),
    })
}

/// Sends a load over a link to a capture.
///
/// # Errors
/// When the capture cannot be opened or fails, or nothing can be sent.
pub(super) fn receive(
    Technique { method, stamp }: Technique,
    load: &Load,
    (bed, clock): &(Bed, ClockService),
    stop: &Stop,
) -> anyhow::Result<Arrived> {
    let core = Some(CAPTURE_CORE);
    let lane = Cores { acquire: core, convert: core, consume: core };
    let config = Config {
        direction: Direction::In,
        lanes: vec![lane],
        ..Config::new(INTERFACE, method, stamp)
    };
    let send = |_: &_| load.send(bed, clock, stop.flag());
    let trial = capture_during((bed, clock), config, |_| Ok(Uncounted), send)?;
    Ok(Arrived {
        sent: trial.sent.sent,
        elapsed_ns: trial.sent.elapsed.as_nanos(),
        ring_dropped: trial.sent.dropped,
        capture_lost: trial.ledger.lost(),
        captured: trial.ledger.delivered,
    })
}

impl Study for LineRate {
    type Sample = Arrived;

    fn design(&self) -> Design {
        let LineRateScale { repetitions, time_ms, frame_bytes, speeds } = self.size;
        let techniques: Vec<_> = self.techniques.iter().map(|it| it.name()).collect();
        let sizes: Vec<_> = frame_bytes.iter().map(u16::to_string).collect();
        Design {
            name: "reception-line-rate".to_owned(),
            factors: vec![
                Factor::new("technique", techniques.iter().map(String::as_str)),
                Factor::new("frame size (bytes)", sizes.iter().map(String::as_str)),
                Factor::new("link speed", speeds.iter().map(|speed| speed.name)),
                Factor::new("CPU", LOADS),
            ],
            repetitions,
            constants: vec![("milliseconds of a run".to_owned(), time_ms.to_string())],
        }
    }

    fn lasts(&self, _: &Cell) -> Duration {
        AROUND + Duration::from_millis(self.size.time_ms.into())
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Arrived>> {
        let conditions = Conditions::of(&self.design(), cell);
        let conditions = conditions.context("a cell without levels")?;
        let Conditions { technique, frame_bytes, speed, stressed } = conditions;
        let speed = self.size.speeds.iter().find(|it| it.name == speed);
        let load = load(frame_bytes, *speed.context("no such speed")?, self.size.time_ms)?;
        let technique = Technique::named(&technique).context("no such technique")?;
        let link = self.link()?;
        let _spinner = stressed.then(|| Spinner::on(CAPTURE_CORE));
        Ok(vec![receive(technique, &load, link, stop)?])
    }
}

/// Takes packets and does nothing: the ledger counts them.
struct Uncounted;

impl Sink for Uncounted {
    fn packet(&mut self, _: &CapturedPacket<'_>) -> Result<(), Error> {
        Ok(())
    }
}

/// One combination of levels.
#[derive(Clone, Debug, Serialize)]
pub(super) struct LineRateCell {
    #[serde(flatten)]
    pub(super) conditions: Conditions,
    pub(super) runs: usize,
    /// Duration of a run.
    pub(super) elapsed_ns: Option<Estimate>,
    /// Frames a second at the line rate, which the sender tries to reach.
    pub(super) requested_per_second: Option<u64>,
    /// Frames of all runs.
    pub(super) sent: u64,
    /// Frames a second that were sent.
    pub(super) packets_per_second: Option<Estimate>,
    /// The share of the frames of a run that the capture delivered, in percent.
    pub(super) measured_percent: Option<Estimate>,
    /// The share for which the ring of the receiving interface had no room, in percent.
    pub(super) ring_dropped_percent: Option<Estimate>,
    /// The share that the capture lost, by its ledger, in percent.
    pub(super) capture_lost_percent: Option<Estimate>,
    /// For which the ring of the receiving interface had no room.
    pub(super) ring_dropped: u64,
    /// Lost by the capture, by its ledger.
    pub(super) capture_lost: u64,
    /// Delivered by the capture.
    pub(super) captured: u64,
}

/// Computes the results of the runs.
pub(super) fn cells(runs: &Runs<Arrived>) -> Vec<LineRateCell> {
    let cells = runs.design.cells();
    let cells = cells.iter().enumerate().filter_map(|(index, cell)| {
        let estimate = |of: fn(&[Arrived]) -> Option<f64>| {
            Estimate::of(&runs.of_cell(index).filter_map(of).collect::<Vec<_>>())
        };
        let sum = |of: fn(&Arrived) -> u64| runs.of_cell(index).flatten().map(of).sum();
        let conditions = Conditions::of(&runs.design, cell)?;
        let speed = LINE_RATES.into_iter().find(|speed| speed.name == conditions.speed);
        Some(LineRateCell {
            requested_per_second: speed.map(|it| it.frames_per_second(conditions.frame_bytes)),
            conditions,
            runs: runs.of_cell(index).count(),
            elapsed_ns: estimate(|run| Some(approximate(run.first()?.elapsed_ns))),
            sent: sum(|run| run.sent),
            packets_per_second: estimate(Arrived::packets_per_second),
            measured_percent: estimate(Arrived::measured_percent),
            ring_dropped_percent: estimate(Arrived::ring_dropped_percent),
            capture_lost_percent: estimate(Arrived::capture_lost_percent),
            ring_dropped: sum(|run| run.ring_dropped),
            capture_lost: sum(|run| run.capture_lost),
            captured: sum(|run| run.captured),
        })
    });
    cells.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_share_is_that_of_the_frames_sent() {
        let run = Arrived {
            sent: 1_000,
            elapsed_ns: 1_000_000,
            ring_dropped: 100,
            capture_lost: 150,
            captured: 750,
        };
        assert_eq!(Arrived::measured_percent(&[run]), Some(75.0));
        assert_eq!(Arrived::packets_per_second(&[run]), Some(1e6));
        let twice = run.plus(run);
        assert_eq!((twice.sent, twice.captured), (2_000, 1_500));
        assert_eq!(twice.ns_per_received_frame(), Some(2_000_000.0 / 1_800.0));
        assert_eq!(Arrived::default().ns_per_received_frame(), None);
        assert_eq!(Arrived::measured_percent(&[Arrived::default()]), None);
    }

    #[test]
    fn shares_of_a_cell_add_up_to_all_frames_sent() {
        let design = LineRate::new(LineRateScale::QUICK).design();
        let turns: Vec<_> = design.order(1).into_iter().filter(|turn| turn.cell == 0).collect();
        let arrived = |(sent, ring_dropped): (u64, u64)| {
            let captured = sent - ring_dropped - 25;
            Arrived { sent, elapsed_ns: 1_000, ring_dropped, capture_lost: 25, captured }
        };
        // Runs of different lengths: the sums of both have other shares.
        let samples = [(100, 50), (900, 0)].map(|run| vec![arrived(run)]);
        let runs = turns.into_iter().zip(samples).collect();
        let runs = Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs };
        let cell = cells(&runs).swap_remove(0);
        assert_eq!((cell.runs, cell.requested_per_second), (2, Some(1_488_095)));
        let mean = |of: Option<Estimate>| of.unwrap().mean;
        let dropped = mean(cell.ring_dropped_percent);
        assert!((dropped - 25.0).abs() < 1e-9, "{dropped}");
        let all = dropped + mean(cell.capture_lost_percent) + mean(cell.measured_percent);
        assert!((all - 100.0).abs() < 1e-9, "{all}");
        assert!((mean(cell.elapsed_ns) - 1_000.0).abs() < 1e-9);
    }

    #[test]
    fn conditions_are_those_of_the_design() {
        let study = LineRate::new(LineRateScale::FULL);
        let design = study.design();
        let cells = design.cells();
        assert_eq!(cells.len(), study.techniques.len() * 3 * 2 * 2);
        let last = Conditions::of(&design, &cells[cells.len() - 1]).unwrap();
        assert_eq!((last.frame_bytes, &*last.speed, last.stressed), (1518, "10G", true));
    }
}
