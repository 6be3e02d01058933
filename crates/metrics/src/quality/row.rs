//! JSON form of a quality.

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
    reordering: ReorderingRow<'a>,
    loss_pattern: LossRow,
    gap_a_ns: &'a Distribution,
    gap_b_ns: &'a Distribution,
}

/// RFC 4737.
#[derive(Serialize)]
struct ReorderingRow<'a> {
    ratio: Option<f64>,
    extent: Option<CountSummary>,
    late_ns: &'a Distribution,
    byte_offset: Option<CountSummary>,
    n_reordered: [u64; MAX_N],
    discontinuities: u64,
    gap: Option<CountSummary>,
    gap_ns: &'a Distribution,
    free_run: Option<CountSummary>,
    free_run_average: Option<f64>,
    free_run_variation: Option<f64>,
    forgotten: u64,
}

/// RFC 3357.
#[derive(Serialize)]
struct LossRow {
    ratio: Option<f64>,
    distance: Option<CountSummary>,
    periods: u64,
    period_length: Option<CountSummary>,
    between_periods: Option<CountSummary>,
    burst_ratio: Option<f64>,
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
        reordering: reordering(&sequence_metrics.reordering),
        loss_pattern: loss(&sequence_metrics.loss_pattern()),
        gap_a_ns: &sequence_metrics.train.at_a,
        gap_b_ns: &sequence_metrics.train.at_b,
    }
}

fn reordering(found: &Reordering) -> ReorderingRow<'_> {
    let mut n = 0;
    ReorderingRow {
        ratio: found.ratio(),
        extent: found.extents.summary(),
        late_ns: &found.late_times,
        byte_offset: found.byte_offsets.summary(),
        n_reordered: [(); MAX_N].map(|()| {
            n += 1;
            found.n_reordered(n)
        }),
        discontinuities: found.discontinuities.count,
        gap: found.discontinuities.gaps.summary(),
        gap_ns: &found.discontinuities.gap_times,
        free_run: found.free_runs.lengths.summary(),
        free_run_average: found.free_runs.average(),
        free_run_variation: found.free_runs.variation(),
        forgotten: found.counts.forgotten,
    }
}

fn loss(found: &LossPattern) -> LossRow {
    LossRow {
        ratio: found.loss_ratio(),
        distance: found.distances.summary(),
        periods: found.periods,
        period_length: found.period_lengths().summary(),
        between_periods: found.inter_period_lengths.summary(),
        burst_ratio: found.burst_ratio(),
    }
}
