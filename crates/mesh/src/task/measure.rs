//! Kinds of measurement.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use jiff::SignedDuration;
use jiff::fmt::serde::duration::friendly::compact as duration;
use serde::{Deserialize, Serialize};
use wirestamp_clock::Span;
use wirestamp_metrics::emodel::Codec;

use super::{End, ForeignPoint, Point};
use crate::{Name, as_text};

/// Default and valid rates of an active test, in packets per second.
pub(super) const DEFAULT_RATE: f64 = 10.0;
pub(super) const RATES: RangeInclusive<f64> = 0.001..=1_000_000.0;

/// Min and max IP payload of a test packet in bytes: headers of UDP and STAMP (RFC 8762 section 4.2.1), and what an IPv4
/// packet can carry.
pub(super) const MIN_BYTES: u16 = 8 + 44;
/// Min payload in authenticated mode (RFC 8762 section 4.2.2).
pub(super) const MIN_AUTHENTICATED_BYTES: u16 = 8 + 112;
pub(super) const MAX_BYTES: u16 = u16::MAX - 20;

pub(super) const MAX_DSCP: u8 = 63;

/// Valid numbers of shards.
pub(super) const SHARDS: RangeInclusive<u16> = 1..=64;

/// What to measure, and where. Serialises as an object with one key, the kind, and the keys of the kind in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Packets and bytes at a point (6QM D4.2, volume).
    Volume {
        /// Point.
        at: Point,
    },
    /// Packets and bytes of each interval of time at a point (6QM D4.2, traffic).
    Traffic {
        /// Point.
        at: Point,
        /// Length of the intervals.
        #[serde(
            rename = "interval",
            default = "one_second",
            serialize_with = "duration::required"
        )]
        every: SignedDuration,
    },
    /// One-way delay, its variation, loss, reordering and duplication of the packets that pass two points.
    PassiveDelay(PassiveDelay),
    /// The same for packets that foreign exporters report.
    #[serde(rename(serialize = "passive-delay"))]
    ReportedDelay(ReportedDelay),
    /// The same for test packets (STAMP, RFC 8762) that one probe sends and another reflects.
    ActiveDelay(ActiveDelay),
    /// The quality of each flow at a point.
    Flows {
        /// Point.
        at: Point,
    },
}

fn one_second() -> SignedDuration {
    SignedDuration::from_secs(1)
}

/// One-way delay of existing traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PassiveDelay {
    /// First point.
    pub from: Point,
    /// Second point.
    pub to: Point,
    /// Share of packets to sample, above 0 to 1. Selected by content, so both points select the same (RFC 5475 section
    /// 6.2).
    #[serde(default = "all_packets")]
    pub share: f64,
    /// Number of shards, 1 to 64. Packets are divided by their flow ([`FlowKey::shard_hash`]), and each shard may be at
    /// another collector.
    ///
    /// [`FlowKey::shard_hash`]: wirestamp_packet::FlowKey::shard_hash
    #[serde(default = "one_shard", skip_serializing_if = "is_one")]
    pub shards: u16,
    /// Codec for call quality; none for no rating.
    #[serde(default, with = "as_text::optional", skip_serializing_if = "Option::is_none")]
    pub codec: Option<Codec>,
    /// What the collector archives; by default results only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveContents>,
}

fn all_packets() -> f64 {
    1.0
}

fn one_shard() -> u16 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants it so")]
fn is_one(shards: &u16) -> bool {
    *shards == 1
}

/// One-way delay of packets whose digests foreign exporters report. Both must select and hash packets alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReportedDelay {
    /// First point.
    #[serde(with = "as_text")]
    pub from: ForeignPoint,
    /// Second point.
    #[serde(with = "as_text")]
    pub to: ForeignPoint,
    /// Max error of the exporters' clocks, if known: exporters do not report it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "duration::optional"
    )]
    pub clock_error: Option<SignedDuration>,
    /// What the collector archives; by default results only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveContents>,
}

/// One-way delay of test packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ActiveDelay {
    /// Sender.
    #[serde(with = "as_text")]
    pub from: End,
    /// Reflector.
    #[serde(with = "as_text")]
    pub to: End,
    /// Address of the reflector, if it differs from the one that the controller sees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// UDP port of the reflector, if it differs from [`ActiveDelay::port`].
    #[serde(default, rename = "port", skip_serializing_if = "Option::is_none")]
    pub own_port: Option<u16>,
    /// Packets per second.
    #[serde(default = "default_rate")]
    pub rate: f64,
    /// Length of each IP payload, in bytes: UDP header and contents.
    pub bytes: u16,
    /// Distribution over time.
    #[serde(default)]
    pub distribution: Distribution,
    /// DSCP, 0 to 63 (RFC 2474).
    #[serde(default)]
    pub dscp: u8,
    /// Whether packets carry an authentication code (RFC 8762 section 4.4).
    #[serde(default, rename = "authenticated")]
    pub is_authenticated: bool,
    /// Codec for call quality; none for no rating.
    #[serde(default, with = "as_text::optional", skip_serializing_if = "Option::is_none")]
    pub codec: Option<Codec>,
    /// What the collector archives; by default results only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveContents>,
}

fn default_rate() -> f64 {
    DEFAULT_RATE
}

/// Dynamic ports (RFC 6335 section 6): the first, and their number.
const DYNAMIC: u16 = 49_152;
const DYNAMIC_PORTS: u64 = 16_384;

impl ActiveDelay {
    /// UDP port of a task's reflector. Each task has its own, so that several can share a probe.
    #[must_use]
    pub fn port(&self, task: u64) -> u16 {
        let place = u16::try_from(task % DYNAMIC_PORTS).unwrap_or(0);
        self.own_port.unwrap_or(DYNAMIC + place)
    }
}

/// Distribution of test packets over time (RFC 2330 section 11.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Constant intervals.
    #[default]
    Periodic,
    /// Exponentially distributed intervals.
    Poisson,
}

/// What the collector archives of a task with two points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ArchiveContents {
    /// Results only.
    Results,
    /// Results, and the observations of both points.
    Observations,
}

/// Interval of volume tasks: they report the sum, so a coarse interval is enough.
pub(crate) const VOLUME: Span = Span::from_secs(60);

/// Interval of a task that counts.
pub(crate) fn interval(every: SignedDuration) -> Span {
    i64::try_from(every.as_nanos()).map_or(Span::MAX, Span::from_nanos)
}

impl Measure {
    /// Name of the kind in tasks.
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

    /// Whether test packets carry an authentication code.
    pub(crate) fn is_authenticated(&self) -> bool {
        matches!(self, Self::ActiveDelay(active) if active.is_authenticated)
    }

    /// Codec for call quality.
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

    /// Whether the collector archives the observations of its points.
    #[must_use]
    pub fn archives_observations(&self) -> bool {
        let archive = match self {
            Self::PassiveDelay(passive) => passive.archive,
            Self::ReportedDelay(reported) => reported.archive,
            Self::ActiveDelay(active) => active.archive,
            Self::Volume { .. } | Self::Traffic { .. } | Self::Flows { .. } => None,
        };
        archive == Some(ArchiveContents::Observations)
    }

    /// Number of shards.
    #[must_use]
    pub fn shards(&self) -> u16 {
        match self {
            Self::PassiveDelay(passive) => passive.shards,
            Self::ReportedDelay(_)
            | Self::ActiveDelay(_)
            | Self::Volume { .. }
            | Self::Traffic { .. }
            | Self::Flows { .. } => 1,
        }
    }

    /// Whether it measures delay between two points.
    #[must_use]
    pub fn is_delay(&self) -> bool {
        matches!(self, Self::PassiveDelay(_) | Self::ReportedDelay(_) | Self::ActiveDelay(_))
    }

    /// Probes that take part.
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
