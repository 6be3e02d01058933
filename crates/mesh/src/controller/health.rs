//! Health of probes, from their reports.

use serde::Serialize;
use utoipa::ToSchema;
use wirestamp_active::sender::ClockExchange;
use wirestamp_clock::{Span, Time};

use crate::v1;

/// Health of a probe.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Health)]
pub struct ProbeHealth {
    /// Version of Wirestamp.
    pub version: String,
    /// Clock that stamps its packets.
    pub clock: String,
    /// Max error of its system clock against UTC; none if the clock is not synchronised.
    #[schema(required)]
    pub clock_error_ns: Option<u64>,
    /// Processor time used since its start.
    pub processor_time_ns: u64,
    /// Memory used.
    pub memory_bytes: u64,
    /// Size of its spool.
    pub held_bytes: u64,
    /// Its captures since their start.
    pub captures: Vec<CaptureHealth>,
    /// Tasks that it cannot measure.
    pub troubles: Vec<Trouble>,
    /// The clock sources of its system clock.
    #[serde(rename = "keepers")]
    pub clock_sources: Vec<SyncStatusHealth>,
    /// Offsets of the clocks of the probes to which it sends test packets, relative to its own.
    pub clock_offsets: Vec<ClockOffset>,
    /// Its ends of active tests since their start.
    pub tests: Vec<TestHealth>,
}

/// Counts of a capture.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct CaptureHealth {
    /// The interface, as in the points of tasks.
    pub interface: String,
    /// Packets received.
    pub packets: u64,
    /// Of these, packets lost before they reached a task.
    pub lost: u64,
}

/// Counts of an end of an active test.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct TestHealth {
    /// Task number.
    pub task: u64,
    /// The end.
    pub end: TestEnd,
    /// Datagrams rejected because of a wrong authentication code.
    pub forged: u64,
    /// Datagrams rejected because they were too short for a test packet.
    pub too_short: u64,
    /// Answers of other reflectors, which a reflector does not answer.
    pub answers: u64,
    /// Test packets that a reflector did not answer, because their session exceeded the max rate. Their arrival is
    /// observed like that of others.
    pub limited: u64,
}

/// An end of an active test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TestEnd {
    /// The sender.
    Sender,
    /// The reflector.
    Reflector,
}

impl From<v1::Test> for TestHealth {
    fn from(test: v1::Test) -> Self {
        let v1::Test { task, point, forged, too_short, answers, limited } = test;
        let end = if point == 0 { TestEnd::Sender } else { TestEnd::Reflector };
        Self { task, end, forged, too_short, answers, limited }
    }
}

/// A task that a probe cannot measure.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Trouble {
    /// Task number.
    pub task: u64,
    /// Reason, in one line.
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

/// Offset of the clock of a task's second probe, relative to the first one's.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ClockOffset {
    /// Number of the active test that measured it.
    pub task: u64,
    /// Time of the measurement, in nanoseconds since 1970 (UTC).
    pub at_ns: i64,
    /// How far the second clock is ahead.
    pub ahead_ns: i64,
    /// Max error of `ahead_ns`: half of the round trip.
    pub bound_ns: u64,
    /// Errors against UTC that the two clocks stated then; none for a clock that was not synchronised.
    pub claimed_ns: [Option<u64>; 2],
    /// Whether the offset exceeds the stated errors: one of the clocks is worse than stated.
    pub contradicts: bool,
}

impl From<&v1::ClockOffset> for ClockOffset {
    fn from(last: &v1::ClockOffset) -> Self {
        let v1::ClockOffset { task, at, ahead, bound, own_error, their_error } = *last;
        let span = |nanos: u64| i64::try_from(nanos).map_or(Span::MAX, Span::from_nanos);
        let exchange = ClockExchange {
            at: Time::from_nanos(at),
            ahead: Span::from_nanos(ahead),
            bound: span(bound),
            own: own_error.map(span),
            theirs: their_error.map(span),
        };
        Self {
            task,
            at_ns: at,
            ahead_ns: ahead,
            bound_ns: bound,
            claimed_ns: [own_error, their_error],
            contradicts: exchange.contradicts_the_clocks(),
        }
    }
}

impl ClockOffset {
    /// The same offset, seen from the other probe.
    pub(super) fn turned(&self) -> Self {
        let [first, second] = self.claimed_ns;
        Self {
            ahead_ns: self.ahead_ns.saturating_neg(),
            claimed_ns: [second, first],
            ..self.clone()
        }
    }
}

impl From<v1::Report> for ProbeHealth {
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
