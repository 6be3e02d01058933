//! What the list is sorted by.

use std::cmp::Ordering;

use wirestamp_metrics::flow::FlowReport;

/// What comes first in the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// The flows that hurt most, as [`FlowReport::worst_first`] has it.
    #[default]
    WhatHurts,
    /// The greatest share of losses.
    Loss,
    /// The greatest mean jitter.
    Jitter,
    /// The longest round trip.
    RoundTrip,
    /// The most bytes.
    Volume,
    /// The newest packet.
    Newest,
}

impl Order {
    /// The one that comes after it.
    pub(super) fn next(self) -> Self {
        match self {
            Self::WhatHurts => Self::Loss,
            Self::Loss => Self::Jitter,
            Self::Jitter => Self::RoundTrip,
            Self::RoundTrip => Self::Volume,
            Self::Volume => Self::Newest,
            Self::Newest => Self::WhatHurts,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::WhatHurts => "what hurts",
            Self::Loss => "loss",
            Self::Jitter => "jitter",
            Self::RoundTrip => "round trip",
            Self::Volume => "bytes",
            Self::Newest => "newest packet",
        }
    }

    /// Which of two flows comes first; of equals, the one that hurts more.
    pub(super) fn compare(self, one: &FlowReport, other: &FlowReport) -> Ordering {
        // Flows without the figure come last.
        let falling = |figure: fn(&FlowReport) -> Option<f64>| {
            let figure = |report| figure(report).unwrap_or(f64::NEG_INFINITY);
            figure(other).total_cmp(&figure(one))
        };
        let order = match self {
            Self::WhatHurts => Ordering::Equal,
            Self::Loss => falling(FlowReport::loss_ratio),
            Self::Jitter => falling(|report| report.rtp.as_ref()?.mean_jitter_ms),
            Self::RoundTrip => falling(|report| Some(report.tcp.as_ref()?.rtt_ns?.mean)),
            Self::Volume => other.bytes.cmp(&one.bytes),
            Self::Newest => other.last_ns.cmp(&one.last_ns),
        };
        order.then_with(|| one.worst_first(other))
    }
}
