//! Frames of videos as text.

use std::collections::BTreeSet;

use wirestamp_metrics::flow::{FlowReport, VideoFramesReport};

use crate::output::{count, percent, plural, time};
use crate::table::table;

/// The columns of [`row`].
const HEADER: [&str; 11] = [
    "video stream",
    "frames",
    "damaged",
    "undetermined",
    "key frames",
    "frames/s",
    "min frames/s",
    "Mbit/s",
    "max Mbit/s",
    "max frame",
    "freezes",
];

/// A table of the frames of each video; empty without any.
pub(super) fn text(flows: &[FlowReport], top: usize) -> String {
    let rows: Vec<_> = flows.iter().filter_map(row).take(top).collect();
    if rows.is_empty() {
        return String::new();
    }
    let reasons: BTreeSet<_> =
        flows.iter().filter_map(|flow| flow.video.as_ref()).flat_map(reasons).collect();
    let reasons: String = reasons.into_iter().map(|reason| format!("{reason}\n")).collect();
    format!(
        "\n{}By the packets at this point, not by the picture on a screen. Damaged: packets of the frame are missing. \
         Freezes: times\nbetween the arrivals of undamaged frames that W3C webrtc-stats counts as freezes (freezeCount).\n\
         {reasons}\n",
        table(&HEADER, &rows)
    )
}

/// Why values are unknown.
fn reasons(video: &VideoFramesReport) -> impl Iterator<Item = String> {
    let named = [
        ("damaged frames", video.damaged_frames_unknown),
        ("key frames", video.key_frames_unknown),
        ("freezes", video.freezes_unknown),
    ];
    named.into_iter().filter_map(|(name, reason)| Some(format!("No {name}: {}.", reason?)))
}

fn row(flow: &FlowReport) -> Option<Vec<String>> {
    let video = flow.video.as_ref()?;
    let none = || "-".to_owned();
    let counted = |value: Option<u64>| value.map_or_else(none, count);
    Some(vec![
        flow.flow().to_string(),
        count(video.frames),
        damaged(video),
        count(video.undetermined_frames),
        counted(video.key_frames),
        video.frames_per_second.map_or_else(none, |rate| format!("{rate:.1}")),
        counted(video.min_frames_per_second),
        video.bitrate_bps.map_or_else(none, |bps| format!("{:.3}", bps / 1e6)),
        max_bitrate(video).unwrap_or_else(none),
        video.max_frame_bytes.map_or_else(none, |bytes| plural(bytes, "byte", "bytes")),
        freezes(video).unwrap_or_else(none),
    ])
}

/// `12 (0.50 %)`.
fn damaged(video: &VideoFramesReport) -> String {
    video.damaged_frames.map_or_else(
        || "-".to_owned(),
        |damaged| format!("{} ({})", count(damaged), percent(damaged, video.frames)),
    )
}

#[expect(clippy::cast_precision_loss, reason = "printed with three digits after the point")]
fn max_bitrate(video: &VideoFramesReport) -> Option<String> {
    video.max_bitrate_bps.map(|bps| format!("{:.3}", bps as f64 / 1e6))
}

/// `2, 1.20 s`.
fn freezes(video: &VideoFramesReport) -> Option<String> {
    let (freezes, duration) = video.freezes.zip(video.freezes_duration_ns)?;
    Some(match freezes {
        0 => count(0),
        _ => format!("{}, {}", count(freezes), time(duration)),
    })
}

/// The lines of a stream's page: names and texts.
pub(super) fn lines(video: &VideoFramesReport) -> Vec<(&'static str, String)> {
    let none = || "-".to_owned();
    let counted = |value: Option<u64>| value.map_or_else(none, count);
    let rate = video.frames_per_second.map_or_else(none, |rate| format!("{rate:.1}"));
    vec![
        (
            "video frames",
            format!(
                "{}: {} damaged, {} undetermined, {} complete key frames",
                count(video.frames),
                damaged(video),
                count(video.undetermined_frames),
                counted(video.key_frames)
            ),
        ),
        ("frame rate", format!("{rate} per second, min {}", counted(video.min_frames_per_second))),
        (
            "freezes here",
            format!("{} (W3C freezeCount, by arrival)", freezes(video).unwrap_or_else(none)),
        ),
    ]
}
