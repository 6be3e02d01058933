//! tshark's dissection of packets of `wirestamp stamp` and `wirestamp reflect`, captured by tcpdump. It
//! supports unauthenticated packets only, as TWAMP.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::common::{is_root, tool};
use crate::stamp::{Reflector, counts, loopback, stamped};
use wirestamp_lab::Netns;

/// Starts a capture that ends after `packets` packets. A snap length of 300 bytes makes room for thousands; without
/// it, tcpdump loses some packets of a burst on a busy machine.
fn capture(namespace: &Netns, packets: u64, file: &Path) -> Child {
    let mut command = namespace.command("tcpdump");
    command.args(["-i", "lo", "-Q", "in", "--immediate-mode", "-s", "300"]);
    command.args(["-c", &packets.to_string(), "-w"]);
    let command = command.arg(file).args(["udp", "port", "862"]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("listening on")), "tcpdump does not begin");
    child
}

/// Output of tshark for each packet, field after field.
fn dissected(file: &Path, fields: &[&str]) -> Vec<Vec<String>> {
    let arguments = ["-r", file.to_str().unwrap(), "-d", "udp.port==862,twamp.test"];
    let print = ["-T", "fields", "-E", "separator=|", "-E", "occurrence=f"];
    let fields: Vec<_> = fields.iter().flat_map(|field| ["-e", field]).collect();
    let printed = tool("tshark", &[&arguments[..], &print, &fields].concat());
    printed.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
}

/// Captures a test of ten packets and one that may end it; checks what is in all of them.
fn assert_dissected(host: &str, arguments: &[&str], packets: usize, length: &str, point: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stamp.pcap");
    let namespace = loopback();
    let reflector = Reflector::start(&namespace, &[]);
    let mut capture = capture(&namespace, 2 * packets as u64, &file);
    let test = [&[host, "-c", "10", "-i", "1ms"], arguments].concat();
    let document = stamped(&namespace, &test);
    assert_eq!(counts(&document, ["answered"]), [10], "{document}");
    assert!(capture.wait().unwrap().success());
    drop(reflector);

    let class = if host.contains(':') { "ipv6.tclass.dscp" } else { "ip.dsfield.dscp" };
    let fields = ["_ws.malformed", "_ws.expert.severity", "frame.protocols", "udp.length"];
    let found = dissected(&file, &[&fields[..], &[class]].concat());
    assert_eq!(found.len(), 2 * packets);
    for line in &found {
        assert_eq!([&line[0], &line[1], &line[3], &line[4]], ["", "", length, point], "{line:?}");
        assert!(line[2].ends_with(":udp:twamp.test"), "{line:?}");
    }
}

#[test]
fn tshark_dissects_without_errors() {
    if !is_root() {
        return;
    }
    for host in ["127.0.0.1", "::1"] {
        let asking = ["--size", "200", "--dscp", "46"];
        assert_dissected(host, &asking, 11, "208", "46");
        // No send time of the last answer is requested.
        assert_dissected(host, &["--light", "--size", "100"], 10, "108", "0");
        assert_dissected(host, &["--light"], 10, "52", "0");
    }
}
