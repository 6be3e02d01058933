//! Packets of capture files in other files (`-r IN -w OUT`).

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use wirestamp_capture::file::Reader;

use crate::capture::read_files::capture_file;
use crate::capture::{Traffic, folder, summary};
use crate::common::{is_root, run, stderr, tool, wirestamp};

/// Filters `from` into `to`, and returns what it reports.
fn filter(from: &str, to: &str, filter: &[&str]) -> String {
    let output = run(&[&["capture", "-r", from, "-w", to], filter].concat());
    assert!(output.status.success() && output.stdout.is_empty(), "{from}: {}", stderr(&output));
    assert!(!Path::new(&format!("{to}.partial")).exists());
    stderr(&output)
}

/// The packets of a file as tshark reads them: time, length, interface, comment.
fn fields(path: &str, filter: &str) -> String {
    let names =
        ["frame.time_epoch", "frame.len", "frame.interface_id", "frame.comment", "udp.dstport"];
    let mut arguments = vec!["-r", path, "-Y", filter, "-T", "fields"];
    names.iter().for_each(|name| arguments.extend(["-e", name]));
    tool("tshark", &arguments)
}

#[test]
fn classic_file_is_filtered_as_by_tcpdump() {
    let (_folder, path) = folder();
    let [file, ours, theirs] = ["x.pcap", "ours.pcap", "theirs.pcap"].map(&path);
    fs::write(&file, capture_file(&[1, 2, 2, 1])).unwrap();
    let message = filter(&file, &ours, &["udp", "dst", "port", "2"]);
    assert!(
        message.contains("4 packets read from") && message.contains("2 written to"),
        "{message}"
    );
    let nano = "--time-stamp-precision=nano";
    tool("tcpdump", &[nano, "-r", &file, "-w", &theirs, "udp", "dst", "port", "2"]);
    assert_eq!(fs::read(&ours).unwrap(), fs::read(&theirs).unwrap());
    tool("gzip", &["-k", &file]);
    filter(&format!("{file}.gz"), &ours, &[]);
    assert_eq!(fs::read(&ours).unwrap(), fs::read(&file).unwrap());
    filter(&file, &ours, &["-c", "1", "udp dst port 2"]);
    assert_eq!(fs::read(&ours).unwrap(), capture_file_of_second());
}

/// The file with only the second of the packets above.
fn capture_file_of_second() -> Vec<u8> {
    let [whole, start] = [capture_file(&[1, 2]), capture_file(&[1])];
    let header = &whole[..24];
    [header, &whole[start.len()..]].concat()
}

#[test]
fn interfaces_and_comments_are_kept() {
    let (_folder, path) = folder();
    let names = ["a.pcap", "b.pcap", "merged.pcapng", "x.pcapng", "ours.pcapng"];
    let [a, b, merged, file, ours] = names.map(&path);
    fs::write(&a, capture_file(&[1, 2])).unwrap();
    fs::write(&b, capture_file(&[2, 3])).unwrap();
    tool("mergecap", &["-I", "none", "-w", &merged, &a, &b]);
    let comments = ["-a", "1:number 1", "-a", "2:number 2", "-a", "3:number 3", "-a", "4:number 4"];
    tool("editcap", &[&comments[..], &[&merged, &file]].concat());
    filter(&file, &ours, &["udp", "dst", "port", "2"]);
    let expected = fields(&file, "udp.dstport == 2");
    assert_eq!(expected.lines().count(), 2, "{expected}");
    assert!(expected.lines().all(|line| line.contains("number")), "{expected}");
    assert_eq!(fields(&ours, "udp"), expected);
    // A file that nothing is left out of has all the same packets, and one interface alone its own.
    filter(&file, &ours, &[]);
    assert_eq!(fields(&ours, "udp"), fields(&file, "udp"));
    filter(&format!("{file}#1"), &ours, &[]);
    assert_eq!(fields(&ours, "udp"), fields(&file, "frame.interface_id == 1"));
    // Sections of several files, and printing beside.
    let sections = path("sections.pcapng");
    fs::write(&sections, [fs::read(&file).unwrap(), fs::read(&merged).unwrap()].concat()).unwrap();
    let output = run(&["capture", "-r", &sections, "-w", &ours, "--print", "udp dst port 3"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2, "{}", stderr(&output));
    assert_eq!(fields(&ours, "udp").lines().count(), 2);
}

#[test]
fn clock_error_and_ledger_are_kept() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let [file, ours] = ["x.pcapng", "ours.pcapng"].map(&path);
    let mut traffic = Traffic::new();
    let capture = traffic.capture(&["-w", &file, "-c", "6", "--json"]);
    traffic.send(6);
    summary(capture);
    // The number of the datagram is in its payload.
    filter(&file, &ours, &["udp[8:4]", ">=", "4"]);
    let packets = |path: &str| {
        let mut reader = Reader::open(Path::new(path)).unwrap();
        let mut packets = Vec::new();
        while let Some(packet) = reader.next_packet().unwrap() {
            packets.push((packet.time, packet.error, packet.bytes.into_owned()));
        }
        let [interface] = reader.interfaces() else { panic!("one interface") };
        (packets, interface.name.clone(), interface.provenance.clone(), interface.ledger)
    };
    let (before, after) = (packets(&file), packets(&ours));
    assert_eq!(after.0, before.0[4..]);
    assert_eq!((&after.1, &after.2, after.3), (&before.1, &before.2, before.3));
    assert!(after.2.is_some() && after.3.is_some());
}

#[test]
fn pipe_is_filtered_into_a_pipe() {
    let mut child = wirestamp(&["capture", "-r", "-", "-w", "-", "-U", "udp dst port 2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&capture_file(&[1, 2])).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(output.stdout, capture_file_of_second());
}

#[test]
fn copy_is_complete_if_standard_output_is_closed() {
    let (_folder, path) = folder();
    let [file, ours] = ["x.pcap", "ours.pcap"].map(&path);
    fs::write(&file, capture_file(&[1, 2])).unwrap();
    for buffering in [&[][..], &["-l"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let options = ["capture", "-r", &file, "-w", &ours, "--print"];
        let output =
            wirestamp(&[&options[..], buffering].concat()).stdout(writer).output().unwrap();
        assert!(output.status.success(), "{buffering:?}: {}", stderr(&output));
        assert_eq!(fs::read(&ours).unwrap(), capture_file(&[1, 2]), "{buffering:?}");
        fs::remove_file(&ours).unwrap();
    }
}

#[test]
fn packets_before_damage_are_written() {
    let (_folder, path) = folder();
    let [file, ours] = ["x.pcap", "ours.pcap"].map(&path);
    let whole = capture_file(&[1, 2]);
    fs::write(&file, &whole[..whole.len() - 3]).unwrap();
    let output = run(&["capture", "-r", &file, "-w", &ours]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is damaged after packet 1"), "{}", stderr(&output));
    assert_eq!(fs::read(&ours).unwrap(), capture_file(&[1]));
}

#[test]
fn impossible_copies_are_refused() {
    let (_folder, path) = folder();
    let [classic, next, link] = ["x.pcap", "x.pcapng", "link"].map(&path);
    fs::write(&classic, capture_file(&[1])).unwrap();
    tool("editcap", &["-F", "pcapng", &classic, &next]);
    std::os::unix::fs::symlink(&classic, &link).unwrap();
    let whole = fs::read(&classic).unwrap();
    let out = path("out.pcap");
    let cases: [(&[&str], &str); 9] = [
        (&["-r", &classic, "-w", &link], "overwrite the file of -r"),
        (&["-r", &path("."), "-w", &classic], "overwrite the file of -r"),
        (&["-r", &classic, "-w", &out, "-s", "60"], "cut them with `editcap"),
        (&["-r", &next, "-w", &format!("{next}.pcap")], "keeps the format pcapng"),
        (&["-r", &classic, "-w", &format!("{next}.pcapng")], "keeps the format pcap;"),
        (&["-r", &classic, "-w", &format!("{out}.zst")], "does not compress"),
        (&["-r", &classic, "-w", &out, "--micro"], "keeps the precision"),
        (&["-r", &classic, "-w", &out, "--zstd"], "cannot be used with"),
        (&["-r", &classic, "-w", &out, "-G", "1"], "cannot be used with"),
    ];
    for (arguments, hint) in cases {
        let output = run(&[&["capture"], arguments].concat());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(hint), "{arguments:?}: {message}");
    }
    let from_itself = wirestamp(&["capture", "-r", "-", "-w", &classic])
        .stdin(fs::File::open(&classic).unwrap())
        .output()
        .unwrap();
    assert!(stderr(&from_itself).contains("overwrite the file of -r"));
    assert_eq!(fs::read(&classic).unwrap(), whole);
    assert!(!Path::new(&out).exists());
}
