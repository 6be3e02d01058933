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

/// Quality of the packets between two points, A and B. Times are in nanoseconds; what is unknown is null.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Row<'a> {
    #[serde(flatten)]
    counts: &'a Counts,
    /// One-way delay (RFC 7679), in nanoseconds.
    owd_ns: &'a Distribution,
    /// Delay of a packet minus that of the packet sent before it (IPDV, RFC 3393), in nanoseconds.
    ipdv_ns: &'a Distribution,
    /// Delay above the min (PDV, RFC 5481 section 4.2), in nanoseconds. Null without matched packets.
    pdv_ns: Option<Summary>,
    /// Max error of a one-way delay because of the clocks, in nanoseconds. Null if it is unknown.
    clock_error_ns: Option<i64>,
    /// Max error of the mean one-way delay because of the clocks, in nanoseconds. Null if it is unknown.
    clock_error_mean_ns: Option<f64>,
    /// Rate at B from the first to the last packet, in bits per second, with link headers. Null with fewer than two packets,
    /// or if all have the same time.
    throughput_bps: Option<f64>,
    /// Rate at A, as `throughput_bps`.
    sent_bps: Option<f64>,
    /// Bytes observed at A, with link headers.
    sent_bytes: u64,
    /// Bytes observed at B, with link headers.
    received_bytes: u64,
    /// Duplicates (RFC 5560 section 5).
    duplication: DuplicationRow,
    #[serde(flatten)]
    sequence_metrics: Option<SequenceRow<'a>>,
}

/// Duplicates (RFC 5560 section 5).
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Duplication"))]
struct DuplicationRow {
    /// Duplicates per matched packet. Null without matched packets.
    fraction: Option<f64>,
    /// Share of the matched packets that have duplicates, 0 to 1. Null without matched packets.
    replicated_rate: Option<f64>,
    /// Duplicates of each packet that arrived more than once. Null if there are none.
    copies: Option<CountSummary>,
}

/// Metrics that need the order of sending. Absent if it is unknown.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SequenceRow<'a> {
    /// Reordering (RFC 4737).
    #[cfg_attr(feature = "schema", schemars(with = "ReorderingRow<'_>"))]
    reordering: &'a Reordering,
    /// Pattern of the losses (RFC 3357).
    #[cfg_attr(feature = "schema", schemars(with = "LossPatternRow"))]
    loss_pattern: LossPattern,
    /// Time at A between neighbours: packets that left A one after the other and arrived at B in that order; in
    /// nanoseconds.
    gap_a_ns: &'a Distribution,
    /// Time at B between the same packets, in nanoseconds.
    gap_b_ns: &'a Distribution,
}

/// Reordering (RFC 4737).
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Reordering"))]
struct ReorderingRow<'a> {
    /// Share of the packets that are reordered, 0 to 1 (section 4.1). Null without packets.
    ratio: Option<f64>,
    /// Extent of the reordered packets, in packets (section 4.2). Null if none is reordered.
    extent: Option<CountSummary>,
    /// Late time of the reordered packets, in nanoseconds (section 4.3).
    late_ns: &'a Distribution,
    /// Byte offset of the reordered packets, in bytes (section 4.4). Null if none is reordered.
    byte_offset: Option<CountSummary>,
    /// Packets that are n-reordered (section 5.3), for n from 1 to 8. TCP takes 3 for a loss (RFC 5681 section 3.2).
    n_reordered: [u64; MAX_N],
    /// Discontinuities (section 4.5).
    discontinuities: u64,
    /// Gaps from each discontinuity to the next, in packets. Null without gaps.
    gap: Option<CountSummary>,
    /// These gaps in nanoseconds.
    gap_ns: &'a Distribution,
    /// Lengths of the runs without reordering, in packets (section 4.6). Null if no packet is reordered.
    free_run: Option<CountSummary>,
    /// Packets in order per reordered packet. Null if no packet is reordered.
    free_run_average: Option<f64>,
    /// Variation of these lengths: 1 for equal runs, more if a few are long. Null if it is undefined, as without reordered
    /// packets.
    free_run_variation: Option<f64>,
    /// Packets that came too late to be classified: they are older than the window, and in no other figure.
    forgotten: u64,
}

/// Pattern of the losses (RFC 3357).
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "LossPattern"))]
struct LossPatternRow {
    /// Share of the packets that are lost, 0 to 1. Null without packets.
    ratio: Option<f64>,
    /// Distance from each loss to the next, in packets: 1 if they are consecutive (section 5.4.1). Null with fewer than
    /// two losses.
    distance: Option<CountSummary>,
    /// Loss periods: runs of lost packets (section 6.2).
    periods: u64,
    /// Length of the loss periods, in packets (section 6.3). Null without losses.
    period_length: Option<CountSummary>,
    /// From the last loss of a period to the first of the next, in packets (section 6.4). Null with fewer than two
    /// periods.
    between_periods: Option<CountSummary>,
    /// Burst ratio (ITU-T G.107 section 7.5): 1 for random loss, more for bursts. Null without losses, and if every packet
    /// is lost.
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
        reordering: &sequence_metrics.reordering,
        loss_pattern: sequence_metrics.loss_pattern(),
        gap_a_ns: &sequence_metrics.train.at_a,
        gap_b_ns: &sequence_metrics.train.at_b,
    }
}

impl Serialize for Reordering {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        ReorderingRow {
            ratio: self.ratio(),
            extent: self.extents.summary(),
            late_ns: &self.late_times,
            byte_offset: self.byte_offsets.summary(),
            n_reordered: std::array::from_fn(|n| self.n_reordered(n + 1)),
            discontinuities: self.discontinuities.count,
            gap: self.discontinuities.gaps.summary(),
            gap_ns: &self.discontinuities.gap_times,
            free_run: self.free_runs.lengths.summary(),
            free_run_average: self.free_runs.average(),
            free_run_variation: self.free_runs.variation(),
            forgotten: self.counts.forgotten,
        }
        .serialize(serializer)
    }
}

impl Serialize for LossPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        LossPatternRow {
            ratio: self.loss_ratio(),
            distance: self.distances.summary(),
            periods: self.periods,
            period_length: self.period_lengths().summary(),
            between_periods: self.inter_period_lengths.summary(),
            burst_ratio: self.burst_ratio(),
        }
        .serialize(serializer)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Quality {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Quality".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        Row::json_schema(generator)
    }
}
