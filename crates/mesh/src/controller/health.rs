//! How probes do, as they say.

use serde::Serialize;

use crate::v1;

/// How a probe does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Health {
    /// Its version of Wirestamp.
    pub version: String,
    /// The clock that stamps its packets.
    pub clock: String,
    /// How far its system clock can be from UTC; none if nobody keeps it there.
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
}

/// The account of a capture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaptureHealth {
    /// The interface, as in the points of tasks.
    pub interface: String,
    /// Packets that came.
    pub packets: u64,
    /// Packets of these that were lost before a task could have them.
    pub lost: u64,
}

/// A task that a probe cannot do its part in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trouble {
    /// The number of the task.
    pub task: u64,
    /// Why, in one line.
    pub why: String,
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
        }
    }
}
