//! Flow reports of probes.

use std::net::IpAddr;

use serde::Deserialize;
use thiserror::Error;
use tracing::warn;
use utoipa::ToSchema;
use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::flow;

use crate::Name;

/// The last report of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Reports with the same key belong to the same flow.
    pub key: String,
    /// Time of the last packet.
    pub last: Time<Utc>,
    /// The report as JSON, with the keys of `wirestamp flows --json`; none if the packets now belong to other flows.
    pub report: Option<String>,
}

/// A text that is not a flow report.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("cannot read a flow report: {0}")]
pub struct NoFlow(String);

/// Max length of a report; typical ones have 2,000 bytes.
const MAX_REPORT_BYTES: usize = 64 << 10;

/// Identity of a flow; for RTP, of a stream. Without `ssrc`: the packets that belong to no RTP stream, such as RTCP.
/// The other keys are those of `wirestamp flows --json`.
#[derive(Deserialize, ToSchema)]
#[schema(as = Flow)]
pub(crate) struct FlowReport {
    #[schema(value_type = String)]
    src: IpAddr,
    sport: u16,
    #[schema(value_type = String)]
    dst: IpAddr,
    dport: u16,
    /// IP protocol number.
    protocol: u8,
    /// Time of the first packet, in nanoseconds since 1970 (UTC).
    first_ns: i64,
    /// Time of the last packet.
    last_ns: i64,
    /// Packets observed.
    packets: u64,
    /// RTP synchronisation source.
    ssrc: Option<u32>,
}

impl Flow {
    /// Parses a report.
    ///
    /// # Errors
    /// When it is not a valid report.
    pub fn read(report: String) -> Result<Self, NoFlow> {
        if report.len() > MAX_REPORT_BYTES {
            return Err(NoFlow(format!("a report of {} bytes", report.len())));
        }
        if !report.starts_with('{') {
            return Err(NoFlow("not a JSON object".to_owned()));
        }
        let key: FlowReport =
            serde_json::from_str(&report).map_err(|why| NoFlow(why.to_string()))?;
        let FlowReport { src, sport, dst, dport, protocol, first_ns, last_ns, packets, ssrc } = key;
        let stream = ssrc.map_or_else(String::new, |ssrc| format!(" {ssrc:08x}"));
        let key = format!("{src} {sport} {dst} {dport} {protocol} {first_ns}{stream}");
        let report = (packets > 0).then_some(report);
        Ok(Self { key, last: Time::from_nanos(last_ns), report })
    }

    /// Time of the first packet in a key, in nanoseconds since 1970 (UTC).
    pub(super) fn first(key: &str) -> Option<i64> {
        key.split(' ').nth(5)?.parse().ok()
    }
}

/// Parses the reports of a task. Reports that cannot be parsed, of another version, are skipped with a warning.
pub(crate) fn flow_reports(task: &Name, texts: Vec<String>) -> Vec<flow::FlowReport> {
    let count = texts.len();
    let read = texts.into_iter().filter_map(|text| serde_json::from_str(&text).ok());
    let reports: Vec<_> = read.collect();
    let left_out = count - reports.len();
    if left_out > 0 {
        warn!(
            "task {task}: cannot read {left_out} flows; use the same version on probe and collector"
        );
    }
    reports
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = r#"{"src":"192.0.2.1","dst":"2001:db8::1","sport":5,"dport":6,
        "protocol":17,"first_ns":1,"last_ns":2,"packets":3}"#;

    #[test]
    fn key_contains_addresses_ports_and_begin() {
        let flow = Flow::read(REPORT.to_owned()).unwrap();
        assert_eq!(flow.key, "192.0.2.1 5 2001:db8::1 6 17 1");
        assert_eq!(Flow::first(&flow.key), Some(1));
        assert_eq!((flow.last, flow.report.as_deref()), (Time::from_nanos(2), Some(REPORT)));
        let without = REPORT.replace(r#""packets":3"#, r#""packets":0"#);
        assert_eq!(Flow::read(without).unwrap(), Flow { report: None, ..flow });
        let stream = REPORT.replace(r#""packets""#, r#""ssrc":255,"packets""#);
        assert!(Flow::read(stream).unwrap().key.ends_with(" 1 000000ff"));
    }

    #[test]
    fn invalid_reports_are_rejected() {
        for (report, said) in [
            ("", "not a JSON object"),
            ("[]", "not a JSON object"),
            ("{", "EOF"),
            ("{}", "missing field"),
            (&REPORT.replace("192.0.2.1", "x"), "IP address"),
            (&"x".repeat(MAX_REPORT_BYTES + 1), "65537 bytes"),
        ] {
            let error = Flow::read(report.to_owned()).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }
}
