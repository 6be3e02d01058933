//! `flows` beside tshark on real RTP, on damaged files, and on an interface.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;

use crate::common::{Leftovers, is_root, json, run, stderr, wirestamp};
use crate::real_rtp::tshark::{self, Row, Source};
use crate::real_rtp::{capture, degrade};
use serde_json::Value;

/// Our streams of a file.
pub(super) fn ours(path: &Path) -> BTreeMap<Source, Value> {
    let found = json(&["flows", path.to_str().unwrap(), "--json"]);
    let flows = found["flows"].as_array().unwrap().clone();
    let source = |flow: &Value| Some((flow["sport"].as_u64()?, flow["ssrc"].as_u64()?));
    flows.into_iter().filter_map(|flow| Some((source(&flow)?, flow))).collect()
}

/// Asserts that tshark's values are ours. It prints unknown jitter as 0, and times rounded to the microsecond; what it does
/// with half a microsecond depends on the rest of its arithmetic.
#[track_caller]
pub(super) fn assert_agrees(flow: &Value, theirs: &Row) {
    let times = [
        ("max_delta_ms", theirs.max_delta_ms),
        ("mean_jitter_ms", theirs.mean_jitter_ms),
        ("max_jitter_ms", theirs.max_jitter_ms),
    ];
    assert_eq!(flow["packets"], theirs.packets, "{flow:#}");
    assert_eq!(flow["cumulative_lost"], theirs.lost, "{flow:#}");
    for (key, time) in times {
        let difference = flow[key].as_f64().unwrap_or(0.0) - time;
        assert!(difference.abs() < 0.000_500_1, "{key}: tshark has {time}: {flow:#}");
    }
}

#[test]
fn rtp_loss_jitter_and_delta_agree_with_tshark() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let folder = tempfile::tempdir().unwrap();
    let [real, bad] = ["real.pcapng", "bad.pcap"].map(|name| folder.path().join(name));
    capture(folder.path());
    degrade::copy(&real, &bad);
    for file in [&real, &bad] {
        let (ours, theirs) = (ours(file), tshark::streams(file));
        let mut codecs: Vec<_> =
            ours.values().filter_map(|it| Some((it["codec"].as_str()?, it))).collect();
        codecs.sort_by_key(|(codec, _)| *codec);
        let names: Vec<_> = codecs.iter().map(|(codec, _)| *codec).collect();
        let event = "telephone-event";
        let expected = ["G722", "G729", "MP2T", "PCMA", "PCMA", "PCMU", "opus", event, event];
        assert_eq!(names, expected);
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
        for (source, flow) in &ours {
            assert_agrees(flow, &theirs[source]);
        }
        let degraded = file == &bad;
        for (codec, flow) in codecs.iter().filter(|(codec, _)| *codec != event) {
            let lost = flow["lost"].as_u64().unwrap();
            let reordered = flow["reordered"].as_u64().unwrap();
            assert_eq!((lost > 10, reordered > 0), (degraded, degraded), "{codec}: {flow:#}");
            let voice = ["G729", "PCMA", "PCMU"].contains(codec);
            assert_eq!(flow["mos"].is_f64(), voice, "{codec}");
        }
    }
    let opinions = [&real, &bad].map(|file| opinions(&ours(file)));
    assert!(opinions[0].iter().zip(&opinions[1]).all(|(real, bad)| real > bad), "{opinions:?}");
    tables_have_every_flow(&bad, folder.path());
    calls_of_sipp_have_their_streams(&real);
    calls_are_selected_by_their_parties(&real);
    errors_of_transport_streams_are_counted([&real, &bad]);
    assert_eq!(Leftovers::now(), before);
}

/// The MOS of the rated streams, in the order of their sources.
fn opinions(streams: &BTreeMap<Source, Value>) -> Vec<f64> {
    streams.values().filter_map(|flow| flow["mos"].as_f64()).collect()
}

/// ffmpeg sends a transport stream in RTP, and one in UDP; the second file has losses.
fn errors_of_transport_streams_are_counted(files: [&Path; 2]) {
    for (file, is_degraded) in files.into_iter().zip([false, true]) {
        let found = json(&["flows", file.to_str().unwrap(), "--json"]);
        let flows = found["flows"].as_array().unwrap();
        let streams: Vec<_> =
            flows.iter().filter(|it| it["transport_stream"].is_object()).collect();
        let mut ports: Vec<_> = streams.iter().filter_map(|it| it["dport"].as_u64()).collect();
        ports.sort_unstable();
        assert_eq!(ports, [40_040, 40_050], "{found:#}");
        for stream in streams {
            let of = |key: &str| stream["transport_stream"][key].as_u64().unwrap();
            assert!(of("packets") > 100 && of("pids") >= 3, "{stream:#}");
            assert_eq!(of("continuity_errors") > 0, is_degraded, "{stream:#}");
            // RTP has its own index.
            let in_udp = stream["transport_stream"].get("media_delivery");
            assert_eq!(in_udp.is_some(), stream["dport"] == 40_050, "{stream:#}");
            assert_eq!(of("sync_byte_errors") + of("crc_errors") + of("transport_errors"), 0);
        }
    }
}

/// The callee of sipp sends no RTP, and both calls announce its only port.
fn calls_of_sipp_have_their_streams(file: &Path) {
    let found = json(&["flows", file.to_str().unwrap(), "--json", "--dtmf"]);
    let calls = found["calls"].as_array().unwrap();
    assert_eq!(calls.len(), 2, "{found:#}");
    let mut streams = Vec::new();
    for call in calls {
        assert_eq!((&call["state"], &call["status"]), (&"ended".into(), &200.into()), "{call:#}");
        assert_eq!(call["caller"].as_str().unwrap().split('@').next(), Some("sip:caller"));
        assert!(
            call["setup_ms"].is_f64() && call["duration_ms"].as_f64() > Some(4000.0),
            "{call:#}"
        );
        assert_eq!((&call["one_way_audio"], &call["ended_by"]), (&true.into(), &"caller".into()));
        assert_eq!(call["to_caller"], Value::Array(Vec::new()));
        let of_call = call["to_callee"].as_array().unwrap();
        assert!(of_call.iter().any(|it| it["dtmf"] == "1"), "{call:#}");
        let first = of_call.iter().max_by_key(|it| it["packets"].as_u64()).unwrap();
        let port = first["src"].as_str().unwrap().rsplit(':').next().unwrap().to_owned();
        streams.push((port, first["codec"].as_str().unwrap().to_owned()));
    }
    streams.sort();
    let expected = [("43000", "PCMA"), ("44000", "G729")];
    assert_eq!(streams, expected.map(|(port, codec)| (port.to_owned(), codec.to_owned())));
    let text =
        String::from_utf8(run(&["flows", file.to_str().unwrap(), "-v", "--dtmf"]).stdout).unwrap();
    for part in [
        "One-way audio in call",
        "no RTP of the callee was captured after",
        "180 Ringing (INVITE)",
        "Digits of the caller",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

/// Both calls are of `sip:caller@...`.
fn calls_are_selected_by_their_parties(file: &Path) {
    let selected =
        |options: &[&str]| json(&[&["flows", file.to_str().unwrap(), "--json"], options].concat());
    let found = selected(&["--caller", "CALLER@"]);
    let [calls, flows] = ["calls", "flows"].map(|key| found[key].as_array().unwrap().len());
    assert_eq!((calls, &found["calls_not_selected"]), (2, &0.into()), "{found:#}");
    let all = selected(&[]);
    assert!((2..all["flows"].as_array().unwrap().len()).contains(&flows), "{found:#}");
    assert!(all.get("calls_not_selected").is_none() && found["packets"] == all["packets"]);
    let none = selected(&["--caller", "caller", "--callee", "of another"]);
    assert_eq!((&none["calls"], &none["flows"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    assert_eq!(none["calls_not_selected"], 2);
}

/// The text, CSV and Parquet of a file beside its JSON.
fn tables_have_every_flow(file: &Path, folder: &Path) {
    let [csv, parquet] = ["flows.csv", "flows.parquet"].map(|name| folder.join(name));
    let [file, csv_path, parquet_path] = [file, &csv, &parquet].map(|it| it.to_str().unwrap());
    let found = json(&["flows", file, "--json", "--csv", csv_path, "--parquet", parquet_path]);
    let flows = found["flows"].as_array().unwrap();
    let text = fs::read_to_string(&csv).unwrap();
    let mut lines = text.lines();
    let header: Vec<_> = lines.next().unwrap().split(',').collect();
    let column = header.iter().position(|name| *name == "ssrc").unwrap();
    let sources: Vec<_> = lines.map(|line| line.split(',').nth(column).unwrap()).collect();
    let expected: Vec<_> = flows
        .iter()
        .map(|flow| flow["ssrc"].as_u64().map_or_else(String::new, |it| it.to_string()))
        .collect();
    assert_eq!(sources, expected);
    let bytes = fs::read(&parquet).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));

    let output = run(&["flows", file, "--top", "2", "--filter", "udp port 40000"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("40000 udp  PCMU"), "{text}");
    assert!(!text.contains("PCMA") && text.contains("ITU-T G.107"), "{text}");
}

#[test]
fn flows_end_after_the_packet_count() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let [sender, receiver] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let port = receiver.local_addr().unwrap().port();
    let filter = ["udp", "dst", "port", &port.to_string()].map(str::to_owned);
    let arguments = ["flows", "-i", "lo", "-Q", "in", "-c", "50", "--json"].map(str::to_owned);
    let all: Vec<_> = arguments.iter().chain(&filter).map(String::as_str).collect();
    let mut child = wirestamp(&all).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let message = BufReader::new(child.stderr.as_mut().unwrap());
    assert!(message.lines().any(|line| line.unwrap().contains("Ctrl-C")), "it does not watch");
    for number in (0..51u16).filter(|number| *number != 20) {
        let head = [[0x80, 0], number.to_be_bytes(), [0, 0], number.to_be_bytes(), [1, 2], [3, 4]];
        sender.send_to(&[head.as_flattened(), &[0xff; 160]].concat(), ("127.0.0.1", port)).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let flow = &found["flows"][0];
    assert_eq!((&flow["ssrc"], &flow["dport"]), (&0x0102_0304.into(), &port.into()));
    assert_eq!((&flow["packets"], &flow["lost"]), (&50.into(), &1.into()));
    assert_eq!((&found["tap"]["balanced"], &found["capture_dropped"]), (&true.into(), &0.into()));
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn invalid_arguments_fail_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    // A packet of classic pcap with link type 189, which is USB's.
    let usb = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 189, 0, 0, 0, 0].map(u32::to_le_bytes);
    fs::write(folder.path().join("usb.pcap"), usb.as_flattened()).unwrap();
    fs::write(folder.path().join("text"), "no capture").unwrap();
    let cases: [(&str, i32, &str); 9] = [
        ("", 2, "FILE"),
        ("usb.pcap --duration 5", 2, "--duration applies to interfaces"),
        ("-i lo --partial", 2, "--partial applies to files"),
        ("usb.pcap", 1, "has the link type USB_LINUX (189), which wirestamp cannot read"),
        ("usb.pcap --partial", 1, "has the link type USB_LINUX (189), which wirestamp cannot read"),
        ("text", 1, "text"),
        ("nothing.pcap", 1, "nothing.pcap"),
        ("usb.pcap udp prot 5", 2, "filter"),
        ("usb.pcap --max-flows 0", 2, "1.."),
    ];
    for (arguments, code, hint) in cases {
        let all = ["flows"].into_iter().chain(arguments.split_whitespace());
        let output =
            wirestamp(&all.collect::<Vec<_>>()).current_dir(folder.path()).output().unwrap();
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {message}");
        assert!(message.contains(hint), "{arguments}: {message}");
        assert!(
            output.stdout.is_empty()
                && (message.starts_with("error:") || message.lines().count() == 1)
        );
    }
}
