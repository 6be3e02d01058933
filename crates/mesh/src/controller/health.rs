//! How probes do, as they say.

use serde::Serialize;
use utoipa::ToSchema;

use super::clocks::ClockOffset;
use crate::v1;

/// How a probe does.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Health {
    /// Its version of Wirestamp.
    pub version: String,
    /// The clock that stamps its packets.
    pub clock: String,
    /// How far its system clock can be from UTC; none if nobody keeps it there.
    #[schema(required)]
    pub clock_error_ns: Option<u64>,
    /// Processor time that it has used since it was started.
    pub processor_time_ns: u64,
    /// Memory that it uses.
    pub memory_bytes: u64,
    /// What it holds for the collector.
    pub held_bytes: u64,
    /// Its captures since they were started.
    pub captures: Vec<CaptureHealth>,
    /// What it cannot measure.
    pub troubles: Vec<Trouble>,
    /// Sync statuses of its system clock.
    #[serde(rename = "keepers")]
    pub clock_sources: Vec<SyncStatusHealth>,
    /// How far the clocks of probes that it sends test packets to are ahead of its own.
    pub clock_offsets: Vec<ClockOffset>,
    /// Its ends of active tests since they were started.
    pub tests: Vec<TestHealth>,
}

/// The account of a capture.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct CaptureHealth {
    /// The interface, as in the points of tasks.
    pub interface: String,
    /// Packets that came.
    pub packets: u64,
    /// Packets of these that were lost before a task could have them.
    pub lost: u64,
}

/// The account of an end of an active test.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct TestHealth {
    /// The number of the task.
    pub task: u64,
    /// Which end.
    pub end: TestEnd,
    /// Datagrams that it refused, because they did not have the right code.
    pub forged: u64,
    /// Datagrams that it refused, because they were too short for a packet of the test.
    pub too_short: u64,
}

/// An end of an active test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TestEnd {
    /// It sends.
    Sender,
    /// It reflects.
    Reflector,
}

impl From<v1::Test> for TestHealth {
    fn from(test: v1::Test) -> Self {
        let v1::Test { task, point, forged, too_short } = test;
        let end = if point == 0 { TestEnd::Sender } else { TestEnd::Reflector };
        Self { task, end, forged, too_short }
    }
}

/// A task that a probe cannot do its part in.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Trouble {
    /// The number of the task.
    pub task: u64,
    /// Why, in one line.
    pub why: String,
}

/// Synchronisation of a system clock as one clock source reports it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = KeeperHealth)]
pub struct SyncStatusHealth {
    /// `kernel`, `chrony` or `ptp4l`.
    #[serde(rename = "by")]
    pub clock_source: String,
    /// Reference that the source follows, if known.
    #[serde(rename = "source")]
    #[schema(required)]
    pub reference: Option<String>,
    /// Stratum, if reported.
    #[schema(required)]
    pub stratum: Option<u32>,
    /// Offset of the clock from the source's time; positive if the clock is ahead.
    #[serde(rename = "ahead_ns")]
    pub offset_ns: i64,
    /// Bound of the clock's distance from UTC; none if it is not synchronised to UTC.
    #[schema(required)]
    pub error_ns: Option<u64>,
}

impl From<v1::SyncStatus> for SyncStatusHealth {
    fn from(status: v1::SyncStatus) -> Self {
        let v1::SyncStatus { clock_source, reference, stratum, offset, error } = status;
        Self { clock_source, reference, stratum, offset_ns: offset, error_ns: error }
    }
}

impl From<v1::Report> for Health {
    fn from(report: v1::Report) -> Self {
        let captures = report.captures.into_iter().map(|it| {
            let v1::Capture { interface, packets, lost } = it;
            CaptureHealth { interface, packets, lost }
        });
        let troubles = report.troubles.into_iter();
        let troubles = troubles.map(|v1::Trouble { task, why }| Trouble { task, why });
        Self {
            version: report.version,
            clock: report.clock,
            clock_error_ns: report.synchronised.then_some(report.clock_error),
            processor_time_ns: report.processor_time,
            memory_bytes: report.memory,
            held_bytes: report.held,
            captures: captures.collect(),
            troubles: troubles.collect(),
            clock_sources: report.clock_sources.into_iter().map(SyncStatusHealth::from).collect(),
            clock_offsets: report.clock_offsets.iter().map(ClockOffset::from).collect(),
            tests: report.tests.into_iter().map(TestHealth::from).collect(),
        }
    }
}
