//! The kernel's counters of a test bed: packets passed, dropped and duplicated.

use serde::Deserialize;

use crate::iproute::Program;
use crate::{LabError, Netns};

/// The bottleneck's counters. Every packet is counted in one of them, after it has left the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BottleneckCounters {
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets dropped because the queue was full.
    pub dropped_packets: u64,
}

/// The used fields of an entry of `tc -s -j qdisc show`.
#[derive(Deserialize)]
struct Qdisc {
    kind: String,
    packets: u64,
    drops: u64,
}

/// The used fields of an entry of `tc -s -j filter show`.
#[derive(Deserialize)]
struct Filter {
    #[serde(default)]
    options: FilterOptions,
}

#[derive(Default, Deserialize)]
struct FilterOptions {
    #[serde(default)]
    actions: Vec<Action>,
}

#[derive(Deserialize)]
struct Action {
    stats: ActionStatistics,
}

#[derive(Deserialize)]
struct ActionStatistics {
    packets: u64,
}

/// Reads the counters of the token bucket on `egress`.
pub(crate) fn bottleneck(router: &Netns, egress: &str) -> Result<BottleneckCounters, LabError> {
    let arguments = ["-s", "-j", "qdisc", "show", "dev", egress];
    let json = Program::Tc.query(router, &arguments)?;
    parse_bottleneck(&json).map_err(unreadable("the bottleneck"))
}

fn parse_bottleneck(json: &[u8]) -> Result<BottleneckCounters, String> {
    let qdiscs: Vec<Qdisc> = serde_json::from_slice(json).map_err(|e| e.to_string())?;
    let bucket = qdiscs.iter().find(|qdisc| qdisc.kind == "tbf").ok_or("no tbf found")?;
    Ok(BottleneckCounters { sent_packets: bucket.packets, dropped_packets: bucket.drops })
}

/// Reads the number of packets that the filters at `ingress` have duplicated.
pub(crate) fn duplicated(router: &Netns, ingress: &str) -> Result<u64, LabError> {
    let arguments = ["-s", "-j", "filter", "show", "dev", ingress, "ingress"];
    let json = Program::Tc.query(router, &arguments)?;
    parse_duplicated(&json).map_err(unreadable("the duplicates"))
}

fn parse_duplicated(json: &[u8]) -> Result<u64, String> {
    let filters: Vec<Filter> = serde_json::from_slice(json).map_err(|e| e.to_string())?;
    let actions = filters.iter().flat_map(|filter| &filter.options.actions);
    Ok(actions.map(|action| action.stats.packets).sum())
}

fn unreadable(what: &'static str) -> impl FnOnce(String) -> LabError {
    move |reason| LabError::Statistics { what, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_those_of_the_token_bucket() {
        let json = br#"[{"kind":"tbf","handle":"1:","root":true,"packets":7,"drops":3},
            {"kind":"bfifo","parent":"10:2","packets":9,"drops":9}]"#;
        let counters = BottleneckCounters { sent_packets: 7, dropped_packets: 3 };
        assert_eq!(parse_bottleneck(json), Ok(counters));
        assert!(parse_bottleneck(b"[]").is_err());
        assert!(parse_bottleneck(b"").is_err());
    }

    #[test]
    fn duplicates_of_both_ip_versions_are_added() {
        // `tc` repeats the key `match`, and prints a filter three times, with its action once.
        let json = br#"[{"protocol":"ip","kind":"u32"},
            {"protocol":"ip","options":{"fh":"800:"}},
            {"protocol":"ip","options":{"match":{"off":8},"match":{"off":20},
                "actions":[{"kind":"mirred","stats":{"bytes":5,"packets":4}}]}},
            {"protocol":"ipv6","options":{"actions":[{"kind":"mirred","stats":{"packets":2}}]}}]"#;
        assert_eq!(parse_duplicated(json), Ok(6));
    }
}
