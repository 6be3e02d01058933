//! Results, and how far each task has come, in a file: what is stored together becomes true together.

mod tables;

use std::path::Path;

use serde::Serialize;
use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::{Counts, Point, Summary};

use super::{NotSynchronised, Settled, Window};
use crate::DatabaseError;
use crate::database::Database;
use tables::FORM;

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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// When the window begins, in nanoseconds since 1970 (UTC).
    pub begin_ns: i64,
    /// What became of the packets.
    #[serde(flatten)]
    pub counts: Counts,
    /// One-way delay; none without packets that both points saw, or where the clocks are not synchronised.
    pub delay_ns: Option<Summary>,
    /// Delay above the least one of the window, whatever the clocks are.
    pub above_minimum_ns: Option<Summary>,
    /// The variation of delay from packet to packet (IPDV, RFC 3393).
    pub variation_ns: Option<Summary>,
    /// How far any of the delays can be off.
    pub error_ns: Option<i64>,
    /// Why that is not known.
    pub not_synchronised: Option<NotSynchronised>,
    /// Whether a delay is so far below zero that a clock is worse than it says.
    pub contradicts_the_clocks: bool,
}

impl Measured {
    fn new(begin: Time<Utc>, window: &Window) -> Self {
        let error = window.error();
        let delay = window.quality.delay().summary();
        Self {
            begin_ns: begin.as_nanos(),
            counts: *window.quality.counts(),
            delay_ns: delay.filter(|_| error.is_ok()),
            above_minimum_ns: delay.as_ref().map(Summary::above_minimum),
            variation_ns: window.quality.variation().summary(),
            error_ns: error.ok().map(|error| error.as_nanos()),
            not_synchronised: error.err(),
            contradicts_the_clocks: window.contradicts_the_clocks(),
        }
    }
}

impl Results {
    /// Opens a file, or makes a new one.
    ///
    /// # Errors
    /// When it cannot be read or written, or another program has it open.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        Ok(Self { database: Database::open(path, &FORM)? })
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
            for (begin, window) in &settled.windows {
                tables::insert(change, task, &Measured::new(*begin, window))?;
            }
            tables::settle(change, task, settled)
        })
    }

    /// What was measured by a task in the windows that begin from one time on and before another, in
    /// nanoseconds since 1970 (UTC): in their order, and so many at the most.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn measured(
        &self,
        task: u64,
        from: i64,
        until: i64,
        most: u32,
    ) -> Result<Vec<Measured>, DatabaseError> {
        self.database.read(|database| tables::measured(database, task, (from, until), most))
    }
}

#[cfg(test)]
mod tests;
