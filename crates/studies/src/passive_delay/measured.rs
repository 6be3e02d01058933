//! Raw result of a run: results of the captures, and the truth.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use wirestamp_metrics::{Outcome, Quality};

use super::reference_capture::{Departures, Left};
use super::setting::PASSIVE_PORT;
use crate::mesh::Total;
use crate::tester::{CpuUse, load_percent};
use wirestamp_report::format::{approximate, length, real};
use wirestamp_session::TapReport;

/// A run: a row of the paper's tables. Counts and times are of the passive traffic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    /// How the captures stamped.
    pub(super) stamp: String,
    /// How long was sent, in seconds.
    pub(super) seconds: f64,
    /// Reason why the truth is unknown; `None` if known.
    pub(super) unknown: Option<String>,
    /// Packets that the sender handed to its kernel.
    pub(super) sent: u64,
    /// Of them, those that the receiving socket got.
    pub(super) arrived: u64,
    /// Packets dropped by the bottleneck, of all traffic.
    pub(super) bottleneck_dropped: u64,
    /// Packets of all traffic that were sent and did not arrive.
    pub(super) missing: u64,
    /// The delays of all packets that arrived, in nanoseconds: the min, by the reference captures.
    pub(super) true_min_ns: f64,
    /// Their mean.
    pub(super) true_mean_ns: f64,
    /// The longest.
    pub(super) true_max_ns: f64,
    /// The same by the captures.
    pub(super) min_ns: f64,
    /// Their mean.
    pub(super) mean_ns: f64,
    /// The longest.
    pub(super) max_ns: f64,
    /// Median of the absolute error of a packet's delay. Not available from a mesh.
    pub(super) packet_error_ns: f64,
    /// Packets at tap A, by the captures.
    pub(super) at_a: u64,
    /// Packets at tap B.
    pub(super) at_b: u64,
    /// Packets lost by the network, as the captures report.
    pub(super) lost: u64,
    /// Packets of undetermined outcome.
    #[serde(rename = "given_up")]
    pub(super) undetermined: u64,
    /// Packets with a delay below zero; of a mesh, seconds with one.
    pub(super) negative: u64,
    /// Packets that the capture at A lost itself, by its ledger.
    pub(super) own_loss_a: u64,
    /// The same at B.
    pub(super) own_loss_b: u64,
    /// Whether both ledgers account for every packet.
    pub(super) balanced: bool,
    /// CPU time of the capture at A with its tasks. None with a mesh, and in runs of earlier versions.
    #[serde(default)]
    pub(super) cpu_ns_a: Option<u64>,
    /// The same at B.
    #[serde(default)]
    pub(super) cpu_ns_b: Option<u64>,
    /// How long the capture at A ran.
    #[serde(default)]
    pub(super) capture_ns_a: Option<u64>,
    /// The same at B.
    #[serde(default)]
    pub(super) capture_ns_b: Option<u64>,
}

impl Measured {
    /// Whether our ledgers show no loss of our own.
    pub(super) fn saw_everything(&self) -> bool {
        self.balanced && self.own_loss_a + self.own_loss_b == 0
    }

    /// Packets that the network lost, by the sender and the receiving socket.
    pub(super) fn truly_lost(&self) -> u64 {
        self.sent.saturating_sub(self.arrived)
    }

    /// Errors of the min, mean and max delay, in nanoseconds.
    pub(super) fn errors_ns(&self) -> [f64; 3] {
        [
            self.min_ns - self.true_min_ns,
            self.mean_ns - self.true_mean_ns,
            self.max_ns - self.true_max_ns,
        ]
    }

    /// Adds the ledgers of the captures.
    pub(super) fn of_taps(&mut self, [a, b]: &[TapReport; 2]) {
        self.stamp = format!("{} {}", a.facts.method, a.facts.stamp);
        (self.own_loss_a, self.own_loss_b) = (a.ledger.lost(), b.ledger.lost());
        self.balanced = a.balanced && b.balanced;
    }

    /// Adds the CPU use of the captures.
    pub(super) fn of_cpu(&mut self, [a, b]: [CpuUse; 2]) {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).ok();
        (self.cpu_ns_a, self.capture_ns_a) = (nanos(a.cpu), nanos(a.wall));
        (self.cpu_ns_b, self.capture_ns_b) = (nanos(b.cpu), nanos(b.wall));
    }

    /// CPU load of the captures at A and at B, in percent of a core, if it was measured.
    pub(super) fn loads_percent(&self) -> [Option<f64>; 2] {
        let times = [(self.cpu_ns_a, self.capture_ns_a), (self.cpu_ns_b, self.capture_ns_b)];
        times.map(|(cpu, capture)| load_percent(cpu?, capture?))
    }

    /// Adds the result of the captures and the truth of each packet.
    pub(super) fn of_packets(&mut self, found: &CaptureResult, truth: &[Option<i64>]) {
        let counts = found.quality.counts();
        (self.at_a, self.at_b, self.lost) = (counts.sent, counts.received, counts.lost);
        self.undetermined = counts.undetermined_sent + counts.undetermined_received;
        self.negative = length(&found.delays.iter().filter(|(_, d)| *d < 0).collect::<Vec<_>>());
        let [min, mean, max] = summary(found.delays.iter().map(|(_, delay)| *delay));
        (self.min_ns, self.mean_ns, self.max_ns) = (min, mean, max);
        self.of_truth(truth);
        let of_packet = |&(number, delay): &(u64, i64)| {
            let truth = truth.get(usize::try_from(number).ok()?)?.as_ref()?;
            Some((delay - truth).abs())
        };
        let mut errors: Vec<_> = found.delays.iter().filter_map(of_packet).collect();
        errors.sort_unstable();
        self.packet_error_ns = errors.get(errors.len() / 2).copied().map_or(f64::NAN, approximate);
    }

    /// Adds the result of a mesh's task and the truth of each packet.
    pub(super) fn of_task(&mut self, found: &Total, truth: &[Option<i64>]) {
        let counts = found.counts;
        "mesh".clone_into(&mut self.stamp);
        (self.at_a, self.lost) = (counts.sent, counts.lost);
        self.at_b =
            counts.matched + counts.duplicated + counts.unexpected + counts.undetermined_received;
        self.undetermined = counts.undetermined_sent + counts.undetermined_received;
        // The outcome of a packet is undetermined where the capture at the other end lost packets.
        (self.own_loss_a, self.own_loss_b) =
            (counts.undetermined_received, counts.undetermined_sent);
        self.balanced = counts.sent == counts.matched + counts.lost + counts.undetermined_sent;
        self.negative = found.negative;
        [self.min_ns, self.mean_ns, self.max_ns] = found.delays_ns();
        self.packet_error_ns = f64::NAN;
        self.of_truth(truth);
    }

    fn of_truth(&mut self, truth: &[Option<i64>]) {
        let truth: Vec<_> = truth.iter().flatten().copied().collect();
        let (seen, arrived) = (length(&truth), self.arrived);
        if seen != arrived && self.unknown.is_none() {
            self.unknown = Some(format!(
                "the reference captures saw {seen} packets, of which {arrived} arrived"
            ));
        }
        [self.true_min_ns, self.true_mean_ns, self.true_max_ns] = summary(truth.into_iter());
    }
}

/// Result of the captures for the passive traffic.
#[derive(Debug, Default)]
pub(super) struct CaptureResult {
    quality: Quality,
    /// The place of each packet among those that left A, and its delay in nanoseconds.
    delays: Vec<(u64, i64)>,
}

impl CaptureResult {
    /// Records an outcome of the correlator.
    pub(super) fn record(&mut self, outcome: &Outcome) {
        if outcome.flow().destination.port() != PASSIVE_PORT {
            return;
        }
        self.quality.record(outcome);
        if let Outcome::Matched { sequence, delay, .. } = outcome {
            self.delays.push((*sequence, delay.as_nanos()));
        }
    }
}

/// The delay of each packet by its number, in nanoseconds: from when it left the source for tap A to when
/// it left the bottleneck for tap B. None for those that did not.
pub(super) fn true_delays([source, bottleneck]: &[Departures; 2]) -> Vec<Option<i64>> {
    let delay =
        |(left, passed): (&Left, &Left)| Some((*passed)?.cast_signed() - (*left)?.cast_signed());
    source.iter().zip(bottleneck).map(delay).collect()
}

/// Min, mean and max; NaN without values.
pub(crate) fn summary(values: impl Iterator<Item = i64> + Clone) -> [f64; 3] {
    let ends = values.clone().min().zip(values.clone().max());
    let Some((min, max)) = ends else { return [f64::NAN; 3] };
    let (sum, count) =
        values.fold((0, 0), |(sum, count), value| (sum + i128::from(value), count + 1));
    // Differences from the least are small, so that no digit of a nanosecond is lost.
    let above = u64::try_from(sum - i128::from(min) * i128::from(count)).unwrap_or(u64::MAX);
    let mean = approximate(min) + real(above) / real(count);
    [approximate(min), mean, approximate(max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The row of a run, in CSV, without the columns whose names start with `without`.
    fn row(run: &Measured, without: &str) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.serialize(run).unwrap();
        let text = String::from_utf8(writer.into_inner().unwrap()).unwrap();
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        let kept = |line: &Vec<&str>| {
            let columns = line.iter().zip(&lines[0]).filter(|(_, name)| !name.starts_with(without));
            columns.map(|(value, _)| *value).collect::<Vec<_>>().join(",")
        };
        lines.iter().map(kept).collect::<Vec<_>>().join("\n")
    }

    fn read(text: &str) -> Measured {
        csv::Reader::from_reader(text.as_bytes()).deserialize().next().unwrap().unwrap()
    }

    #[test]
    fn run_of_an_earlier_version_has_no_load() {
        let mut run = Measured { sent: 5, ..Measured::default() };
        let of = |ms| CpuUse { cpu: Duration::from_millis(ms), wall: Duration::from_millis(50) };
        run.of_cpu([of(5), of(10)]);
        assert_eq!(read(&row(&run, "none")).loads_percent(), [Some(10.0), Some(20.0)]);
        let earlier = read(&row(&run, "cpu_ns"));
        assert_eq!((earlier.sent, earlier.loads_percent()), (5, [None, None]));
    }
}
