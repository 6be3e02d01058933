//! Frames of videos over RTP.

use super::*;
use crate::CaptureLoss;

const SSRC: u32 = 7;

/// A packet of H.264 with payload type 96.
fn packet(number: u16, frame: u32, marker: bool, payload: &[u8]) -> Vec<u8> {
    let [high, low] = number.to_be_bytes();
    let head = [0x80, 96 | u8::from(marker) << 7, high, low];
    let words = [frame.wrapping_mul(3600), SSRC].map(u32::to_be_bytes);
    [&head[..], words.as_flattened(), payload].concat()
}

/// Frames of three packets, one each 40 ms: parameter sets and an IDR picture in each tenth, other pictures between them.
/// Returns number, time in milliseconds, and packet.
fn frames(count: u32) -> Vec<(u16, i64, Vec<u8>)> {
    let mut packets = Vec::new();
    for frame in 0..count {
        let is_key = frame.is_multiple_of(10);
        let kind = if is_key { 5 } else { 1 };
        let sets = [0x78, 0, 2, 0x67, 0x42, 0, 2, 0x68, 0xce];
        let slice = [0x61, 0x9a, 1, 2, 3];
        let first: &[u8] = if is_key { &sets } else { &slice };
        // A fragment that begins a slice of the picture, and its end.
        let macroblock = if is_key { 0x88 } else { 0x1a };
        let parts = [
            first.to_vec(),
            vec![0x7c, 0x80 | kind, macroblock, 1],
            vec![0x7c, 0x40 | kind, 9, 9, 9],
        ];
        for (place, payload) in (0..3).zip(parts) {
            let number = u16::try_from(3 * frame + place).expect("few packets");
            let bytes = packet(number, frame, place == 2, &payload);
            packets.push((number, 40 * i64::from(frame), bytes));
        }
    }
    packets
}

fn h264() -> FlowMonitor {
    let rtp_map = ["96=H264/90000"].into_iter().map(|it| it.parse().expect("an entry")).collect();
    FlowMonitor::new(FlowConfig { rtp_map, ..FlowConfig::default() })
}

fn video(monitor: &mut FlowMonitor) -> Option<VideoFramesReport> {
    let [report] = &reports(monitor)[..] else { panic!("{:?}", reports(monitor)) };
    report.video
}

#[test]
fn frames_and_key_frames_of_h264_are_counted() {
    let mut monitor = h264();
    for (_, millis, bytes) in frames(101) {
        observe(&mut monitor, &udp(ENDS, &bytes), at(millis));
    }
    let found = video(&mut monitor).expect("a video");
    assert_eq!((found.frames, found.complete_frames, found.key_frames), (101, 101, Some(11)));
    assert_eq!((found.damaged_frames, found.undetermined_frames), (Some(0), 0));
    assert_eq!(found.frames_per_second, Some(25.0));
    assert_eq!(found.max_frame_bytes, Some(9 + 4 + 5));
}

#[test]
fn lost_packets_damage_frames_but_duplicates_do_not() {
    let mut monitor = h264();
    // Parameter sets of the third key frame, the middle of frame 33, the end of frame 35.
    let lost = [60, 100, 107];
    for (number, millis, bytes) in frames(60) {
        if !lost.contains(&number) {
            observe(&mut monitor, &udp(ENDS, &bytes), at(millis));
            observe(&mut monitor, &udp(ENDS, &bytes), at(millis));
        }
    }
    let found = video(&mut monitor).expect("a video");
    assert_eq!((found.frames, found.complete_frames), (60, 57));
    assert_eq!((found.damaged_frames, found.undetermined_frames), (Some(3), 0));
    assert_eq!(found.key_frames, Some(5));
}

#[test]
fn capture_losses_are_no_damage_of_the_network() {
    let mut monitor = h264();
    for (number, millis, bytes) in frames(60) {
        if number != 100 {
            observe(&mut monitor, &udp(ENDS, &bytes), at(millis));
        }
    }
    assert_eq!(video(&mut monitor).and_then(|it| it.damaged_frames), Some(1));
    monitor.missed(CaptureLoss { from: at(1310), until: at(1330), packets: 1 });
    let found = video(&mut monitor).expect("a video");
    assert_eq!(found.damaged_frames, None);
    assert_eq!(found.damaged_frames_unknown, Some(UnknownVideoValue::CaptureLost));
    assert_eq!((found.frames, found.complete_frames), (60, 59));
}

#[test]
fn aggregates_of_several_frames_have_their_own_reason() {
    let mut monitor = h264();
    for number in 0..60 {
        // MTAP16 with a unit.
        let payload = [0x7a, 0, 1, 0, 6, 0, 0, 0, 0x65, 0x88, 0x84];
        let bytes = packet(number, number.into(), true, &payload);
        observe(&mut monitor, &udp(ENDS, &bytes), at(40 * i64::from(number)));
    }
    let found = video(&mut monitor).expect("a video");
    assert_eq!(found.key_frames, None);
    assert_eq!(found.key_frames_unknown, Some(UnknownVideoValue::InterleavedPayload));
}

#[test]
fn streams_without_a_video_codec_have_no_frames() {
    let mut monitor = monitor();
    for (_, millis, bytes) in frames(30) {
        observe(&mut monitor, &udp(ENDS, &bytes), at(millis));
    }
    assert_eq!(video(&mut monitor), None, "the payload type is unknown");
    let mut monitor = self::monitor();
    for number in 0..30 {
        observe(&mut monitor, &udp(ENDS, &voice(SSRC, 0, number)), at(20 * i64::from(number)));
        let mut packet = voice(SSRC + 1, 33, number);
        packet.truncate(100);
        observe(&mut monitor, &udp(ENDS, &packet), at(20 * i64::from(number)));
    }
    assert!(reports(&mut monitor).iter().all(|it| it.video.is_none()), "PCMU and MP2T");
}

#[test]
fn codec_that_is_announced_late_has_a_media_delivery_index() {
    let mut monitor = monitor();
    for (number, millis, bytes) in frames(200) {
        if number == 150 {
            let message = "INVITE sip:b@10.0.0.2 SIP/2.0\r\nContent-Type: application/sdp\r\n\
                           \r\nv=0\r\nc=IN IP4 10.0.0.2\r\nm=video 5004 RTP/AVP 96\r\n\
                           a=rtpmap:96 H264/90000\r\n";
            let sip = ([10, 0, 0, 2], 5060, [10, 0, 0, 1], 5060);
            observe(&mut monitor, &udp(sip, message.as_bytes()), at(millis));
        }
        observe(&mut monitor, &udp(ENDS, &bytes), at(millis));
    }
    let index = reports(&mut monitor).into_iter().find_map(|it| it.rtp?.media_delivery);
    let index = index.expect("a video");
    // 14.4 bytes a frame, 25 frames a second.
    assert!((index.media_rate_bps / 2880.0 - 1.0).abs() < 0.05, "{index:?}");
    assert!(index.max_delay_factor_ms.is_some());
}

#[test]
fn announced_encryption_leaves_key_frames_unknown() {
    for (profile, key_frames) in [("RTP/AVP", Some(6)), ("UDP/TLS/RTP/SAVPF", None)] {
        let mut monitor = monitor();
        let message = format!(
            "INVITE sip:b@10.0.0.2 SIP/2.0\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n\
             c=IN IP4 10.0.0.2\r\nm=video 5004 {profile} 96\r\na=rtpmap:96 H264/90000\r\n"
        );
        let sip = ([10, 0, 0, 2], 5060, [10, 0, 0, 1], 5060);
        observe(&mut monitor, &udp(sip, message.as_bytes()), at(0));
        for (_, millis, bytes) in frames(60) {
            observe(&mut monitor, &udp(ENDS, &bytes), at(millis));
        }
        let found = reports(&mut monitor).into_iter().find_map(|it| it.video).expect("a video");
        assert_eq!((found.frames, found.key_frames), (60, key_frames), "{profile}");
        let reason = key_frames.is_none().then_some(UnknownVideoValue::EncryptedPayload);
        assert_eq!(found.key_frames_unknown, reason);
    }
}
