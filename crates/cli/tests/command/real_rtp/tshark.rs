//! Output of tshark on RTP streams.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::tool;

/// The figures of a stream as tshark prints them: times in milliseconds with three digits behind the point.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) packets: u64,
    pub(crate) lost: i64,
    pub(crate) max_delta_ms: f64,
    pub(crate) mean_jitter_ms: f64,
    pub(crate) max_jitter_ms: f64,
}

/// A stream: the port and the synchronisation source of its sender.
pub(crate) type Source = (u64, u64);

/// The streams that tshark finds without a given port.
pub(crate) fn streams(path: &Path) -> BTreeMap<Source, Row> {
    let path = path.to_str().unwrap();
    let heuristic = ["--enable-heuristic", "rtp_udp", "-q", "-z", "rtp,streams"];
    let text = tool("tshark", &[&["-n", "-r", path][..], &heuristic].concat());
    text.lines().filter_map(row).collect()
}

/// The source and the figures of a line; `None` for headings. Payloads have spaces in their names, so the
/// columns are counted from the share of losses, "(1.2%)".
fn row(line: &str) -> Option<(Source, Row)> {
    let words: Vec<_> = line.split_whitespace().collect();
    let place = words.iter().position(|word| word.starts_with("0x"))?;
    let port = words[place - 3].parse().unwrap();
    let share = words.iter().position(|word| word.ends_with("%)"))?;
    let millis = |column: usize| words[share + column].parse().unwrap();
    let row = Row {
        packets: words[share - 2].parse().unwrap(),
        lost: words[share - 1].parse().unwrap(),
        max_delta_ms: millis(3),
        mean_jitter_ms: millis(5),
        max_jitter_ms: millis(6),
    };
    Some(((port, u64::from_str_radix(&words[place][2..], 16).unwrap()), row))
}
