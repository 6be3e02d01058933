//! Gaps and bursts before and after the device, beside those of an ideal one.

use serde::Serialize;

use super::bed::TrainPacket;
use super::bucket::{Device, FRAMES, gaps};
use crate::experiment::{Claim, Estimate, Runs, deviation, mean};
use crate::overhead::series;
use crate::timers::Cost;
use wirestamp_report::format::approximate;

/// Max difference of the burstiness from that of an ideal bucket, in frames, that our claim allows.
const TOLERANCE_FRAMES: f64 = 1.0;
/// Burstiness, in frames, that is written as more than the min of 1.00.
const ABOVE_MIN_FRAMES: f64 = 1.005;

/// A value at both taps, and as it would be after an ideal bucket.
#[derive(Clone, Debug, Serialize)]
pub(in crate::reception) struct Taps<T> {
    pub(in crate::reception) before: T,
    pub(in crate::reception) after: T,
    /// After an ideal bucket that gets the packets when the tap before it stamps them.
    pub(in crate::reception) ideal: T,
}

/// Results of a link speed and a depth of the bucket. All times are in nanoseconds.
#[derive(Clone, Debug, Serialize)]
pub(in crate::reception) struct TrainCell {
    /// The link speed.
    pub(in crate::reception) speed: String,
    /// Depth of the bucket.
    pub(in crate::reception) depth_frames: u32,
    /// Serialisation time of a frame.
    pub(in crate::reception) frame_ns: f64,
    pub(in crate::reception) runs: usize,
    /// Trains of which both taps stamped all packets.
    pub(in crate::reception) trains: usize,
    /// Other trains, which are not evaluated.
    pub(in crate::reception) incomplete_trains: usize,
    /// Times between packets that follow each other in a train.
    pub(in crate::reception) gap_ns: Taps<Option<Cost>>,
    /// Frames of the longest burst of a train, mean.
    pub(in crate::reception) longest_burst: Taps<Option<Estimate>>,
    /// Burstiness of a train in frames, median of a run.
    pub(in crate::reception) burstiness_frames: Taps<Option<Estimate>>,
    /// Gap after the device minus that after an ideal bucket, mean of a run.
    pub(in crate::reception) gap_error_ns: Option<Estimate>,
    /// The standard deviation of that in a run.
    pub(in crate::reception) gap_error_deviation_ns: Option<Estimate>,
}

/// A train of which both taps stamped all packets: times in nanoseconds.
type Train = Taps<Vec<f64>>;

impl<T> Taps<T> {
    /// Values computed of all three.
    fn map<U>(&self, of: impl Fn(&T) -> U) -> Taps<U> {
        Taps { before: of(&self.before), after: of(&self.after), ideal: of(&self.ideal) }
    }
}

/// The complete trains of a run, and the number of the others.
fn trains(run: &[TrainPacket], device: Device) -> (Vec<Train>, usize) {
    let all: Vec<_> = run.chunk_by(|one, next| one.train == next.train).collect();
    let train = |packets: &&[TrainPacket]| {
        let stamps = |of: fn(&TrainPacket) -> Option<i64>| {
            packets.iter().map(|packet| of(packet).map(approximate)).collect::<Option<Vec<_>>>()
        };
        let before = stamps(|packet| packet.before_ns)?;
        let after = stamps(|packet| packet.after_ns)?;
        let is_whole = u32::try_from(before.len()) == Ok(FRAMES);
        is_whole.then(|| Train { ideal: device.departures(&before), before, after })
    };
    let complete: Vec<_> = all.iter().filter_map(train).collect();
    let incomplete = all.len() - complete.len();
    (complete, incomplete)
}

/// Gaps of all trains of a run at one of the places.
fn gaps_of(run: &[Train], place: impl Fn(&Train) -> &[f64]) -> Vec<f64> {
    run.iter().flat_map(|train| gaps(place(train))).collect()
}

/// How much longer the gaps of a run are than those after an ideal bucket.
fn gap_errors(run: &[Train]) -> Vec<f64> {
    let after = gaps_of(run, |train| &train.after);
    let ideal = gaps_of(run, |train| &train.ideal);
    after.iter().zip(ideal).map(|(after, ideal)| after - ideal).collect()
}

/// The median of the values of all trains of a run.
fn median(run: &[Train], of: impl Fn(&Train) -> Option<f64>) -> Option<f64> {
    Some(series::cost(&run.iter().filter_map(of).collect::<Vec<_>>())?.p50)
}

/// Computes the results of the runs.
pub(in crate::reception) fn cells(runs: &Runs<TrainPacket>) -> Vec<TrainCell> {
    let cells = runs.design.cells();
    let cells = cells.iter().enumerate().filter_map(|(index, cell)| {
        let device = Device::of(&runs.design, cell)?;
        let (runs, incomplete): (Vec<_>, Vec<_>) =
            runs.of_cell(index).map(|run| trains(run, device)).unzip();
        (!runs.is_empty()).then(|| of_cell(device, &runs, incomplete.iter().sum()))
    });
    cells.collect()
}

fn of_cell(device: Device, runs: &[Vec<Train>], incomplete_trains: usize) -> TrainCell {
    let estimate = |of: &dyn Fn(&[Train]) -> Option<f64>| {
        Estimate::of(&runs.iter().filter_map(|run| of(run)).collect::<Vec<_>>())
    };
    let places: Taps<fn(&Train) -> &[f64]> = Taps {
        before: |train| &train.before,
        after: |train| &train.after,
        ideal: |train| &train.ideal,
    };
    TrainCell {
        speed: device.speed.name.to_owned(),
        depth_frames: device.depth_frames,
        frame_ns: device.frame_ns(),
        runs: runs.len(),
        trains: runs.iter().map(Vec::len).sum(),
        incomplete_trains,
        gap_ns: places.map(|place| {
            series::cost(&runs.iter().flat_map(|run| gaps_of(run, place)).collect::<Vec<_>>())
        }),
        longest_burst: places.map(|place| {
            estimate(&|run| {
                let longest = run.iter().filter_map(|train| device.longest_burst(place(train)));
                mean(&longest.collect::<Vec<_>>())
            })
        }),
        burstiness_frames: places
            .map(|place| estimate(&|run| median(run, |train| device.burstiness(place(train))))),
        gap_error_ns: estimate(&|run| mean(&gap_errors(run))),
        gap_error_deviation_ns: estimate(&|run| deviation(&gap_errors(run))),
    }
}

/// Our claim about the burstiness after the device. The paper has no finding on it.
///
/// Rule, from before the first run: the response of a run is the median over its trains of the difference between the
/// burstiness after the device and that after an ideal bucket, without its sign. The claim is confirmed if it is below one
/// frame at each link speed and depth, with 95 % confidence for each, and contradicted if it is above one frame at one of them,
/// with 95 % confidence for all together. A device that is not there, and stamps that deviate by a serialisation time contradict
/// it. A timer of the device that is late does not: it delays frames, but makes no burst longer than the depth; the error of
/// the gaps includes it. Where the sender is slower than the link, an ideal bucket changes nothing, and the claim is about the
/// path and the stamps alone. It includes no network card, which a veth does not have.
pub(in crate::reception) fn claim(runs: Option<&Runs<TrainPacket>>) -> Claim {
    let claim = "two taps measure the burstiness of a packet train after a token bucket to one frame (difference from \
                 an ideal bucket)";
    let found = runs.map(differences).unwrap_or_default();
    let lead = |(_, found): &(Device, Option<Estimate>)| {
        found.map(|it| it.around(TOLERANCE_FRAMES - it.mean))
    };
    let number = |(device, found): &(Device, Option<Estimate>)| {
        let (speed, depth) = (device.speed.name, device.depth_frames);
        Some(format!("{:.2} at {speed} with a depth of {depth}", (*found)?.mean))
    };
    let numbers: Vec<_> = found.iter().filter_map(number).collect();
    let numbers = match numbers[..] {
        [] => String::new(),
        _ => format!(
            "difference in frames: {}{}",
            numbers.join(", "),
            runs.and_then(one_sided).unwrap_or_default()
        ),
    };
    Claim::goal(claim, found.iter().map(lead).collect(), &numbers)
}

/// Under which conditions the burstiness after the device can also be too small, if not under all: elsewhere it has its min
/// after an ideal bucket.
fn one_sided(runs: &Runs<TrainPacket>) -> Option<String> {
    let cells = cells(runs);
    let is_above = |cell: &&TrainCell| {
        cell.burstiness_frames.ideal.is_some_and(|ideal| ideal.mean >= ABOVE_MIN_FRAMES)
    };
    let above: Vec<_> = cells.iter().filter(is_above).collect();
    if above.len() == cells.len() {
        return None;
    }
    let name = |cell: &&TrainCell| format!("{} with a depth of {}", cell.speed, cell.depth_frames);
    let names = above.iter().map(name).collect::<Vec<_>>().join(" and ");
    Some(match above[..] {
        [] => {
            "; the ideal burstiness is the min, 1 frame: only a larger one could differ".to_owned()
        }
        _ => format!(
            "; only {names} can differ in both directions: elsewhere the ideal burstiness is the min, 1 frame"
        ),
    })
}

/// The response of our claim for each device.
fn differences(runs: &Runs<TrainPacket>) -> Vec<(Device, Option<Estimate>)> {
    let cells = runs.design.cells();
    let cells = cells.iter().enumerate().filter_map(|(index, cell)| {
        let device = Device::of(&runs.design, cell)?;
        let difference = |train: &Train| {
            let after = device.burstiness(&train.after)?;
            Some((after - device.burstiness(&train.ideal)?).abs())
        };
        let responses =
            runs.of_cell(index).filter_map(|run| median(&trains(run, device).0, difference));
        Some((device, Estimate::of(&responses.collect::<Vec<_>>())))
    });
    cells.collect()
}
