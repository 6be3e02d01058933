//! Raw result of a run: both measurements of the same packets.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wirestamp_active::reflector::ReflectorCounts;
use wirestamp_active::sender::{ReceivedAnswer, TestReport};
use wirestamp_metrics::{Counts, Outcome, ReplyKind};

use crate::mesh::Total;
use crate::passive_delay::summary;
use wirestamp_report::format::{approximate, length};
use wirestamp_session::TapReport;

/// A run: a row of the report's tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Measured {
    /// Packets of the test, by the sender.
    pub(super) sent: u64,
    /// Those that reached the reflector, by its own count.
    pub(super) reflected: u64,
    /// Packets that reached the reflector, as the sender computes from the answers.
    pub(super) active_received: u64,
    /// Packets that may have reached the reflector: no answer arrived.
    pub(super) undecided: u64,
    /// Packets at tap A.
    pub(super) at_a: u64,
    /// Packets at tap B.
    pub(super) at_b: u64,
    /// Packets lost by the captures themselves, and packets of undetermined outcome.
    pub(super) own_loss: u64,
    /// Whether both ledgers account for every packet.
    pub(super) balanced: bool,
    /// Packets and answers whose send time was read by a program, not by the kernel. Not available from a mesh.
    pub(super) stamped_late: u64,
    /// Min active delay in nanoseconds, of all packets with a known delay.
    pub(super) active_min_ns: f64,
    /// Their mean.
    pub(super) active_mean_ns: f64,
    /// The longest.
    pub(super) active_max_ns: f64,
    /// The same measured passively.
    pub(super) passive_min_ns: f64,
    /// Their mean.
    pub(super) passive_mean_ns: f64,
    /// The longest.
    pub(super) passive_max_ns: f64,
    /// Active delays below zero; of a mesh, seconds with one.
    pub(super) negative: u64,
    /// Median of the absolute difference of both delays of a packet. Not available from a mesh.
    pub(super) packet_difference_ns: f64,
}

impl Measured {
    pub(super) fn of(
        report: &TestReport,
        reflector: ReflectorCounts,
        active: &Active,
        passive: &Passive,
        taps: &[TapReport; 2],
    ) -> Self {
        let counts = report.both.counts;
        let passive = passive.of_the_test(counts.sent);
        let [a, b] = taps;
        let own_loss = a.ledger.lost() + b.ledger.lost() + passive.undetermined;
        let [active_min_ns, active_mean_ns, active_max_ns] = summary(active.0.values().copied());
        let [passive_min_ns, passive_mean_ns, passive_max_ns] =
            summary(passive.delays.values().copied());
        let (sent, late) = (report.stamped_by_kernel, report.returned_by_kernel);
        Self {
            sent: counts.sent,
            reflected: reflector.reflected.saturating_sub(report.closing),
            active_received: counts.sent - counts.lost_there - counts.undecided,
            undecided: counts.undecided,
            at_a: length(&passive.at_a),
            at_b: passive.at_b,
            own_loss,
            balanced: a.balanced && b.balanced,
            stamped_late: counts.sent.saturating_sub(sent) + counts.answered.saturating_sub(late),
            active_min_ns,
            active_mean_ns,
            active_max_ns,
            passive_min_ns,
            passive_mean_ns,
            passive_max_ns,
            negative: length(&active.0.values().filter(|delay| **delay < 0).collect::<Vec<_>>()),
            packet_difference_ns: median_difference(&active.0, &passive.delays),
        }
    }

    /// Results of two tasks of a mesh for the same packets.
    pub(super) fn of_tasks(active: &Total, passive: &Total) -> Self {
        let received = |total: &Total| total.counts.matched + total.counts.duplicated;
        let [active_min_ns, active_mean_ns, active_max_ns] = active.delays_ns();
        let [passive_min_ns, passive_mean_ns, passive_max_ns] = passive.delays_ns();
        let Counts { sent, matched, lost, undetermined_sent, undetermined_received, .. } =
            passive.counts;
        Self {
            sent: active.counts.sent,
            reflected: received(active),
            active_received: received(active),
            undecided: active.counts.undetermined_sent,
            at_a: sent,
            at_b: received(passive),
            own_loss: undetermined_sent + undetermined_received,
            balanced: sent == matched + lost + undetermined_sent,
            stamped_late: 0,
            active_min_ns,
            active_mean_ns,
            active_max_ns,
            passive_min_ns,
            passive_mean_ns,
            passive_max_ns,
            negative: active.negative,
            packet_difference_ns: f64::NAN,
        }
    }

    /// Whether the captures account for every packet and lost none.
    pub(super) fn saw_everything(&self) -> bool {
        self.balanced && self.own_loss == 0
    }

    /// Differences of min, mean and max: active minus passive delay.
    pub(super) fn differences_ns(&self) -> [f64; 3] {
        [
            self.active_min_ns - self.passive_min_ns,
            self.active_mean_ns - self.passive_mean_ns,
            self.active_max_ns - self.passive_max_ns,
        ]
    }

    /// Difference of the packet counts of both measurements, summed over both ends.
    pub(super) fn disagreement(&self) -> u64 {
        self.sent.abs_diff(self.at_a) + self.active_received.abs_diff(self.at_b)
    }
}

/// Delays in nanoseconds by the packets' numbers.
type Delays = BTreeMap<u64, i64>;

/// Answers received by the sender.
#[derive(Debug, Default)]
pub(super) struct Active(Delays);

impl Active {
    /// Takes an answer.
    pub(super) fn record(&mut self, answer: &ReceivedAnswer) {
        if let (Some(there), ReplyKind::First) = (answer.there, answer.taken) {
            self.0.insert(answer.sequence, there.as_nanos());
        }
    }
}

/// Observations of the captures. A packet's number is its place among those at tap A.
#[derive(Debug, Default)]
pub(super) struct Passive {
    at_a: Vec<u64>,
    at_b: u64,
    undetermined: u64,
    delays: Delays,
}

impl Passive {
    /// Records an outcome of the correlator.
    pub(super) fn record(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Matched { sequence, delay, .. } => {
                self.at_a.push(*sequence);
                self.at_b += 1;
                self.delays.insert(*sequence, delay.as_nanos());
            }
            Outcome::Lost { sequence, .. } => self.at_a.push(*sequence),
            Outcome::Undetermined { .. } => self.undetermined += 1,
            Outcome::Duplicated { .. } | Outcome::Unexpected { .. } => self.at_b += 1,
            Outcome::Identical { .. } => {}
        }
    }

    /// The same without packets that were sent after the end of the test, which has `packets` packets.
    fn of_the_test(&self, packets: u64) -> Self {
        let behind = self.delays.range(packets..).count() as u64;
        Self {
            at_a: self.at_a.iter().copied().filter(|number| *number < packets).collect(),
            at_b: self.at_b - behind,
            undetermined: self.undetermined,
            delays: self.delays.range(..packets).map(|(number, delay)| (*number, *delay)).collect(),
        }
    }
}

/// Median of the absolute difference of both delays of a packet; NaN if no packet has both.
fn median_difference(active: &Delays, passive: &Delays) -> f64 {
    let difference = |(number, active): (&u64, &i64)| Some((active - passive.get(number)?).abs());
    let mut differences: Vec<_> = active.iter().filter_map(difference).collect();
    differences.sort_unstable();
    differences.get(differences.len() / 2).copied().map_or(f64::NAN, approximate)
}
