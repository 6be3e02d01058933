//! Results of the paper.

use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;
use wirestamp_traffic::Pattern;

/// Source of the numbers.
pub(crate) const PAPER: &str = "Orosz and Skopkó, \"Multi-threaded Packet Timestamping for End-to-End QoS \
                         Evaluation\" (2013), section V";

/// A way to stamp a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Method {
    /// The kernel's time of day, which is computed from a counter at once.
    Ktime,
    /// The counter as it is, to be converted later by another thread.
    Raw,
}

impl Method {
    /// Both, in the order of the paper's tables.
    pub(crate) const ALL: [Self; 2] = [Self::Ktime, Self::Raw];

    /// Name in reports.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}

/// One of the paper's patterns of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Traffic {
    /// Pattern 1, a telephone call.
    Call,
    /// Pattern 2, a video.
    Video,
}

impl Traffic {
    /// Both, in the paper's order.
    pub(crate) const ALL: [Self; 2] = [Self::Call, Self::Video];

    /// Name in reports.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// Its frames and gaps.
    pub(crate) fn pattern(self) -> Pattern {
        match self {
            Self::Call => Pattern::voip(),
            Self::Video => Pattern::hd_video(),
        }
    }

    /// The paper's table, its figure, and the pattern in words.
    pub(super) const fn place(self) -> [&'static str; 3] {
        match self {
            Self::Call => ["Table I", "Figure 2", "pattern 1, 140-byte packets every 20 ms"],
            Self::Video => ["Table II", "Figure 4", "pattern 2, 1368-byte packets every 1.37 ms"],
        }
    }
}

/// A row of a table of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Published {
    /// How packets were stamped.
    pub(super) method: Method,
    /// The traffic.
    pub(super) pattern: Traffic,
    /// "Overhead average \[ns\]".
    pub(super) mean_ns: f64,
    /// "Overhead variance \[ns\]": the unit is that of a standard deviation, the name that of its square. The
    /// paper does not explain it.
    pub(super) variance: f64,
}

const fn row(method: Method, pattern: Traffic, mean_ns: f64, variance: f64) -> Published {
    Published { method, pattern, mean_ns, variance }
}

/// Tables I and II.
pub(super) const PUBLISHED: [Published; 4] = [
    row(Method::Ktime, Traffic::Call, 195.2762, 176.0954),
    row(Method::Raw, Traffic::Call, 73.49326, 3.793385),
    row(Method::Ktime, Traffic::Video, 173.3606, 177.1197),
    row(Method::Raw, Traffic::Video, 70.84912, 8.197374),
];
