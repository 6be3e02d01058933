//! What a task measures.

use std::net::IpAddr;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use wirestamp_clock::Span;
use wirestamp_metrics::emodel::Codec;

use super::{End, ForeignPoint, Point};
use crate::Name;

/// What is measured, and where.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// Packets and bytes at a point (6QM D4.2, volume).
    Volume {
        /// Where.
        at: Point,
    },
    /// Packets and bytes of each interval of time at a point (6QM D4.2, traffic).
    Traffic {
        /// Where.
        at: Point,
        /// The interval.
        every: SignedDuration,
    },
    /// One-way delay, its variation, loss, reordering and duplication of the packets that pass two points.
    PassiveDelay(PassiveDelay),
    /// The same of packets that other programs report.
    ReportedDelay(ReportedDelay),
    /// The same of test packets (STAMP, RFC 8762) that one probe sends and another reflects.
    ActiveDelay(ActiveDelay),
    /// The quality of each flow at a point.
    Flows {
        /// Where.
        at: Point,
    },
}

/// One-way delay of packets that are there anyway.
#[derive(Clone, Debug, PartialEq)]
pub struct PassiveDelay {
    /// Where they come by first.
    pub from: Point,
    /// Where they come by later.
    pub to: Point,
    /// The share of packets that are looked at, above 0 to 1, chosen by their contents, the same at both
    /// points (RFC 5475 section 6.2).
    pub share: f64,
    /// The codec of the calls that the path is judged by; none if it is not.
    pub codec: Option<Codec>,
}

/// One-way delay of packets of which foreign exporters report digests. Both choose and hash packets alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReportedDelay {
    /// Where they come by first.
    pub from: ForeignPoint,
    /// Where they come by later.
    pub to: ForeignPoint,
    /// How far off the clock of either exporter can be, if somebody knows that: they do not tell.
    pub clock_error: Option<SignedDuration>,
}

/// One-way delay of packets that are sent for it.
#[derive(Clone, Debug, PartialEq)]
pub struct ActiveDelay {
    /// Who sends.
    pub from: End,
    /// Who reflects.
    pub to: End,
    /// Where that can be reached, if not where the controller sees it.
    pub address: Option<IpAddr>,
    /// The port of UDP that it listens at, if not at [`ActiveDelay::port`].
    pub own_port: Option<u16>,
    /// Packets a second.
    pub rate: f64,
    /// Bytes of each above IP: UDP's header and what it carries.
    pub bytes: u16,
    /// How they are spread over time.
    pub distribution: Distribution,
    /// The class of service that they ask for, 0 to 63 (RFC 2474).
    pub dscp: u8,
    /// Whether each carries a code that only the two probes can make (RFC 8762 section 4.4).
    pub is_authenticated: bool,
    /// The codec of the calls that the path is judged by; none if it is not.
    pub codec: Option<Codec>,
}

/// The ports that nobody is given for good (RFC 6335 section 6): the first, and how many there are.
const DYNAMIC: u16 = 49_152;
const DYNAMIC_PORTS: u64 = 16_384;

impl ActiveDelay {
    /// The port of UDP that the reflector of the task of a number listens at: each has its own, so that several may
    /// be at one probe.
    #[must_use]
    pub fn port(&self, task: u64) -> u16 {
        let place = u16::try_from(task % DYNAMIC_PORTS).unwrap_or(0);
        self.own_port.unwrap_or(DYNAMIC + place)
    }
}

/// How test packets are spread over time (RFC 2330 section 11.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// At equal distances.
    #[default]
    Periodic,
    /// At distances that are distributed exponentially.
    Poisson,
}

/// Of a volume the sum counts, which a day has of so many parts.
pub(crate) const VOLUME: Span = Span::from_secs(60);

/// The interval of a task, by which packets are counted.
pub(crate) fn interval(every: SignedDuration) -> Span {
    i64::try_from(every.as_nanos()).map_or(Span::MAX, Span::from_nanos)
}

impl Measure {
    /// Its name in tasks.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Volume { .. } => "volume",
            Self::Traffic { .. } => "traffic",
            Self::PassiveDelay(_) | Self::ReportedDelay(_) => "passive-delay",
            Self::ActiveDelay(_) => "active-delay",
            Self::Flows { .. } => "flows",
        }
    }

    /// Whether it is a test whose packets nobody else can make.
    pub(crate) fn is_authenticated(&self) -> bool {
        matches!(self, Self::ActiveDelay(active) if active.is_authenticated)
    }

    /// The codec of the calls that the path is judged by.
    #[must_use]
    pub fn codec(&self) -> Option<Codec> {
        match self {
            Self::PassiveDelay(passive) => passive.codec,
            Self::ActiveDelay(active) => active.codec,
            Self::ReportedDelay(_)
            | Self::Volume { .. }
            | Self::Traffic { .. }
            | Self::Flows { .. } => None,
        }
    }

    /// Whether it is the delay between two points.
    #[must_use]
    pub fn is_delay(&self) -> bool {
        matches!(self, Self::PassiveDelay(_) | Self::ReportedDelay(_) | Self::ActiveDelay(_))
    }

    /// The probes that it takes, by the points at which it measures.
    #[must_use]
    pub fn probes(&self) -> Vec<&Name> {
        match self {
            Self::Volume { at } | Self::Traffic { at, .. } | Self::Flows { at } => vec![&at.probe],
            Self::PassiveDelay(PassiveDelay { from, to, .. }) => vec![&from.probe, &to.probe],
            Self::ActiveDelay(ActiveDelay { from, to, .. }) => vec![&from.probe, &to.probe],
            Self::ReportedDelay(_) => Vec::new(),
        }
    }
}
