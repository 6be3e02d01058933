//! JSON form of a quality.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::accumulator::Quality;
use super::counts::Counts;
use super::sequence::SequenceMetrics;
use crate::numeric::count_to_f64;
use crate::reordering::Reordering;
use crate::{CountSummary, Distribution, LossPattern, Summary};

/// Max n of the n-reordering list. TCP treats 3 as a loss (RFC 5681 section 3.2).
const MAX_N: usize = 8;

#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    counts: &'a Counts,
    owd_ns: &'a Distribution,
    ipdv_ns: &'a Distribution,
    pdv_ns: Option<Summary>,
    clock_error_ns: Option<i64>,
    clock_error_mean_ns: Option<f64>,
    throughput_bps: Option<f64>,
    sent_bps: Option<f64>,
    sent_bytes: u64,
    received_bytes: u64,
    duplication: DuplicationRow,
    #[serde(flatten)]
    sequence_metrics: Option<SequenceRow<'a>>,
}

/// RFC 5560 section 5.
#[derive(Serialize)]
struct DuplicationRow {
    fraction: Option<f64>,
    replicated_rate: Option<f64>,
    copies: Option<CountSummary>,
}

#[derive(Serialize)]
struct SequenceRow<'a> {
    reordering: &'a Reordering,
    loss_pattern: LossPattern,
    gap_a_ns: &'a Distribution,
    gap_b_ns: &'a Distribution,
}

impl Serialize for Quality {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let clock_error = self.clock_error();
        Row {
            counts: &self.counts,
            owd_ns: &self.delay,
            ipdv_ns: &self.variation,
            pdv_ns: self.delay.summary().map(|delay| delay.above_minimum()),
            clock_error_ns: clock_error.map(|error| error.max.as_nanos()),
            clock_error_mean_ns: clock_error.map(|error| error.mean),
            throughput_bps: self.throughput(),
            sent_bps: self.sent_rate(),
            sent_bytes: self.sent.bytes,
            received_bytes: self.received.bytes,
            duplication: duplication(self),
            sequence_metrics: self.sequence_metrics().map(sequence_metrics_row),
        }
        .serialize(serializer)
    }
}

fn duplication(quality: &Quality) -> DuplicationRow {
    let Counts { matched, duplicated, .. } = quality.counts;
    let copies = quality.duplication.duplicates();
    let share = |part| (matched > 0).then(|| count_to_f64(part) / count_to_f64(matched));
    DuplicationRow {
        fraction: share(duplicated),
        replicated_rate: share(copies.count),
        copies: copies.summary(),
    }
}

fn sequence_metrics_row(sequence_metrics: &SequenceMetrics) -> SequenceRow<'_> {
    SequenceRow {
        reordering: &sequence_metrics.reordering,
        loss_pattern: sequence_metrics.loss_pattern(),
        gap_a_ns: &sequence_metrics.train.at_a,
        gap_b_ns: &sequence_metrics.train.at_b,
    }
}

/// RFC 4737.
impl Serialize for Reordering {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let n_reordered: [u64; MAX_N] = std::array::from_fn(|n| self.n_reordered(n + 1));
        let mut row = serializer.serialize_map(None)?;
        row.serialize_entry("ratio", &self.ratio())?;
        row.serialize_entry("extent", &self.extents.summary())?;
        row.serialize_entry("late_ns", &self.late_times)?;
        row.serialize_entry("byte_offset", &self.byte_offsets.summary())?;
        row.serialize_entry("n_reordered", &n_reordered)?;
        row.serialize_entry("discontinuities", &self.discontinuities.count)?;
        row.serialize_entry("gap", &self.discontinuities.gaps.summary())?;
        row.serialize_entry("gap_ns", &self.discontinuities.gap_times)?;
        row.serialize_entry("free_run", &self.free_runs.lengths.summary())?;
        row.serialize_entry("free_run_average", &self.free_runs.average())?;
        row.serialize_entry("free_run_variation", &self.free_runs.variation())?;
        row.serialize_entry("forgotten", &self.counts.forgotten)?;
        row.end()
    }
}

/// RFC 3357.
impl Serialize for LossPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_map(None)?;
        row.serialize_entry("ratio", &self.loss_ratio())?;
        row.serialize_entry("distance", &self.distances.summary())?;
        row.serialize_entry("periods", &self.periods)?;
        row.serialize_entry("period_length", &self.period_lengths().summary())?;
        row.serialize_entry("between_periods", &self.inter_period_lengths.summary())?;
        row.serialize_entry("burst_ratio", &self.burst_ratio())?;
        row.end()
    }
}
