//! The command `wirestamp layers`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::{Child, Command, Output, Stdio};

use crate::common::{Leftovers, is_root, json, run, stderr, tool};
use crate::schema;
use serde_json::Value;
use wirestamp_lab::{Impairments, Netns, PathLab, SINK_V4, SOURCE_INTERFACE, TAP_B};

const PORT: u16 = 5004;

/// The layers of packets that are received.
const RECEIVED: [&str; 4] =
    ["driver to stack", "stack to socket", "socket to application", "driver to application"];

fn lab() -> PathLab {
    PathLab::new(&Impairments::bottleneck(10_000_000_000, 10_000_000)).unwrap()
}

/// A run in the sink's namespace that is following packets.
fn started(lab: &PathLab, arguments: &[&str]) -> Child {
    let arguments = [&["layers", "-i", TAP_B], arguments].concat();
    started_in(lab.sink(), &arguments, "measuring packets that tap-b receives")
}

/// A run that has printed that it began.
fn started_in(netns: &Netns, arguments: &[&str], begun: &str) -> Child {
    let mut command = netns.command(env!("CARGO_BIN_EXE_wirestamp"));
    let mut child =
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let printed = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    let mut printed = printed.map_while(Result::ok);
    assert!(printed.any(|line| line.starts_with(begun)));
    child
}

/// The names of the points that a document's layers begin and end with.
fn ends(document: &Value) -> Vec<String> {
    let name = |layer: &Value| {
        let [from, to] = ["from", "to"].map(|end| layer[end].as_str().unwrap());
        format!("{from} to {to}")
    };
    document["layers"].as_array().unwrap().iter().map(name).collect()
}

fn send(lab: &PathLab, count: usize) {
    let socket = lab.source().run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    for _ in 0..count {
        socket.send_to(&[0; 200], (SINK_V4, PORT)).unwrap();
    }
}

/// Sends that many datagrams, each when the one before it has been read.
fn exchange(lab: &PathLab, count: usize) {
    let socket = lab.sink().run(|| UdpSocket::bind(("0.0.0.0", PORT))).unwrap().unwrap();
    for _ in 0..count {
        send(lab, 1);
        socket.recv(&mut [0; 300]).unwrap();
    }
}

fn finished(child: Child) -> Output {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

#[test]
fn summary_csv_and_report_agree() {
    if !is_root() {
        return;
    }
    let (lab, folder) = (lab(), tempfile::tempdir().unwrap());
    let [csv, page] = ["rows.csv", "page.html"].map(|name| folder.path().join(name));
    let files = ["--csv", csv.to_str().unwrap(), "--report", page.to_str().unwrap()];
    let child = started(&lab, &[&files[..], &["--json", "-c", "100", "udp port 5004"]].concat());
    exchange(&lab, 100);
    let document = schema::document("layers", &finished(child).stdout);

    assert_eq!((&document["packets"], &document["balanced"]), (&100.into(), &true.into()));
    let layers = document["layers"].as_array().unwrap();
    assert_eq!(ends(&document), RECEIVED);
    let sum = |key: &str, layers: &[Value]| -> f64 {
        layers.iter().map(|layer| layer["owd_ns"][key].as_f64().unwrap()).sum()
    };
    let ([parts @ .., _], whole) = (&layers[..], &layers[3..]) else { unreachable!() };
    assert!((sum("mean", parts) - sum("mean", whole)).abs() < 1.0, "{document:#}");
    assert_eq!(document["ends"][0]["end"], "read");

    let rows = fs::read_to_string(&csv).unwrap();
    assert_eq!(rows.lines().count(), 101);
    let totals = rows.lines().skip(1).map(|row| row.split(',').nth(9).unwrap().parse::<u64>());
    assert_eq!(whole[0]["owd_ns"]["max"], totals.map(Result::unwrap).max().unwrap());
    assert!(fs::read_to_string(&page).unwrap().contains("<svg"));
}

#[test]
fn sent_packets_have_their_own_layers() {
    if !is_root() {
        return;
    }
    let (lab, folder) = (lab(), tempfile::tempdir().unwrap());
    let [csv, page] = ["rows.csv", "page.html"].map(|name| folder.path().join(name));
    let files = ["--csv", csv.to_str().unwrap(), "--report", page.to_str().unwrap()];
    let what = ["layers", "-i", SOURCE_INTERFACE, "-Q", "out", "--json", "-c", "50", "udp"];
    let arguments = [&what[..8], &files, &what[8..]].concat();
    let child = started_in(lab.source(), &arguments, "measuring packets that out sends");
    exchange(&lab, 50);
    let document = schema::document("layers", &finished(child).stdout);
    assert_eq!((&document["packets"], &document["direction"]), (&50.into(), &"out".into()));
    let layers = ["socket to queue", "queue to driver", "driver to sent", "socket to sent"];
    assert_eq!(ends(&document), layers);
    assert_eq!(
        (&document["layers"][3]["count"], &document["ends"][0]["end"]),
        (&50.into(), &"sent".into())
    );
    let rows = fs::read_to_string(&csv).unwrap();
    assert_eq!(rows.lines().filter(|row| row.contains(",10.77.2.2:5004,17,242,")).count(), 50);
    assert!(rows.contains(",driver_sent_ns,") && rows.ends_with(",sent,sent,\n"), "{rows}");
    let page = fs::read_to_string(&page).unwrap();
    assert!(page.contains("<svg") && page.contains("ndo_start_xmit"));
}

#[test]
fn delay_reports_layers_behind_point_b() {
    if !is_root() {
        return;
    }
    let (lab, folder) = (lab(), tempfile::tempdir().unwrap());
    let page = folder.path().join("page.html");
    let delay = ["delay", TAP_B, TAP_B, "--layers", "--filter", "udp port 5004", "--report"];
    for json in [true, false] {
        let more = [page.to_str().unwrap(), if json { "--json" } else { "-v" }];
        let child = started_in(lab.sink(), &[&delay[..], &more].concat(), "measuring");
        exchange(&lab, 50);
        tool("kill", &["-INT", &child.id().to_string()]);
        let found = String::from_utf8(finished(child).stdout).unwrap();
        if json {
            let found = schema::document("delay", found.as_bytes());
            assert_eq!((&found["matched"], &found["layers"]["packets"]), (&50.into(), &50.into()));
            assert_eq!(ends(&found["layers"]), RECEIVED);
            assert_eq!(found["layers"]["layers"][3]["count"], 50);
        } else {
            assert!(found.contains("were read by an application"), "{found}");
        }
        let page = fs::read_to_string(&page).unwrap();
        assert!(page.contains("<section id=\"layers\">") && page.contains("socket to application"));
    }
}

#[test]
fn delay_layers_reject_files_and_xdp() {
    if !is_root() {
        return;
    }
    for (arguments, why) in [
        (&["/dev/null", "/dev/null"][..], "--layers applies to interfaces, not to files"),
        (&["-", "lo"], "--layers needs two interfaces"),
        (&["lo", "lo", "--method", "xdp"], "use xdp-pass"),
    ] {
        let output = run(&[&["delay", "--layers"], arguments].concat());
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {printed}");
        assert!(printed.contains(why), "{printed}");
    }
}

#[test]
fn dropped_packet_has_its_reason() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let lab = lab();
    let child = started(&lab, &["udp"]);
    // No socket listens; the ICMP error arrives after the packet was dropped.
    let socket = lab.source().run(|| UdpSocket::bind("0.0.0.0:0")).unwrap().unwrap();
    socket.connect((SINK_V4, PORT)).unwrap();
    socket.send(&[0; 200]).unwrap();
    assert!(socket.recv(&mut [0; 300]).is_err());
    tool("kill", &["-INT", &child.id().to_string()]);
    let printed = String::from_utf8(finished(child).stdout).unwrap();
    assert!(printed.contains("1 were dropped after stack: NO_SOCKET"), "{printed}");
    assert!(printed.contains("CLOCK_MONOTONIC"), "{printed}");
    drop(lab);
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn no_packets_is_a_result_no_interface_an_error() {
    if !is_root() {
        return;
    }
    for wrong in [&["-c", "0"][..], &["-d", "-1"], &["udp port nowhere"]] {
        let output = run(&[&["layers", "-i", "lo"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", stderr(&output));
    }
    let document = json(&["layers", "-i", "lo", "-d", "0.01", "--json", "ether[0] = 77"]);
    assert_eq!((&document["packets"], &document["balanced"]), (&0.into(), &true.into()));
    assert_eq!(document["layers"][3]["owd_ns"]["p50"], Value::Null);
    let output = run(&["layers", "-i", "no-such-if"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("ip link"), "{}", stderr(&output));
}

#[test]
fn missing_privileges_are_named() {
    if !is_root() {
        return;
    }
    let folder = tempfile::Builder::new().prefix("wirestamp").tempdir_in("/tmp").unwrap();
    let binary = folder.path().join("wirestamp");
    fs::copy(env!("CARGO_BIN_EXE_wirestamp"), &binary).unwrap();
    tool("chmod", &["755", folder.path().to_str().unwrap(), binary.to_str().unwrap()]);
    for arguments in [&["layers", "-i", "lo"][..], &["delay", "lo", "lo", "--layers"]] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
        let output = command.arg(&binary).args(arguments).current_dir("/").output().unwrap();
        let printed = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{printed}");
        assert!(printed.contains("sudo") && printed.contains("cap_perfmon"), "{printed}");
        assert_eq!(printed.lines().count(), 1, "{printed}");
    }
}
