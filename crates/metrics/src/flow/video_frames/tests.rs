use proptest::prelude::*;
use wirestamp_clock::{Span, Time};
use wirestamp_packet::video::{FrameBegin, VideoPayload};

use super::*;

/// Time between two frames: 25 a second, with timestamps of 90 kHz.
const STEP_MS: i64 = 40;
const STEP: u32 = 3600;

/// How the payload shows the begin of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// The first packet shows that it is the first, as of VP8.
    Visible,
    /// The first packet shows that it may be the first, as of H.264.
    Possible,
    /// Nothing is readable.
    Hidden,
}

/// Frames of these numbers of packets, one each 40 ms; a key frame is each tenth. Numbers begin at 1000.
fn packets(sizes: &[u64], style: Style) -> Vec<FramePacket> {
    let mut packets = Vec::new();
    let mut timestamp = 0_u32;
    for (place, size) in (0i64..).zip(sizes) {
        for index in 0..*size {
            let begin = match (index, style) {
                (0, Style::Visible) => FrameBegin::First,
                (0, _) => FrameBegin::Possible,
                _ => FrameBegin::Continues,
            };
            let is_key = place % 10 == 0 && index == 0;
            let payload = VideoPayload { begin, end: None, is_key, is_cut: false };
            packets.push(FramePacket {
                number: 1000 + packets.len() as u64,
                timestamp,
                marker: index + 1 == *size,
                bytes: 100,
                arrival: Time::from_nanos(0) + Span::from_millis(STEP_MS * place),
                part: match style {
                    Style::Hidden => FramePart::Unreadable(UnknownVideoValue::UnreadablePayload),
                    _ => FramePart::Readable(payload),
                },
            });
        }
        timestamp = timestamp.wrapping_add(STEP);
    }
    packets
}

fn report_of<'a>(packets: impl IntoIterator<Item = &'a FramePacket>) -> VideoFramesReport {
    let mut frames = VideoFrames::default();
    packets.into_iter().for_each(|packet| frames.record(packet));
    assert!(frames.pending.len() <= MAX_PENDING);
    frames.report(false)
}

/// Without the packets at these places.
fn without(packets: &[FramePacket], places: &[usize]) -> VideoFramesReport {
    let kept = packets.iter().enumerate().filter(|(place, _)| !places.contains(place));
    report_of(kept.map(|(_, packet)| packet))
}

/// Complete, damaged and undetermined frames.
fn states(report: &VideoFramesReport) -> (u64, u64, u64) {
    let damaged = report.damaged_frames.expect("a number");
    (report.complete_frames, damaged, report.undetermined_frames)
}

#[test]
fn complete_stream_has_its_frames_and_rates() {
    let found = report_of(&packets(&[3; 101], Style::Visible));
    assert_eq!((found.frames, states(&found)), (101, (101, 0, 0)));
    assert_eq!((found.key_frames, found.key_frames_unknown), (Some(11), None));
    assert_eq!((found.frames_per_second, found.min_frames_per_second), (Some(25.0), Some(25)));
    // 303 packets of 100 bytes in 4 s.
    assert_eq!((found.bitrate_bps, found.max_bitrate_bps), (Some(60_600.0), Some(60_000)));
    assert_eq!((found.max_frame_bytes, found.freezes), (Some(300), Some(0)));
}

#[test]
fn gap_inside_or_at_an_edge_damages_a_frame() {
    for style in [Style::Visible, Style::Possible] {
        let packets = packets(&[3; 30], style);
        let first = u64::from(style != Style::Visible);
        // Inside, at the begin, at the end, and both parts of the same frame.
        for places in [&[31][..], &[30], &[32], &[30, 32]] {
            let found = without(&packets, places);
            assert_eq!(states(&found), (29 - first, 1, first), "{style:?} without {places:?}");
        }
        // The end of a frame and the begin of the next one.
        let found = without(&packets, &[32, 33]);
        assert_eq!(states(&found), (28 - first, 2, first), "{style:?}");
    }
}

#[test]
fn missing_whole_frames_damage_no_other_frame() {
    for style in [Style::Visible, Style::Possible] {
        let first = u64::from(style != Style::Visible);
        let found = without(&packets(&[1; 30], style), &[10, 20, 21]);
        assert_eq!((found.frames, states(&found)), (27, (27 - first, 0, first)), "{style:?}");
    }
    // Three packets are missing: it may be a frame of three, or one of two and the begin of the next one.
    let found = without(&packets(&[3; 30], Style::Possible), &[30, 31, 32]);
    assert_eq!(states(&found), (27, 0, 2));
}

#[test]
fn reordering_and_other_packets_damage_nothing() {
    let mut all = packets(&[4; 60], Style::Possible);
    for pair in all.chunks_mut(3) {
        pair.reverse();
    }
    let found = report_of(&all);
    assert_eq!(states(&found), (59, 0, 1));
    // A packet of another payload type in a frame, one after a frame, and padding at the end.
    let mut all = packets(&[4; 30], Style::Possible);
    for place in [41, 79, 119] {
        all[place].part = FramePart::Other;
        all[place].marker = false;
    }
    all[78].marker = true;
    all[118].marker = true;
    let found = report_of(&all);
    assert_eq!((found.frames, states(&found)), (30, (29, 0, 1)));
}

#[test]
fn frames_without_markers_end_where_the_next_begins() {
    let mut all = packets(&[3; 30], Style::Visible);
    all.iter_mut().for_each(|packet| packet.marker = false);
    // The last frame may continue.
    assert_eq!(states(&report_of(&all)), (29, 0, 1));
    assert_eq!(states(&without(&all, &[31])), (28, 1, 1));
    // The end of a frame, or a packet between both.
    assert_eq!(states(&without(&all, &[32])), (28, 0, 2));
}

#[test]
fn unreadable_payload_still_has_frames() {
    let found = report_of(&packets(&[3; 30], Style::Hidden));
    assert_eq!((found.frames, states(&found)), (30, (29, 0, 1)));
    let reason = Some(UnknownVideoValue::UnreadablePayload);
    assert_eq!((found.key_frames, found.key_frames_unknown), (None, reason));
    let found = without(&packets(&[3; 30], Style::Hidden), &[31]);
    assert_eq!(states(&found), (28, 1, 1));
}

#[test]
fn continuation_at_the_begin_of_frames_is_unreadable() {
    let mut all = packets(&[3; 30], Style::Visible);
    for packet in &mut all {
        if let FramePart::Readable(payload) = &mut packet.part {
            payload.begin = FrameBegin::Continues;
        }
    }
    let found = report_of(&all);
    assert_eq!(found.key_frames_unknown, Some(UnknownVideoValue::UnreadablePayload));
}

#[test]
fn capture_losses_leave_damage_and_freezes_unknown() {
    let mut frames = VideoFrames::default();
    packets(&[3; 30], Style::Visible).iter().for_each(|packet| frames.record(packet));
    let found = frames.report(true);
    let reason = Some(UnknownVideoValue::CaptureLost);
    assert_eq!((found.damaged_frames, found.damaged_frames_unknown), (None, reason));
    assert_eq!((found.freezes, found.freezes_unknown), (None, reason));
    assert_eq!(found.complete_frames, 30);
}

#[test]
fn damaged_frames_are_not_rendered() {
    let packets = packets(&[3; 100], Style::Visible);
    // One packet of each of five frames: the times between rendered frames are 40 ms, once 240 ms.
    let places: Vec<_> = (50..55).map(|frame| 3 * frame + 1).collect();
    let found = without(&packets, &places);
    assert_eq!((found.freezes, found.freezes_duration_ns), (Some(1), Some(240_000_000)));
    assert_eq!((states(&found), found.min_frames_per_second), ((95, 5, 0), Some(20)));
}

#[test]
fn restart_of_the_sender_damages_nothing() {
    let mut frames = VideoFrames::default();
    let all = packets(&[3; 30], Style::Visible);
    all.iter().for_each(|packet| frames.record(packet));
    frames.restart();
    for packet in &all {
        frames.record(&FramePacket { timestamp: packet.timestamp ^ 0x8000_0000, ..*packet });
    }
    assert_eq!(states(&frames.report(false)), (60, 0, 0));
}

#[test]
fn empty_stream_has_no_values() {
    let found = VideoFrames::default().report(false);
    assert_eq!((found.frames, found.key_frames, found.max_frame_bytes), (0, Some(0), None));
    assert_eq!((found.frames_per_second, found.bitrate_bps), (None, None));
    assert_eq!(found.freezes_unknown, Some(UnknownVideoValue::TooFewFrames));
}

proptest! {
    /// With a visible begin and markers, the damaged frames are those that miss a packet and have another one.
    #[test]
    fn damaged_frames_equal_those_with_missing_packets(
        sizes in prop::collection::vec(1..8_u64, 3..60),
        fates in prop::collection::vec(0..10_u8, 480),
        displacements in prop::collection::vec(0..6_usize, 480),
    ) {
        let packets = packets(&sizes, Style::Visible);
        let last = packets.len() - 1;
        let is_kept = |place: usize| place == 0 || place == last || fates[place] > 0;
        let mut kept: Vec<_> = (0..packets.len()).filter(|place| is_kept(*place)).collect();
        kept.sort_by_key(|place| match *place {
            0 => 0,
            place => place + displacements[place],
        });
        let found = report_of(kept.iter().map(|place| &packets[*place]));
        let (mut complete, mut damaged, mut begin) = (0, 0, 0_usize);
        for size in &sizes {
            let end = begin + usize::try_from(*size).unwrap();
            let arrived = (begin..end).filter(|place| is_kept(*place)).count();
            complete += u64::from(begin + arrived == end);
            damaged += u64::from(arrived > 0 && begin + arrived < end);
            begin = end;
        }
        prop_assert_eq!(states(&found), (complete, damaged, 0));
    }

    /// Without a visible begin, the frames that may miss a packet are damaged or undetermined.
    #[test]
    fn frames_with_missing_packets_are_never_complete(
        sizes in prop::collection::vec(1..8_u64, 3..60),
        fates in prop::collection::vec(0..10_u8, 480),
        is_hidden: bool,
    ) {
        let style = if is_hidden { Style::Hidden } else { Style::Possible };
        let packets = packets(&sizes, style);
        let is_kept = |place: usize| place == 0 || fates[place] > 0;
        let kept = packets.iter().enumerate().filter(|(place, _)| is_kept(*place));
        let found = report_of(kept.map(|(_, packet)| packet));
        let (mut complete, mut damaged, mut begin) = (0, 0, 0_usize);
        for size in &sizes {
            let end = begin + usize::try_from(*size).unwrap();
            let arrived = (begin..end).filter(|place| is_kept(*place)).count();
            complete += u64::from(begin + arrived == end);
            damaged += u64::from(arrived > 0 && begin + arrived < end);
            begin = end;
        }
        let (found_complete, found_damaged, undetermined) = states(&found);
        prop_assert_eq!(found.frames, complete + damaged);
        prop_assert!(found_complete <= complete && found_damaged <= damaged);
        prop_assert_eq!(found_complete + found_damaged + undetermined, complete + damaged);
    }

    #[test]
    fn any_packets_stay_within_the_bound(
        packets in prop::collection::vec((0..400_u64, 0..4_u32, any::<bool>(), any::<i64>()), 1..400),
    ) {
        let mut frames = VideoFrames::default();
        for (number, timestamp, marker, nanos) in packets {
            let part = FramePart::Unreadable(UnknownVideoValue::UnreadablePayload);
            let arrival = Time::from_nanos(nanos);
            frames.record(&FramePacket { number, timestamp, marker, bytes: 9, arrival, part });
            prop_assert!(frames.pending.len() <= MAX_PENDING + 1);
        }
        let found = frames.report(false);
        prop_assert!(found.complete_frames <= found.frames);
    }
}
