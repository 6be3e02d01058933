//! Frames of videos that ffmpeg encodes, beside the encoder's numbers and beside losses that the test makes.

mod encoder;

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;

use serde_json::Value;

use super::rtcp::{Ends, Packet, SECOND, udp, write};
use crate::common::{json, run};
use encoder::{AV1, Codec, H264, H265, VP8, VP9, Video, encode};

const ENDS: Ends = ([10, 0, 0, 1], 4000, [10, 0, 0, 2], 5004);

/// A packet of RTP, with the place of its frame among all frames, and its place in the frame.
struct Part<'a> {
    bytes: &'a [u8],
    frame: usize,
    place: usize,
}

fn timestamp(packet: &[u8]) -> u32 {
    u32::from_be_bytes(*packet[4..].first_chunk().unwrap())
}

/// The packets with their frames, which are runs of one timestamp.
fn parts(video: &Video) -> Vec<Part<'_>> {
    let (mut frame, mut place) = (0, 0);
    let mut parts: Vec<Part<'_>> = Vec::new();
    for bytes in &video.packets {
        if let Some(last) = parts.last() {
            let is_same = timestamp(last.bytes) == timestamp(bytes);
            (frame, place) = if is_same { (frame, place + 1) } else { (frame + 1, 0) };
        }
        parts.push(Part { bytes, frame, place });
    }
    parts
}

/// A packet in a file, which arrives at the time of its timestamp, and 10 µs later for each place in its frame.
fn in_file(part: &Part<'_>, first: u32) -> Packet {
    let units = u64::from(timestamp(part.bytes).wrapping_sub(first));
    let offset = 10_000 * u64::try_from(part.place).unwrap();
    udp(units * SECOND / 90_000 + offset, ENDS, part.bytes)
}

/// The video of a file with the packets of `parts` for which `is_kept`.
fn video_of(
    codec: &Codec,
    path: &Path,
    parts: &[Part<'_>],
    is_kept: impl Fn(&Part<'_>) -> bool,
) -> Value {
    let first = timestamp(parts[0].bytes);
    let kept = parts.iter().filter(|part| is_kept(part)).map(|part| in_file(part, first));
    write(path, kept.collect());
    flows(codec, path)["flows"][0]["video"].clone()
}

fn flows(codec: &Codec, path: &Path) -> Value {
    let map = format!("96={}/90000", codec.name);
    json(&["flows", path.to_str().unwrap(), "--json", "--rtp-map", &map])
}

fn whole_number(count: usize) -> u64 {
    u64::try_from(count).unwrap()
}

fn number(video: &Value, key: &str) -> u64 {
    video[key].as_u64().unwrap_or_else(|| panic!("{key}: {video:#}"))
}

/// Frames, complete, damaged, undetermined.
fn states(video: &Value) -> [u64; 4] {
    ["frames", "complete_frames", "damaged_frames", "undetermined_frames"]
        .map(|key| number(video, key))
}

/// Number of packets of each frame.
fn sizes(parts: &[Part<'_>]) -> Vec<usize> {
    let mut sizes = vec![0; parts.last().map_or(0, |part| part.frame + 1)];
    parts.iter().for_each(|part| sizes[part.frame] += 1);
    sizes
}

#[test]
fn frames_of_each_codec_equal_those_of_the_encoder() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    thread::scope(|scope| {
        for codec in [&H264, &H265, &VP8, &VP9, &AV1] {
            scope.spawn(move || check(codec, folder));
        }
    });
}

fn check(codec: &Codec, folder: &Path) {
    let video = encode(codec, folder);
    let parts = parts(&video);
    let sizes = sizes(&parts);
    let path = folder.join(format!("{}.pcap", codec.name));
    let name = codec.name;
    assert!(video.key_frames.len() >= 3, "{name}: {:?}", video.key_frames);
    assert_eq!((video.frames, sizes.len()), (100, 100), "{name}");
    complete_video(codec, &path, &video, &parts);
    lost_packets(codec, &path, &video, &parts, &sizes);
    lost_frames_freeze(codec, &path, &parts, &sizes);
    encrypted_video(codec, &path, &video);
}

/// Without losses, also with duplicates and with packets reordered in their frames.
fn complete_video(codec: &Codec, path: &Path, video: &Video, parts: &[Part<'_>]) {
    let name = codec.name;
    let count = whole_number(video.frames);
    let found = video_of(codec, path, parts, |_| true);
    assert_eq!(states(&found), [count, count, 0, 0], "{name}: {found:#}");
    assert_eq!(number(&found, "key_frames"), whole_number(video.key_frames.len()), "{name}");
    assert_eq!((number(&found, "freezes"), number(&found, "min_frames_per_second")), (0, 25));
    let rate = found["frames_per_second"].as_f64().unwrap();
    assert!((rate - 25.0).abs() < 0.1, "{name}: {found:#}");
    let (mut frames, mut seconds) = (vec![0; video.frames], [0; 4]);
    for part in parts {
        let bytes = part.bytes.len() - 12;
        frames[part.frame] += bytes;
        seconds[part.frame / 25] += 8 * bytes;
    }
    let max = |values: &[usize]| whole_number(*values.iter().max().unwrap());
    assert_eq!(number(&found, "max_frame_bytes"), max(&frames), "{name}");
    assert_eq!(number(&found, "max_bitrate_bps"), max(&seconds[..3]), "{name}");

    let first = timestamp(parts[0].bytes);
    let mut packets: Vec<_> = parts.iter().map(|part| in_file(part, first)).collect();
    // Times of packets in one frame are exchanged; each seventh packet arrives again 5 ms later.
    for place in
        (1..packets.len()).filter(|place| parts[*place].place > 1 && place.is_multiple_of(3))
    {
        let (time, before) = (packets[place].0, packets[place - 1].0);
        (packets[place].0, packets[place - 1].0) = (before, time);
    }
    let again: Vec<_> = packets.iter().step_by(7).cloned().collect();
    packets.extend(again.into_iter().map(|(time, bytes)| (time + 5_000_000, bytes)));
    write(path, packets);
    let found = flows(codec, path);
    let flow = &found["flows"][0];
    assert!(number(flow, "duplicated") > 0 && number(flow, "reordered") > 0, "{name}: {flow:#}");
    assert_eq!(states(&flow["video"]), [count, count, 0, 0], "{name}: {found:#}");
    assert_eq!(flow["video"]["freezes"], 0, "{name}");
}

/// Frames with chosen losses are damaged, and no others.
fn lost_packets(codec: &Codec, path: &Path, video: &Video, parts: &[Part<'_>], sizes: &[usize]) {
    let name = codec.name;
    // Large frames with at least two frames between them, and the parameter sets of the last key frame.
    let last_key = *video.key_frames.last().unwrap();
    let mut large = Vec::new();
    for frame in (6..last_key - 2).filter(|frame| sizes[*frame] >= 3) {
        if large.last().is_none_or(|last| frame > last + 2) {
            large.push(frame);
        }
    }
    let [begin, middle, end, both, whole, ..] = large[..] else { panic!("{name}: {sizes:?}") };
    let mut lost: BTreeSet<(usize, usize)> = [
        (begin, 0),
        (middle, 1),
        (end, sizes[end] - 1),
        (both, 0),
        (both, sizes[both] - 1),
        (last_key, 0),
    ]
    .into();
    lost.extend((0..sizes[whole]).map(|place| (whole, place)));
    let is_kept = |part: &Part<'_>| !lost.contains(&(part.frame, part.place));
    let found = video_of(codec, path, parts, is_kept);
    let mut damaged: BTreeSet<_> = lost.iter().map(|(frame, _)| *frame).collect();
    let key_frames = video.key_frames.iter().filter(|frame| !damaged.contains(frame)).count();
    damaged.remove(&whole);
    let (count, damaged) = (whole_number(sizes.len() - 1), whole_number(damaged.len()));
    // Whether the frame after the one that is missing begins there is visible with these codecs only.
    let undetermined = u64::from(!["VP8", "VP9"].contains(&name));
    let expected = [count, count - damaged - undetermined, damaged, undetermined];
    assert_eq!(states(&found), expected, "{name} without {lost:?}: {found:#}");
    assert_eq!(number(&found, "key_frames"), whole_number(key_frames), "{name}");

    let file = path.to_str().unwrap();
    let map = format!("96={name}/90000");
    let csv = path.with_extension("csv");
    let arguments = ["flows", file, "-v", "--rtp-map", &map, "--csv", csv.to_str().unwrap()];
    let text = String::from_utf8(run(&arguments).stdout).unwrap();
    for part in ["video stream", "min frames/s", &format!("{damaged} ("), "freezeCount"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let csv = std::fs::read_to_string(&csv).unwrap();
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let column = names.iter().position(|it| *it == "video_damaged_frames").unwrap();
    assert_eq!(values[column], damaged.to_string(), "{name}");
}

/// A packet of each of six frames in a row is missing: the picture here stays for 7 * 40 ms.
fn lost_frames_freeze(codec: &Codec, path: &Path, parts: &[Part<'_>], sizes: &[usize]) {
    let name = codec.name;
    let found = video_of(codec, path, parts, |part| {
        !(51..57).contains(&part.frame) || part.place + 1 < sizes[part.frame]
    });
    assert_eq!(number(&found, "freezes"), 1, "{name}: {found:#}");
    let duration = number(&found, "freezes_duration_ns");
    assert!(duration.abs_diff(7 * SECOND / 25) < SECOND / 1000, "{name}: {found:#}");
    assert_eq!(number(&found, "min_frames_per_second"), 25 - 6, "{name}");
}

/// With an encrypted payload, frames are counted and key frames are unknown.
fn encrypted_video(codec: &Codec, path: &Path, video: &Video) {
    let name = codec.name;
    let mut state = 1_u64;
    let encrypt = |packet: &Vec<u8>| {
        let mut packet = packet.clone();
        for byte in &mut packet[12..] {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte ^= (state >> 56).to_le_bytes()[0];
        }
        packet
    };
    let packets = video.packets.iter().map(encrypt).collect();
    let encrypted = Video { packets, key_frames: Vec::new(), ..*video };
    let found = video_of(codec, path, &parts(&encrypted), |_| true);
    let count = whole_number(video.frames);
    assert_eq!(number(&found, "frames"), count, "{name}: {found:#}");
    assert!(number(&found, "complete_frames") >= count - 1, "{name}: {found:#}");
    assert!(found["key_frames"].is_null(), "{name}: {found:#}");
    assert_eq!(found["key_frames_unknown"], "unreadable-payload", "{name}");
}
