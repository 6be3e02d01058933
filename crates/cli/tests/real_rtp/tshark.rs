//! What tshark prints of RTP streams.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::tool;

/// The figures of a stream as tshark prints them, times in milliseconds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) packets: u64,
    pub(crate) lost: i64,
    pub(crate) max_delta: String,
    pub(crate) mean_jitter: String,
    pub(crate) max_jitter: String,
}

/// The streams that tshark finds without being told a port, by their sources.
pub(crate) fn streams(path: &Path) -> BTreeMap<u64, Row> {
    let path = path.to_str().unwrap();
    let heuristic = ["--enable-heuristic", "rtp_udp", "-q", "-z", "rtp,streams"];
    let text = tool("tshark", &[&["-n", "-r", path][..], &heuristic].concat());
    text.lines().filter_map(row).collect()
}

/// The source and the figures of a line; `None` for headings. Payloads have spaces in their names, so the
/// columns are counted from the share of losses, "(1.2%)".
fn row(line: &str) -> Option<(u64, Row)> {
    let words: Vec<_> = line.split_whitespace().collect();
    let source = words.iter().find_map(|word| word.strip_prefix("0x"))?;
    let share = words.iter().position(|word| word.ends_with("%)"))?;
    let figure = |column: usize| words[share + column].to_owned();
    let row = Row {
        packets: words[share - 2].parse().unwrap(),
        lost: words[share - 1].parse().unwrap(),
        max_delta: figure(3),
        mean_jitter: figure(5),
        max_jitter: figure(6),
    };
    Some((u64::from_str_radix(source, 16).unwrap(), row))
}
