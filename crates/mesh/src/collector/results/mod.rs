//! Results, and how far each task has come, in a file: what is stored together becomes true together.

mod brief;
mod counts;
mod fates;
mod flows;
mod histograms;
mod hours;
mod tables;
mod windows;

use std::ops::Range;
use std::path::Path;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{Counts, Point};

use super::{NoOpinion, NotSynchronised, Settled};
use crate::DatabaseError;
use crate::database::Database;
pub use brief::Brief;
use fates::Fates;
pub use histograms::{Histograms, Missing};
use tables::SCHEMA;

/// The file.
pub struct Results {
    database: Database,
}

/// How far a task has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Everything before is settled.
    pub settled_until: Time<Utc>,
    /// What each of its points has delivered.
    pub delivered: [Delivered; 2],
}

/// What a point has delivered for good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// From which spool; none if nothing came yet.
    pub spool: Option<i64>,
    /// Up to which batch of that.
    pub acknowledged: u64,
    /// Packets that its probe gave up, of all its spools.
    pub given_up: u64,
    /// Nothing of that spool is acknowledged, and nothing is known of what the point saw before it.
    pub is_unknown: bool,
}

/// What was measured in a window.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct Measured {
    /// When the window begins, in nanoseconds since 1970 (UTC).
    pub begin_ns: i64,
    /// What became of the packets.
    #[serde(flatten)]
    #[schema(value_type = Fates)]
    pub counts: Counts,
    /// One-way delay; none without packets that both points saw, or where the clocks are not synchronised.
    #[schema(required)]
    pub delay_ns: Option<Spread>,
    /// Delay above the least one of the window, whatever the clocks are.
    #[schema(required)]
    pub above_minimum_ns: Option<Spread>,
    /// The variation of delay from packet to packet (IPDV, RFC 3393).
    #[schema(required)]
    pub variation_ns: Option<Spread>,
    /// How far any of the delays can be off.
    #[schema(required)]
    pub error_ns: Option<i64>,
    /// Why that is not known.
    #[schema(required)]
    pub not_synchronised: Option<NotSynchronised>,
    /// Whether a delay is so far below zero that a clock is worse than it says.
    pub contradicts_the_clocks: bool,
    /// What a call with the codec of the task would have been like: a mean opinion score of 1 to 4.5 (ITU-T G.107).
    /// Where the task names a codec, there is either this or why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mos: Option<f64>,
    /// Why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_mos: Option<NoOpinion>,
}

/// How values are distributed, in nanoseconds.
///
/// Percentiles are those of a [`wirestamp_metrics::Distribution`] as measured. Of windows that were put together they
/// come from histograms, and are within [`wirestamp_metrics::CompactHistogram::ERROR`] of the value (of the delay,
/// where it is one above the least); they are not known where clocks were not synchronised for a part of the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize, ToSchema)]
pub struct Spread {
    /// How many there are.
    pub count: u64,
    /// The least.
    pub min: i64,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation of the sample (with n - 1); 0 for a single value.
    pub stddev: f64,
    /// The median.
    #[schema(required)]
    pub p50: Option<i64>,
    /// The 90th percentile.
    #[schema(required)]
    pub p90: Option<i64>,
    /// The 99th percentile.
    #[schema(required)]
    pub p99: Option<i64>,
    /// The 99.9th percentile.
    #[schema(required)]
    pub p999: Option<i64>,
    /// The greatest.
    pub max: i64,
}

impl Spread {
    /// That of the distances from the least.
    fn above_minimum(&self) -> Self {
        let above = |value: i64| value.saturating_sub(self.min);
        #[expect(clippy::cast_precision_loss, reason = "a mean is not more exact")]
        let mean = self.mean - self.min as f64;
        let [p50, p90, p99, p999] =
            [self.p50, self.p90, self.p99, self.p999].map(|it| it.map(above));
        Self { min: 0, mean, p50, p90, p99, p999, max: above(self.max), ..*self }
    }
}

/// What was counted in an interval.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
pub struct Counted {
    /// When the interval begins, in nanoseconds since 1970 (UTC).
    pub begin_ns: i64,
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire, with the link header, without the frame check sequence.
    pub bytes: u64,
    /// Packets that the capture lost meanwhile, of whatever kind.
    pub missed: u64,
    /// For how much of the interval somebody looked, and told of it, in nanoseconds.
    pub watched_ns: i64,
}

/// What was counted in all intervals together, up to 2^62 of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Sum {
    /// Packets.
    pub packets: u64,
    /// Their bytes on the wire, with the link header, without the frame check sequence.
    pub bytes: u64,
    /// Packets that the capture lost meanwhile, of whatever kind.
    pub missed: u64,
    /// For how long somebody looked, and told of it, in nanoseconds.
    pub watched_ns: u64,
}

/// How results are laid out in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Step {
    /// Delays by the second, counts by the interval of the task.
    #[default]
    AsMeasured,
    /// By the minute: delays once it is over, counts as they come. Counts of a longer interval are in the minute in
    /// which that begins.
    Minute,
    /// By the hour: delays once it is over, counts as they come.
    Hour,
}

impl Step {
    /// In seconds; 0 as measured.
    fn seconds(self) -> i64 {
        match self {
            Self::AsMeasured => 0,
            Self::Minute => 60,
            Self::Hour => 3600,
        }
    }

    /// Zero as measured.
    fn length(self) -> Span {
        Span::from_secs(self.seconds())
    }
}

/// Which results are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Stretch {
    /// By what.
    pub step: Step,
    /// Those that begin from this time on, in nanoseconds since 1970 (UTC),
    pub from: i64,
    /// and before this.
    pub until: i64,
    /// So many at the most.
    pub most: u32,
}

/// An hour of a task that is to be archived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hour {
    /// When it begins.
    pub begin: Time<Utc>,
    /// Until when the task was settled.
    settled_until: Time<Utc>,
}

impl Hour {
    /// When it ends.
    #[must_use]
    pub fn end(&self) -> Time<Utc> {
        self.begin + Step::Hour.length()
    }
}

impl Results {
    /// Opens a file, or makes a new one.
    ///
    /// # Errors
    /// When it cannot be read or written, or another program has it open.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        Ok(Self { database: Database::open(path, &SCHEMA)? })
    }

    /// How far a task has come.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn progress(&self, task: u64) -> Result<Progress, DatabaseError> {
        self.database.read(|database| tables::progress(database, task))
    }

    /// A point of a task delivers from this spool now, behind a batch of this number.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn begin_spool(
        &mut self,
        task: u64,
        point: Point,
        spool: i64,
        behind: u64,
    ) -> Result<(), DatabaseError> {
        self.database.change(|change| tables::begin_spool(change, task, point, (spool, behind)))
    }

    /// Stores what is settled of a task.
    ///
    /// # Errors
    /// When the file cannot be written; then nothing of it is stored.
    pub fn store(&mut self, task: u64, settled: &Settled) -> Result<(), DatabaseError> {
        self.database.change(|change| {
            let before = tables::progress(change, task)?.settled_until;
            for (begin, window) in &settled.windows {
                windows::insert(change, task, *begin, window)?;
            }
            windows::put_together(change, task, before, settled.until)?;
            for count in &settled.news.counts {
                counts::add(change, task, count)?;
            }
            for flow in &settled.news.flows {
                flows::put(change, task, flow)?;
            }
            if !settled.news.flows.is_empty() {
                flows::bound(change, task)?;
            }
            tables::settle(change, task, settled)
        })
    }

    /// What a task has measured, in its order.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn measured(&self, task: u64, stretch: &Stretch) -> Result<Vec<Measured>, DatabaseError> {
        self.database.read(|database| windows::measured(database, task, stretch))
    }

    /// The newest of what a task has measured from a time on, so many at the most, in a few numbers and in its order.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn briefs(
        &self,
        task: u64,
        from: Time<Utc>,
        most: u32,
    ) -> Result<Vec<Brief>, DatabaseError> {
        self.database.read(|database| brief::newest(database, task, from, most))
    }

    /// The newest of what a task has counted from a time on, so many at the most, in its order.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn newest_counted(
        &self,
        task: u64,
        from: Time<Utc>,
        most: u32,
    ) -> Result<Vec<Counted>, DatabaseError> {
        self.database.read(|database| counts::newest(database, task, from, most))
    }

    /// How often which delay was, from a time on and before another (nanoseconds since 1970, UTC), of what is kept:
    /// whole hours and minutes, and at the ends seconds.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn histograms(&self, task: u64, stretch: Range<i64>) -> Result<Histograms, DatabaseError> {
        self.database.read(|database| histograms::found(database, task, stretch))
    }

    /// What a task has counted, in its order; an interval that is not over yet, too.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn counted(&self, task: u64, stretch: &Stretch) -> Result<Vec<Counted>, DatabaseError> {
        self.database.read(|database| counts::counted(database, task, stretch))
    }

    /// What a task has found of the flows that had their latest packet in a stretch, by whatever step, those that had
    /// it last first. Each is an object of JSON with the keys of a flow of `wirestamp flows --json`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn flows(&self, task: u64, stretch: &Stretch) -> Result<Vec<String>, DatabaseError> {
        self.database.read(|database| flows::found(database, task, stretch))
    }

    /// What a task has counted since it was made.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn sum(&self, task: u64) -> Result<Sum, DatabaseError> {
        self.database.read(|database| counts::sum(database, task))
    }

    /// How many flows of a task are kept.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn flow_count(&self, task: u64) -> Result<u64, DatabaseError> {
        self.database.read(|database| flows::count(database, task))
    }

    /// The hour of a task that is to be archived next, if nothing of it can come any more: `goes_on` says since when
    /// something can, where everything before a time is settled. Its last minute and itself are put together, if they
    /// were not.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn next_hour(
        &mut self,
        task: u64,
        goes_on: impl FnOnce(Time<Utc>) -> Time<Utc>,
    ) -> Result<Option<Hour>, DatabaseError> {
        self.database.change(|change| hours::next(change, task, goes_on))
    }

    /// Takes note that an hour is archived, unless more of it has come since it was found. If more comes later, it is
    /// to be archived again.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn archived(&mut self, task: u64, hour: &Hour) -> Result<(), DatabaseError> {
        self.database.change(|change| hours::archived(change, task, hour))
    }

    /// Lets go of hours that were over before a time and are archived, and of flows whose latest packets are; minutes and
    /// hours stay, and the seconds of the minute until which a task is settled.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn forget(&mut self, task: u64, before: Time<Utc>) -> Result<(), DatabaseError> {
        self.database.change(|change| hours::forget(change, task, before))
    }

    /// What was measured by a task in its newest window.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn newest(&self, task: u64) -> Result<Option<Measured>, DatabaseError> {
        self.database.read(|database| windows::newest(database, task))
    }
}

#[cfg(test)]
mod tests;
