//! Sort order of the list.

use std::cmp::Ordering;

use strum::VariantArray;
use wirestamp_metrics::flow::FlowReport;

/// Sort order of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, VariantArray)]
pub(super) enum Order {
    /// Worst first, as [`FlowReport::worst_first`] has it.
    #[default]
    Worst,
    /// Highest loss ratio.
    Loss,
    /// Highest mean jitter.
    Jitter,
    /// Longest round-trip time.
    RoundTrip,
    /// Most bytes.
    Volume,
    /// Newest packet.
    Newest,
}

impl Order {
    /// The next order.
    pub(super) fn next(self) -> Self {
        Self::VARIANTS[(self as usize + 1) % Self::VARIANTS.len()]
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Worst => "worst first",
            Self::Loss => "loss",
            Self::Jitter => "jitter",
            Self::RoundTrip => "round trip",
            Self::Volume => "bytes",
            Self::Newest => "newest packet",
        }
    }

    /// Compares two flows; of equals, the worse comes first.
    pub(super) fn compare(self, one: &FlowReport, other: &FlowReport) -> Ordering {
        // Flows without the value come last.
        let descending = |figure: fn(&FlowReport) -> Option<f64>| {
            let figure = |report| figure(report).unwrap_or(f64::NEG_INFINITY);
            figure(other).total_cmp(&figure(one))
        };
        let order = match self {
            Self::Worst => Ordering::Equal,
            Self::Loss => descending(FlowReport::loss_ratio),
            Self::Jitter => descending(|report| report.rtp.as_ref()?.mean_jitter_ms),
            Self::RoundTrip => descending(|report| Some(report.tcp.as_ref()?.rtt_ns?.mean)),
            Self::Volume => other.bytes.cmp(&one.bytes),
            Self::Newest => other.last_ns.cmp(&one.last_ns),
        };
        order.then_with(|| one.worst_first(other))
    }
}
