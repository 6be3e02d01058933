//! Captures of real packets by the binary, and what is in their files.

mod any_interface;
mod capabilities;
mod conversation;
mod directions;
mod events;
mod extcap;
mod file_sets;
mod files;
mod filtered_files;
mod hardware;
mod late_interface;
mod live_counts;
mod metrics;
mod options;
mod printed;
mod privileges;
mod read_files;
mod screen;
mod several_interfaces;
mod signals;
mod terminal;

use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use wirestamp_capture::Error;
use wirestamp_capture::file::{Interface, Reader};

use crate::common::{stderr, wirestamp};

pub(crate) const FORMATS: [&str; 3] = ["pcapng", "pcap", "pcap-us"];

/// Numbered datagrams over the loopback interface, to a port of their own.
pub(crate) struct Traffic {
    sender: UdpSocket,
    receiver: UdpSocket,
    pub(crate) filter: String,
    pub(crate) sent: u32,
}

impl Traffic {
    pub(crate) fn new() -> Self {
        let [sender, receiver] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let port = receiver.local_addr().unwrap().port();
        sender.connect(("127.0.0.1", port)).unwrap();
        Self { sender, receiver, filter: format!("udp dst port {port}"), sent: 0 }
    }

    /// Sends datagrams of 1000 bytes, which no program reads.
    pub(crate) fn send(&mut self, count: u32) {
        for _ in 0..count {
            let payload = [&self.sent.to_be_bytes()[..], &[0; 996]].concat();
            self.sender.send(&payload).unwrap();
            self.receiver.recv(&mut [0; 1000]).unwrap();
            self.sent += 1;
        }
    }

    /// Starts a capture of these datagrams, and waits until it listens.
    pub(crate) fn capture(&self, arguments: &[&str]) -> Child {
        let begin = ["capture", "-i", "lo", "-Q", "in"];
        let mut child = wirestamp(&[&begin[..], arguments, &[&self.filter]].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let message = BufReader::new(child.stderr.as_mut().unwrap());
        let mut lines = message.lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("Ctrl-C")), "it does not listen");
        child
    }
}

/// The summary of a capture that ends well.
pub(crate) fn summary(capture: Child) -> Value {
    let output = capture.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Our reader's view: times in nanoseconds, numbers, interfaces, and the end of the file.
pub(crate) struct Found {
    pub(crate) times: Vec<i64>,
    pub(crate) numbers: Vec<u32>,
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) end: Result<(), Error>,
}

pub(crate) fn read(path: &Path) -> Found {
    let mut reader = Reader::open(path).unwrap();
    let (mut times, mut numbers) = (Vec::new(), Vec::new());
    let end = loop {
        match reader.next_packet() {
            Ok(Some(packet)) => {
                times.push(packet.time.as_nanos());
                numbers.push(u32::from_be_bytes(*packet.bytes[42..].first_chunk().unwrap()));
            }
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    Found { times, numbers, interfaces: reader.interfaces().to_vec(), end }
}

/// Times that begin the lines of a tool, in seconds with nine digits after the point.
pub(crate) fn times(text: &str) -> Vec<i64> {
    let time = |line: &str| {
        let (seconds, nanos) = line.split_whitespace().next().unwrap().split_once('.').unwrap();
        assert_eq!(nanos.len(), 9, "{line}");
        [seconds, nanos].concat().parse().unwrap()
    };
    text.lines().map(time).collect()
}

/// Tshark's view, whether the file is complete or not.
pub(crate) fn by_tshark(path: &str) -> Vec<i64> {
    let fields = ["-r", path, "-T", "fields", "-e", "frame.time_epoch"];
    let output = Command::new("tshark").args(fields).output().unwrap();
    times(&String::from_utf8(output.stdout).unwrap())
}

pub(crate) fn folder() -> (TempDir, impl Fn(&str) -> String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_owned();
    (folder, move |name: &str| path.join(name).to_str().unwrap().to_owned())
}
