//! A flow as a probe has found it.

use std::net::IpAddr;

use serde::Deserialize;
use thiserror::Error;
use tracing::warn;
use utoipa::ToSchema;
use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::flow;

use crate::Name;

/// What a probe has told of a flow last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// What it is known by: reports with the same key are of the same flow.
    pub key: String,
    /// When its latest packet passed.
    pub last: Time<Utc>,
    /// The report, an object of JSON with the keys of a flow of `wirestamp flows --json`; none, if its packets were
    /// found to be of others.
    pub report: Option<String>,
}

/// What is no report of a flow.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("it tells of a flow that cannot be: {0}")]
pub struct NoFlow(String);

/// The longest report; usual ones have 2,000 bytes.
const LONGEST: usize = 64 << 10;

/// What makes a flow: of RTP, a stream of it. Without `ssrc` it has those packets that belong to no stream of RTP, as
/// RTCP beside it. The other keys are those of a flow of `wirestamp flows --json`.
#[derive(Deserialize, ToSchema)]
#[schema(as = Flow)]
pub(crate) struct FlowReport {
    #[schema(value_type = String)]
    src: IpAddr,
    sport: u16,
    #[schema(value_type = String)]
    dst: IpAddr,
    dport: u16,
    /// Of IP.
    protocol: u8,
    /// When its first packet passed, in nanoseconds since 1970 (UTC).
    first_ns: i64,
    /// When its latest packet passed.
    last_ns: i64,
    /// Packets that were seen.
    packets: u64,
    /// Of RTP.
    ssrc: Option<u32>,
}

impl Flow {
    /// Reads a report.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(report: String) -> Result<Self, NoFlow> {
        if report.len() > LONGEST {
            return Err(NoFlow(format!("a report of {} bytes", report.len())));
        }
        if !report.starts_with('{') {
            return Err(NoFlow("it is no object".to_owned()));
        }
        let key: FlowReport =
            serde_json::from_str(&report).map_err(|why| NoFlow(why.to_string()))?;
        let FlowReport { src, sport, dst, dport, protocol, first_ns, last_ns, packets, ssrc } = key;
        let stream = ssrc.map_or_else(String::new, |ssrc| format!(" {ssrc:08x}"));
        let key = format!("{src} {sport} {dst} {dport} {protocol} {first_ns}{stream}");
        let report = (packets > 0).then_some(report);
        Ok(Self { key, last: Time::from_nanos(last_ns), report })
    }
}

/// Reports of a task in full. One that cannot be read, of a probe of another version, is left out, which is said.
pub(crate) fn flow_reports(task: &Name, texts: Vec<String>) -> Vec<flow::FlowReport> {
    let count = texts.len();
    let read = texts.into_iter().filter_map(|text| serde_json::from_str(&text).ok());
    let reports: Vec<_> = read.collect();
    let left_out = count - reports.len();
    if left_out > 0 {
        warn!("task {task}: {left_out} flows cannot be read; probe and collector have to be alike");
    }
    reports
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"src":"192.0.2.1","dst":"2001:db8::1","sport":5,"dport":6,
        "protocol":17,"first_ns":1,"last_ns":2,"packets":3}"#;

    #[test]
    fn a_flow_is_known_by_its_ends_and_its_beginning() {
        let flow = Flow::read(REPORT.to_owned()).unwrap();
        assert_eq!(flow.key, "192.0.2.1 5 2001:db8::1 6 17 1");
        assert_eq!((flow.last, flow.report.as_deref()), (Time::from_nanos(2), Some(REPORT)));
        let without = REPORT.replace(r#""packets":3"#, r#""packets":0"#);
        assert_eq!(Flow::read(without).unwrap(), Flow { report: None, ..flow });
        let stream = REPORT.replace(r#""packets""#, r#""ssrc":255,"packets""#);
        assert!(Flow::read(stream).unwrap().key.ends_with(" 1 000000ff"));
    }

    #[test]
    fn what_is_no_flow_is_refused() {
        for (report, said) in [
            ("", "no object"),
            ("[]", "no object"),
            ("{", "EOF"),
            ("{}", "missing field"),
            (&REPORT.replace("192.0.2.1", "x"), "IP address"),
            (&"x".repeat(LONGEST + 1), "65537 bytes"),
        ] {
            let error = Flow::read(report.to_owned()).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
