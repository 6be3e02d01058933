//! `wirestamp delay` on RTP, recognised without configuration.

use std::fs;
use std::path::Path;

use crate::common::{Leftovers, is_root, json, run, stderr};
use crate::delay::{Classic, delay, delayed, files, sent};
use crate::real_rtp::{capture, degrade};
use serde_json::Value;
use tempfile::TempDir;

/// Packets of each call.
const PACKETS: u32 = 400;

/// Destination port and payload type of each call, and whether packets are lost: G.711, G.729, a codec that
/// only the signalling names, and an unknown codec.
const CALLS: [(u16, u8, bool); 4] =
    [(4000, 0, true), (4010, 18, false), (4020, 97, true), (4030, 96, false)];

const ANNOUNCED: &str = "INVITE sip:b@10.77.2.2 SIP/2.0\r\n\r\nv=0\r\nc=IN IP4 10.77.2.2\r\n\
    m=audio 4020 RTP/AVP 97\r\na=rtpmap:97 PCMA/8000\r\n";

/// A packet of 20 ms of 8000 Hz (RFC 3550 section 5.1).
fn voice(payload_type: u8, number: u32) -> Vec<u8> {
    let [.., high, low] = number.to_be_bytes();
    let source = (0xabc0_0000 | u32::from(payload_type)).to_be_bytes();
    let time = (number * 160).to_be_bytes();
    [&[0x80, payload_type, high, low][..], &time, &source, &[0xd5; 160]].concat()
}

/// All calls, as they are sent or as they arrive, and datagrams that are no RTP.
fn calls(arrive: bool) -> Classic {
    let mut capture = Classic::of_link(1);
    capture.udp(sent(0) - 1, 5060, 5060, ANNOUNCED.as_bytes());
    for number in 0..PACKETS {
        let time = sent(number) + if arrive { delay(number) } else { 0 };
        for (place, (port, payload_type, loses)) in (0..).zip(CALLS) {
            if !(arrive && loses && number % 25 == 10) {
                capture.udp(time + place, 4001, port, &voice(payload_type, number));
            }
        }
        capture.udp(time + 9, 4001, 4040, &[7; 40]);
    }
    capture
}

fn captured() -> (TempDir, [String; 2]) {
    files(calls(false), calls(true))
}

fn flow(found: &Value, port: u16) -> &Value {
    let flows = found["flows"].as_array().unwrap();
    flows.iter().find(|flow| flow["dport"] == port).unwrap()
}

#[test]
fn calls_are_rated_by_measured_quality() {
    let (_folder, files) = captured();
    let found = delayed(&[], &files);
    for (port, codec, known, encoding) in [
        (4000, "g711-plc", "assumed from payload type 0", "PCMU"),
        (4010, "g729a", "assumed from payload type 18", "G729"),
        (4020, "g711-plc", "from SDP or --rtp-map, payload type 97", "PCMA"),
    ] {
        let flow = flow(&found, port);
        assert_eq!(flow["codec"], codec, "{flow:#}");
        assert!(flow["codec_reason"].as_str().unwrap().starts_with(known), "{flow:#}");
        assert_eq!(flow["rtp_streams"][0]["encoding"], encoding);
        // The same as with --codec: delay and loss are the measured ones.
        let requested = delayed(&["--codec", codec], &files);
        let requested = self::flow(&requested, port);
        assert_eq!((&flow["mos"], &flow["r_factor"]), (&requested["mos"], &requested["r_factor"]));
        assert_eq!(requested["codec_reason"], "as requested");
        assert!(flow["mos"].as_f64() > Some(3.0));
        // 400 packets of 20 ms are 8 s.
        let over_time = flow["mos_over_time"].as_array().unwrap();
        assert!((8..=9).contains(&over_time.len()), "{flow:#}");
        assert_eq!(flow["mos_interval_ms"], 1024);
        let scores = over_time.iter().map(|mos| mos.as_f64().unwrap());
        let (least, most) =
            scores.fold((5.0, 0.0), |(least, most), mos| (mos.min(least), mos.max(most)));
        let whole = flow["mos"].as_f64().unwrap();
        assert!(least <= whole && whole <= most && least > 3.0, "{flow:#}");
    }
    let mos = |port| flow(&found, port)["mos"].as_f64();
    assert!(flow(&found, 4000)["lost"] == 16 && mos(4000) < Some(4.2), "{:?}", mos(4000));
}

#[test]
fn unknown_codec_has_no_rating() {
    let (_folder, files) = captured();
    let found = delayed(&[], &files);
    let unknown = flow(&found, 4030);
    assert_eq!((&unknown["mos"], &unknown["codec"]), (&Value::Null, &Value::Null));
    assert_eq!(unknown["rtp_streams"][0]["payload_type"], 96);
    for port in [4040, 5060] {
        let other = flow(&found, port).as_object().unwrap();
        assert!(!other.contains_key("mos") && !other.contains_key("rtp_streams"), "{port}");
    }
    // A requested codec applies to all flows. With aligned clocks, the delay is unknown.
    let requested = delayed(&["--codec", "g729a"], &files);
    assert!(flow(&requested, 4040)["mos"].is_f64() && flow(&requested, 4000)["codec"] == "g729a");
    assert_eq!(flow(&delayed(&["--align"], &files), 4000)["mos"], Value::Null);
}

/// A call of which some packets are lost, and some arrive 98 ms after the others.
fn call_with_late_packets() -> (TempDir, [String; 2]) {
    let [mut a, mut b] = [(); 2].map(|()| Classic::of_link(1));
    for number in 0..PACKETS {
        let (time, packet) = (sent(number), voice(0, number));
        a.udp(time, 4001, 4000, &packet);
        let delay = if number % 20 == 5 { 100_000_000 } else { 2_000_000 };
        if number % 50 != 30 {
            b.udp(time + delay, 4001, 4000, &packet);
        }
    }
    files(a, b)
}

#[test]
fn call_has_the_same_rating_by_delay_and_by_flows() {
    let (_folder, files) = call_with_late_packets();
    let rated = |buffer: &str| {
        let between = delayed(&["--jitter-buffer", buffer], &files);
        let flows = ["flows", &files[1], "--json", "--delay", "2", "--jitter-buffer", buffer];
        let [between, at_b] = [between, json(&flows)].map(|found| found["flows"][0].clone());
        assert_eq!(between["late"], at_b["late"], "{buffer}");
        let [one, other] = [&between, &at_b].map(|flow| flow["mos"].as_f64().unwrap());
        assert!((one - other).abs() < 0.03, "{buffer}: {one} {other}");
        (between["late"].as_u64().unwrap(), one)
    };
    let (short, long, adaptive) = (rated("60"), rated("120"), rated("adaptive"));
    assert_eq!((short.0, long.0), (20, 0));
    assert!(short.1 + 0.2 < long.1, "{short:?} {long:?}");
    // The adaptive buffer does not wait for rare packets.
    assert_eq!(adaptive.0, 20);
}

/// Codec and MOS of each rated flow of two captures.
fn mos_values(a: &Path, b: &Path) -> Vec<(String, f64)> {
    let found = json(&["delay", a.to_str().unwrap(), b.to_str().unwrap(), "--json"]);
    let rated = |flow: &Value| Some((flow["codec"].as_str()?.to_owned(), flow["mos"].as_f64()?));
    found["flows"].as_array().unwrap().iter().filter_map(rated).collect()
}

#[test]
fn real_calls_are_rated_lower_on_bad_networks() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = tempfile::tempdir().unwrap();
    let [real, bad] = ["real.pcapng", "bad.pcap"].map(|name| folder.path().join(name));
    capture(folder.path());
    degrade::copy(&real, &bad);
    let (perfect, worse) = (mos_values(&real, &real), mos_values(&real, &bad));
    let mut codecs: Vec<_> = perfect.iter().map(|(codec, _)| codec.as_str()).collect();
    codecs.sort_unstable();
    assert_eq!(codecs, ["g711-plc", "g711-plc", "g711-plc", "g729a"]);
    assert_eq!(perfect.len(), worse.len());
    assert!(perfect.iter().zip(&worse).all(|(real, bad)| real.1 > bad.1), "{perfect:?} {worse:?}");
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn sample_recognises_the_same_calls() {
    let (_folder, files) = captured();
    let found = delayed(&["--sample", "1/8"], &files);
    assert!(found["matched"].as_u64() < Some(500), "{found:#}");
    assert_eq!(flow(&found, 4010)["codec"], "g729a");
    assert!(flow(&found, 4010)["mos"].is_f64());
}

#[test]
fn text_and_report_show_the_codecs_source() {
    let (folder, files) = captured();
    let path = folder.path().join("report.html");
    let output = run(&["delay", &files[0], &files[1], "--report", path.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    for part in [
        "codec  late     R   MOS",
        "Codec: g711-plc, assumed from payload type 0 (PCMU).",
        "Codec: g711-plc, from SDP or --rtp-map, payload type 97 (PCMA).",
        "No R and MOS for RTP with payload type 96 (not announced): no captured SIP announces the payload type",
    ] {
        assert!(text.contains(part), "{part} in {text}{}", stderr(&output));
    }
    let page = fs::read_to_string(&path).unwrap();
    for part in ["with g729a, assumed from payload type 18 (G729)", "As a phone call"] {
        assert!(page.contains(part), "{part}");
    }
}
