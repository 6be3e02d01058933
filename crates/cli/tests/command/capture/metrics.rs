//! `--metrics`: scrapes of running commands, checked with Prometheus's own tool.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use crate::capture::Traffic;
use crate::capture::conversation::Conversation;
use crate::common::{is_root, run, stderr};
use crate::exporter::{Exporter, assert_conventional, names, promtool, request, value};
use serde_json::Value;

const PACKETS: &str = r#"wirestamp_capture_packets_total{interface="lo"}"#;

/// A capture of `traffic` with metrics.
fn capture(traffic: &Traffic) -> Exporter {
    Exporter::start("capture", &["-i", "lo", "-Q", "in", "--json", &traffic.filter])
}

#[test]
fn capture_metrics_agree_with_the_summary() {
    if !is_root() {
        return;
    }
    let mut traffic = Traffic::new();
    let exporter = capture(&traffic);
    assert_eq!(value(&exporter.scrape(), PACKETS), Some(0.0));
    traffic.send(20);
    let text = exporter.scrape_until(PACKETS, 20.0);
    assert_conventional(&text);
    let of = |name: &str| value(&text, &format!("wirestamp_{name}{{interface=\"lo\"}}")).unwrap();
    let summary: Value = serde_json::from_slice(&exporter.end().stdout).unwrap();
    assert_eq!(summary["packets"], 20);
    assert_eq!(summary["bytes"].as_f64(), Some(of("capture_bytes_total")));
    let error = of("capture_stamp_error_seconds");
    assert!(error > 0.0 && error * 1e9 <= summary["error_ns"].as_f64().unwrap() + 0.5, "{error}");
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
    assert!((now - of("capture_last_packet_timestamp_seconds")).abs() < 60.0);
    assert!(value(&text, "wirestamp_clock_error_seconds").unwrap() > 0.0);
}

#[test]
fn kernel_drops_are_exported_live() {
    if !is_root() {
        return;
    }
    let mut traffic = Traffic::new();
    let arguments = ["-i", "lo", "-Q", "in", "-B", "64", "--json", &traffic.filter];
    let exporter = Exporter::start("capture", &arguments);
    exporter.suspended(|| traffic.send(2000));
    let dropped = |text: &str| {
        value(text, r#"wirestamp_capture_kernel_dropped_packets_total{interface="lo"}"#).unwrap()
    };
    let text = exporter.scrape_for(|text| value(text, PACKETS).unwrap() + dropped(text) == 2000.0);
    let summary: Value = serde_json::from_slice(&exporter.end().stdout).unwrap();
    assert!(dropped(&text) > 0.0, "{text}");
    assert_eq!(summary["dropped"]["kernel"].as_f64(), Some(dropped(&text)));
}

/// A measurement of `traffic` between a point and itself, with metrics.
fn delay(traffic: &Traffic) -> Exporter {
    let arguments = ["lo", "lo", "--timeout", "50", "--json", "--filter", &traffic.filter];
    Exporter::start("delay", &arguments)
}

#[test]
fn delay_metrics_agree_with_the_result() {
    if !is_root() {
        return;
    }
    let mut traffic = Traffic::new();
    let exporter = delay(&traffic);
    traffic.send(40);
    let text = exporter.scrape_until("wirestamp_delay_matched_packets_total", 40.0);
    assert_conventional(&text);
    let of = |name: &str| value(&text, &format!("wirestamp_{name}")).unwrap();
    assert_eq!(of("delay_one_way_seconds_count"), 40.0);
    assert_eq!(of("delay_sample_share"), 1.0);
    assert_eq!(of("delay_one_way_seconds_bucket{le=\"+Inf\"}"), 40.0);
    for point in ["a", "b"] {
        assert_eq!(
            of(&format!("capture_packets_total{{interface=\"lo\",point=\"{point}\"}}")),
            40.0
        );
        assert_eq!(of(&format!("delay_given_up_packets_total{{point=\"{point}\"}}")), 0.0);
    }
    let result: Value = serde_json::from_slice(&exporter.end().stdout).unwrap();
    for key in ["sent", "matched", "lost", "duplicated", "reordered", "unexpected"] {
        let shown = of(&format!("delay_{key}_packets_total"));
        assert_eq!(result[key].as_f64(), Some(shown), "{key}");
    }
    let sum = result["owd_ns"]["mean"].as_f64().unwrap() * 40.0 / 1e9;
    assert!((of("delay_one_way_seconds_sum") - sum).abs() < 1e-9, "{sum} s of delays in all");
    let error = result["clock_error_ns"].as_f64().unwrap() / 1e9;
    assert!((of("delay_clock_error_seconds") - error).abs() < 1e-12, "{error}");
}

/// `wirestamp flows` on the loopback interface, with metrics.
fn flows(filter: &str) -> Exporter {
    Exporter::start("flows", &["-i", "lo", "-Q", "in", "--json", filter])
}

#[test]
fn flow_metrics_have_the_worst_flows() {
    if !is_root() {
        return;
    }
    let conversation = Conversation::new();
    let exporter = flows(&conversation.filter);
    conversation.call(50, 5);
    conversation.fetch();
    let text = exporter.scrape_for(|text| {
        text.contains("wirestamp_flow_mos{") && text.contains("wirestamp_flow_round_trip_seconds{")
    });
    assert_conventional(&text);
    let call = text.lines().find(|line| line.starts_with("wirestamp_flow_lost_packets_total{"));
    let call = call.unwrap();
    assert!(call.contains("codec=\"PCMU\"") && call.contains("ssrc=\"0x1234abcd\""), "{call}");
    assert!(call.ends_with("} 5"), "the call hurts more than the rest: {call}");
    assert_eq!(value(&text, "wirestamp_flows_rtp_expected_packets_total"), Some(55.0));
    assert_eq!(value(&text, "wirestamp_flows_rtp_lost_packets_total"), Some(5.0));
    let voice = text.lines().filter(|line| line.starts_with("wirestamp_flows_voice_streams{"));
    assert_eq!(voice.filter(|line| line.ends_with(" 1")).count(), 1, "{text}");
    let result: Value = serde_json::from_slice(&exporter.end().stdout).unwrap();
    assert_eq!(value(&text, "wirestamp_flows").map(|flows| flows >= 3.0), Some(true));
    assert_eq!(result["flows"][0]["lost"], 5);
}

#[test]
fn evicted_streams_are_in_the_histogram_of_mos() {
    if !is_root() {
        return;
    }
    let conversation = Conversation::new();
    let arguments = ["-i", "lo", "-Q", "in", "--json", "--max-flows", "1", &conversation.filter];
    let exporter = Exporter::start("flows", &arguments);
    let text = exporter.scrape();
    assert_eq!(value(&text, "wirestamp_flows_rtp_mos_count"), Some(0.0), "{text}");
    conversation.call(50, 0);
    conversation.fetch();
    let text = exporter.scrape_until("wirestamp_flows_rtp_mos_count", 1.0);
    assert_conventional(&text);
    let mos = value(&text, "wirestamp_flows_rtp_mos_sum").unwrap();
    assert!((1.0..4.5).contains(&mos), "{text}");
    for bound in ["2.58", "3.1", "3.6", "4.03", "4.34", "+Inf"] {
        let bucket = format!("wirestamp_flows_rtp_mos_bucket{{le=\"{bound}\"}}");
        let is_up_to = bound.parse::<f64>().unwrap() >= mos;
        assert_eq!(value(&text, &bucket), Some(f64::from(u8::from(is_up_to))), "{bucket}: {text}");
    }
    exporter.end();
}

#[test]
fn dashboard_uses_existing_metrics() {
    if !is_root() {
        return;
    }
    let (mut traffic, conversation) = (Traffic::new(), Conversation::new());
    let exporters = [capture(&traffic), delay(&traffic), flows(&conversation.filter)];
    traffic.send(3);
    conversation.call(50, 5);
    conversation.fetch();
    let known = [PACKETS, "wirestamp_delay_matched_packets_total", "wirestamp_flow_mos"];
    let scrapes: String = exporters
        .iter()
        .zip(known)
        .map(|(exporter, known)| {
            let some = |text: &str| text.lines().any(|line| line.starts_with(known));
            exporter.scrape_for(|text| some(text) && value(text, known) != Some(0.0))
        })
        .collect();
    let exported = names(&scrapes);
    let asked = asked();
    assert!(asked.len() > 20, "{asked:?}");
    for query in &asked {
        let missing = metrics(query).find(|name| !exported.contains(name));
        assert_eq!(missing, None, "of {query}");
    }
    let rule = |query: &String| {
        let query = query.replace("$__rate_interval", "1m").replace("$__range", "1h");
        format!("  - record: asked\n    expr: {}\n", Value::String(query))
    };
    let rules: String = asked.iter().map(rule).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rules.yml");
    fs::write(&path, format!("groups:\n- name: dashboard\n  rules:\n{rules}")).unwrap();
    let verdict = promtool(&["check", "rules", "--lint=none", path.to_str().unwrap()], "");
    assert!(verdict.status.success(), "{}", stderr(&verdict));
}

/// The queries of all panels.
fn asked() -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/grafana/wirestamp.json");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect()
}

/// The metrics in a query.
fn metrics(query: &str) -> impl Iterator<Item = &str> {
    let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("wirestamp_"))
}

#[test]
fn bad_requests_do_not_disturb_others() {
    if !is_root() {
        return;
    }
    let mut traffic = Traffic::new();
    let exporter = capture(&traffic);
    exporter.scrape();
    let before = exporter.peak_memory();
    assert!(request(exporter.address, "\u{16}\u{3}\u{1}\r\n\r\n").starts_with("HTTP/1.1 400 "));
    assert!(request(exporter.address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(
        request(exporter.address, "PUT /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 ")
    );
    let connect = || TcpStream::connect(exporter.address).unwrap();
    let silent: Vec<_> = (0..100).map(|_| connect()).collect();
    traffic.send(50);
    exporter.scrape_until(PACKETS, 50.0);
    assert!(sent_of_a_header(connect()) < 64 << 20, "it reads a header without end");
    // Above the max number of clients, the oldest was closed before its timeout.
    assert_eq!((&silent[0]).read(&mut [0]).map_err(|error| error.kind()), Ok(0));
    traffic.send(50);
    exporter.scrape_until(PACKETS, 100.0);
    let grown = exporter.peak_memory() - before;
    assert!(grown < 8 << 10, "{grown} KiB more than before");
    let summary: Value = serde_json::from_slice(&exporter.end().stdout).unwrap();
    assert_eq!((&summary["packets"], &summary["dropped"]["kernel"]), (&100.into(), &0.into()));
}

/// How many bytes of a header of 1 GiB can be sent before the connection ends.
fn sent_of_a_header(mut stream: TcpStream) -> usize {
    stream.write_all(b"GET /metrics HTTP/1.1\r\nX: ").unwrap();
    let part = [b'x'; 1 << 16];
    let mut sent = 0;
    while sent < 1 << 30 {
        match stream.write(&part) {
            Ok(count) => sent += count,
            Err(error) => {
                let kind = error.kind();
                let ended = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset].contains(&kind);
                assert!(ended, "{error}");
                break;
            }
        }
    }
    sent
}

#[test]
fn metrics_listen_only_on_the_given_address() {
    if !is_root() {
        return;
    }
    let exporter = capture(&Traffic::new());
    let elsewhere = (Ipv4Addr::new(127, 0, 0, 2), exporter.address.port());
    let refused = TcpStream::connect(elsewhere).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn unusable_address_fails_with_one_line() {
    if !is_root() {
        return;
    }
    for wrong in ["nonsense", "127.0.0.1", "localhost:9464", "127.0.0.1:65536"] {
        let output = run(&["capture", "-i", "lo", "--metrics", wrong]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(stderr(&output).contains("such as 127.0.0.1:9464"), "{}", stderr(&output));
    }
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for impossible in [&*taken, "192.0.2.1:9464"] {
        let output = run(&["capture", "-i", "lo", "--metrics", impossible]);
        assert_eq!(output.status.code(), Some(1), "{impossible}");
        let message = stderr(&output);
        assert!(
            message.contains(&format!("cannot serve metrics on {impossible}; choose")),
            "{message}"
        );
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    let files = run(&["delay", "/dev/null", "/dev/null", "--metrics", "127.0.0.1:0"]);
    assert_eq!(files.status.code(), Some(2));
    assert!(stderr(&files).contains("--metrics applies to interfaces"), "{}", stderr(&files));
}
