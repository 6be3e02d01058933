//! Clock sources: programs that steer the system clock, and the error that each of them reports.
//!
//! The kernel returns the last values of the program that steers its clock. chronyd and ptp4l are queried
//! directly where they run. chronyd also names the reference that it follows, such as a GPS receiver or a
//! pulse-per-second (PPS) signal.
//!
//! # Combination
//!
//! The bound is the max of all reported errors. There is no bound as soon as one source reports that the
//! clock is not on UTC. No single source is sufficient:
//!
//! - The kernel adds 500 ppm of the time since the last update (RFC 1589 section 3.3), even if the steering
//!   program no longer runs. But phc2sys and ptp4l set its error to 0, whatever their own error is.
//! - chronyd bounds its own error up to the root clock. But it may run without steering the clock
//!   (`chronyd -x`), or follow only the machine's own clock (`local`), which is not UTC.
//! - ptp4l measures its offset and the path delay to its master. It has no error bound of its grandmaster.
//!
//! So the bound holds as long as one of them is right. Each single status is available for a closer look.

mod chrony;
mod kernel;
mod ptp4l;
mod query;
mod status;

use std::time::Instant;

pub use chrony::{Reference, TRACKING_LENGTH, Tracking, TrackingError, tracking_request};
pub use kernel::KernelSync;
pub use ptp4l::{CurrentDataSet, ManagementError, ManagementId, TimeStatus, management_request};
pub use status::{ClockSource, SyncStatus, utc_error};

use crate::Span;

/// Status of chronyd and ptp4l at the time of a query.
#[derive(Clone, Debug)]
pub struct ClockSources {
    queried: Instant,
    daemons: Vec<SyncStatus>,
}

/// Assumed drift of a steered clock between two queries: chronyd's own default (`maxclockerror`, chrony.conf(5)).
const DRIFT_PPM: i64 = 1;

impl ClockSources {
    /// Queries the daemons that run. Takes less than 1 ms, and 0.2 s for each daemon that does not answer.
    #[must_use]
    pub fn query() -> Self {
        let daemons = [query::chrony(), query::ptp4l()].into_iter().flatten().collect();
        Self { queried: Instant::now(), daemons }
    }

    /// The kernel's status now, then those of the daemons with errors grown since the query.
    #[must_use]
    pub fn statuses(&self) -> Vec<SyncStatus> {
        // A sandbox may forbid adjtimex(2). Then the kernel reports no bound.
        let unknown = SyncStatus {
            clock_source: ClockSource::Kernel,
            reference: None,
            stratum: None,
            offset: Span::ZERO,
            error: None,
        };
        let kernel = KernelSync::read().map_or(unknown, |it| it.status());
        let age = i64::try_from(self.queried.elapsed().as_nanos()).unwrap_or(i64::MAX);
        let drift = Span::from_nanos(age / 1_000_000 * DRIFT_PPM + 1);
        let daemons = self.daemons.iter().cloned();
        let aged =
            daemons.map(|it| SyncStatus { error: it.error.map(|error| error + drift), ..it });
        [kernel].into_iter().chain(aged).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_is_first_and_errors_of_daemons_grow() {
        assert_eq!(ClockSources::query().statuses()[0].clock_source, ClockSource::Kernel);
        let status = |clock_source, error: Option<Span>| SyncStatus {
            clock_source,
            reference: None,
            stratum: None,
            offset: Span::ZERO,
            error,
        };
        let error = Span::from_nanos(1000);
        let sources = ClockSources {
            queried: Instant::now(),
            daemons: vec![
                status(ClockSource::Chrony, Some(error)),
                status(ClockSource::Ptp4l, None),
            ],
        };
        let statuses = sources.statuses();
        assert_eq!(statuses[0].clock_source, ClockSource::Kernel);
        assert!(statuses[1].error > Some(error), "{statuses:?}");
        assert_eq!(statuses[2].error, None);
    }
}
