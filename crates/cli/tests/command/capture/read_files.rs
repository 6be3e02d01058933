//! Packets of capture files as lines of text (`-r`).

use std::fs;
use std::io::Write as _;
use std::process::Stdio;

use crate::capture::folder;
use crate::common::{run, stderr, tool, wirestamp};

/// A UDP datagram in an Ethernet frame, from port 9 to `port`.
fn frame(port: u8) -> Vec<u8> {
    let payload = b"GET / \r\n\x00\xff";
    let addresses = [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let ip = [0x45, 0xb8, 0, 38, 0x12, 0x34, 0x40, 0, 63, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    let udp = [0, 9, 0, port, 0, 18, 0, 0];
    [&addresses[..], &ip, &udp, payload].concat()
}

/// A classic file in nanoseconds with datagrams to these ports, one a second.
pub(super) fn capture_file(ports: &[u8]) -> Vec<u8> {
    let mut file: Vec<u8> = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    for (second, &port) in (1_795_269_909_u32..).zip(ports) {
        let frame = frame(port);
        let length = u32::try_from(frame.len()).unwrap();
        file.extend([second, 7, length, length].iter().flat_map(|word| word.to_le_bytes()));
        file.extend(frame);
    }
    file
}

const FIRST: &str = "2026-11-21 14:05:09.000000007Z ±unknown";
const SECOND: &str = "2026-11-21 14:05:10.000000007Z ±unknown";

fn printed(arguments: &[&str]) -> String {
    let output = run(&[&["capture"], arguments].concat());
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn content(port: u8) -> String {
    format!("UDP 192.0.2.1:9 > 192.0.2.2:{port}, payload 10")
}

#[test]
fn packets_of_a_file_are_printed_with_its_times() {
    let (_folder, path) = folder();
    let file = path("x.pcap");
    fs::write(&file, capture_file(&[1, 2])).unwrap();
    let expected = format!("{FIRST} {}, 52 bytes\n{SECOND} {}, 52 bytes\n", content(1), content(2));
    tool("gzip", &["-k", &file]);
    tool("xz", &["-k", &file]);
    for name in [&file, &format!("{file}.gz"), &format!("{file}.xz")] {
        assert_eq!(printed(&["-r", name]), expected, "{name}");
    }
    let mut child = wirestamp(&["capture", "-r", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&capture_file(&[1, 2])).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    assert!(stderr(&output).contains("2 packets read from -"), "{}", stderr(&output));
}

#[test]
fn filter_and_count_select_packets() {
    let (_folder, path) = folder();
    let [file, filter] = ["x.pcap", "filter"].map(&path);
    fs::write(&file, capture_file(&[1, 2, 2, 1])).unwrap();
    fs::write(&filter, "udp dst port 2 # the second\n").unwrap();
    let lines = |arguments: &[&str]| printed(arguments).lines().count();
    assert_eq!(lines(&["-r", &file, "udp", "dst", "port", "2"]), 2);
    assert_eq!(lines(&["-r", &file, "-F", &filter]), 2);
    assert_eq!(lines(&["-r", &file, "udp", "dst", "port", "1", "-c", "1"]), 1);
    assert_eq!(lines(&["-nn", "-s", "0", "-l", "-r", &file, "-c", "3"]), 3);
    let output = run(&["capture", "-r", &file, "tcp"]);
    assert!(output.stdout.is_empty() && output.status.success());
    let message = stderr(&output);
    assert!(message.contains("4 packets read from") && message.contains("0 printed"), "{message}");
}

#[test]
fn details_and_link_header_are_printed_on_request() {
    let (_folder, path) = folder();
    let file = path("x.pcap");
    fs::write(&file, capture_file(&[1])).unwrap();
    let header = "02:00:00:00:00:01 > 02:00:00:00:00:02 IPv4 (0x0800),";
    let fields = "(TTL 63, id 4660, DF, DSCP 46, IP length 38)";
    let expected = format!("{FIRST} {header} {} {fields}, 52 bytes\n", content(1));
    assert_eq!(printed(&["-r", &file, "-e", "-v"]), expected);
}

#[test]
fn bytes_are_printed_as_by_tcpdump() {
    let (_folder, path) = folder();
    let file = path("x.pcap");
    fs::write(&file, capture_file(&[1, 2])).unwrap();
    for option in ["-X", "-XX", "-x", "-xx", "-A", "-AA"] {
        // All but the first line of each packet.
        let dump = |text: &str| {
            let of_packet = |line: &&str| !line.contains("192.0.2.1:9") && !line.contains(" IP ");
            text.lines().filter(of_packet).map(str::to_owned).collect::<Vec<_>>()
        };
        let theirs = dump(&tool("tcpdump", &["-n", option, "-r", &file]));
        let ours = dump(&printed(&["-r", &file, option]));
        assert_eq!(ours, theirs, "{option}");
        assert!(ours.len() >= 4, "{option}: {ours:?}");
    }
}

#[test]
fn times_and_numbers_have_the_requested_form() {
    let (_folder, path) = folder();
    let file = path("x.pcap");
    fs::write(&file, capture_file(&[1, 2])).unwrap();
    let [one, two] = [1, 2].map(|port| format!("{}, 52 bytes", content(port)));
    let cases: [(&[&str], [&str; 2]); 5] = [
        (&["-t"], ["", ""]),
        (&["-tt"], ["1795269909.000000007 ±unknown ", "1795269910.000000007 ±unknown "]),
        (&["-ttt"], ["00:00:00.000000000 ±0 ns ", "00:00:01.000000000 ±unknown "]),
        (
            &["-ttttt", "--number"],
            ["    1  00:00:00.000000000 ±0 ns ", "    2  00:00:01.000000000 ±unknown "],
        ),
        (&["-#", "-t"], ["    1  ", "    2  "]),
    ];
    for (options, [first, second]) in cases {
        let expected = format!("{first}{one}\n{second}{two}\n");
        assert_eq!(printed(&[options, &["-r", &file]].concat()), expected, "{options:?}");
    }
    // The numbers are those of tcpdump.
    let of_tcpdump = tool("tcpdump", &["-#", "-t", "-n", "-r", &file]);
    let starts = |text: &str| text.lines().map(|line| line[..7].to_owned()).collect::<Vec<_>>();
    assert_eq!(starts(&printed(&["-#", "-t", "-r", &file])), starts(&of_tcpdump));
}

#[test]
fn options_of_tcpdump_without_an_effect_are_accepted() {
    let (_folder, path) = folder();
    let file = path("x.pcap");
    fs::write(&file, capture_file(&[1, 2])).unwrap();
    let long = ["--dont-verify-checksums", "--no-optimize", "--absolute-tcp-sequence-numbers"];
    let options = ["-nnKNOSfbuH", "-tttt", "-r", &file, "--snapshot-length", "0"];
    assert_eq!(printed(&[&options[..], &long].concat()), printed(&["-r", &file]));
}

#[test]
fn interface_of_a_packet_is_named_if_there_are_several() {
    let (_folder, path) = folder();
    let [a, b, merged] = ["a.pcap", "b.pcap", "merged.pcapng"].map(&path);
    fs::write(&a, capture_file(&[1])).unwrap();
    fs::write(&b, capture_file(&[1, 2])).unwrap();
    tool("mergecap", &["-I", "none", "-w", &merged, &a, &b]);
    let text = printed(&["-r", &merged]);
    let mut interfaces: Vec<_> =
        text.lines().map(|line| line.split(" ±unknown ").nth(1).unwrap().to_owned()).collect();
    interfaces.sort();
    let line = |number, port| format!("{number} {}, 52 bytes", content(port));
    assert_eq!(interfaces, [line(0, 1), line(1, 1), line(1, 2)]);
    let one = format!("{merged}#0");
    assert_eq!(printed(&["-r", &one]).lines().count(), 1);
}

#[test]
fn packets_before_damage_are_printed() {
    let (_folder, path) = folder();
    let file = path("x.pcap");
    let whole = capture_file(&[1, 2]);
    fs::write(&file, &whole[..whole.len() - 3]).unwrap();
    let output = run(&["capture", "-r", &file]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
    assert!(stderr(&output).contains("is damaged after packet 1"), "{}", stderr(&output));
}

#[test]
fn impossible_readings_are_refused() {
    let (_folder, path) = folder();
    let [file, missing] = ["x.pcap", "missing"].map(&path);
    fs::write(&file, capture_file(&[1])).unwrap();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["-r", &missing], 1, "-r: cannot read"),
        (&["-r", &file, "udp prot"], 2, "cannot compile filter"),
        (&["-r", &file, "--json"], 2, "leave --json out"),
        (&["-r", &file, "-i", "lo"], 2, "--interface"),
        (&["-r", &file, "-w", "x", "-C", "1"], 2, "--file-size"),
        (&["-r", &file, "--method", "ring"], 2, "--method"),
    ];
    for (arguments, code, hint) in cases {
        let output = run(&[&["capture"], arguments].concat());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {message}");
        assert!(message.contains(hint), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}
