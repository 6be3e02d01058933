//! `capture --events`: kernel events beside the packets, and no leftovers in the kernel.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::process::{Pid, Signal, kill_process};
use wirestamp_capture::file::Reader;
use wirestamp_lab::Netns;

use crate::capture::{folder, summary};
use crate::common::{Leftovers, is_root, run, stderr};

const PACKETS: usize = 100;
/// Bytes of a datagram, and of its IPv4 and UDP headers.
const LENGTH: usize = 1_000 + 28;

/// A link in a namespace, with one sender.
struct Link {
    namespace: Netns,
    /// The receiving end; no other interface has its name.
    far: String,
}

impl Link {
    fn new() -> Self {
        static LINKS: AtomicU32 = AtomicU32::new(0);
        let namespace = Netns::new().unwrap();
        let far = format!("c{}-{}", std::process::id(), LINKS.fetch_add(1, Ordering::Relaxed));
        for arguments in [
            &format!("link add near type veth peer name {far}"),
            "link set near multicast off addrgenmode none",
            &format!("link set {far} arp off multicast off addrgenmode none"),
            "link set near up",
            &format!("link set {far} up"),
            "address add 10.9.9.1/24 dev near",
            "neighbour add 10.9.9.2 lladdr ff:ff:ff:ff:ff:ff nud permanent dev near",
        ] {
            let status = namespace.command("ip").args(arguments.split(' ')).status().unwrap();
            assert!(status.success(), "ip {arguments}");
        }
        Self { namespace, far }
    }

    fn send(&self) {
        let send = || {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
            for _ in 0..PACKETS {
                socket.send_to(&[0; 1_000], (Ipv4Addr::new(10, 9, 9, 2), 5_000)).unwrap();
            }
        };
        self.namespace.run(send).unwrap();
    }

    /// Starts a capture of the receiving end, and waits until it listens.
    fn capture(&self, arguments: &[&str]) -> Child {
        let mut command = self.namespace.command(env!("CARGO_BIN_EXE_wirestamp"));
        command.args(["capture", "-i", &self.far, "--json"]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let message = BufReader::new(child.stderr.as_mut().unwrap());
        let mut lines = message.lines().map(Result::unwrap);
        assert!(lines.any(|line| line.contains("Ctrl-C")), "it does not listen");
        child
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Trace instances of a process.
fn instances(process: &Child) -> Vec<String> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).unwrap();
    fsconfig_create(&context).unwrap();
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    let mount = fsmount(&context, flags, MountAttrFlags::empty()).unwrap();
    let path = format!("/proc/self/fd/{}/instances", mount.as_raw_fd());
    let names = fs::read_dir(path).unwrap().map(|it| it.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name.starts_with(&format!("wirestamp-{}-", process.id()))).collect()
}

/// The rows of a CSV file without quoted cells, by column.
fn rows(path: &str) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(path).unwrap();
    let mut lines = text.lines();
    let columns: Vec<_> = lines.next().unwrap().split(',').collect();
    let row = |line: &str| {
        let cells: Vec<_> = line.split(',').map(ToOwned::to_owned).collect();
        assert_eq!(cells.len(), columns.len(), "{line}");
        columns.iter().map(|&name| name.to_owned()).zip(cells).collect()
    };
    lines.map(row).collect()
}

#[test]
fn each_captured_packet_has_its_events() {
    if !is_root() {
        return;
    }
    let before = Leftovers::now();
    let link = Link::new();
    for clock in ["x86-tsc", "mono", "boot"] {
        let (_folder, path) = folder();
        let [packets, events] = ["packets.pcapng", "events.csv"].map(path);
        let list = "net:netif_rx,net:netif_receive_skb";
        let count = PACKETS.to_string();
        let arguments = ["-w", &packets, "-c", &count, "--events", &events, "--events-list", list];
        let capture = link.capture(&[&arguments[..], &["--events-clock", clock]].concat());
        assert_eq!(instances(&capture).len(), 1);
        link.send();
        let process = capture.id();
        let summary = &summary(capture)["events"];
        assert_eq!((&summary["clock"], &summary["file"]), (&clock.into(), &events.clone().into()));
        assert_eq!(
            (&summary["lost"], &summary["balanced"]),
            (&0.into(), &true.into()),
            "{process}"
        );

        let rows = rows(&events);
        assert_eq!(summary["recorded"], rows.len());
        let of = |event: &str| {
            let mut rows: Vec<_> = rows.iter().filter(|row| row["event"] == event).collect();
            rows.sort_by_key(|row| row["raw"].parse::<u64>().unwrap());
            rows
        };
        let (rx, receive) = (of("net:netif_rx"), of("net:netif_receive_skb"));
        // The last packet ends the capture, possibly before its last event.
        assert!(rx.len() == PACKETS && [PACKETS, PACKETS - 1].contains(&receive.len()));
        for (rx, receive) in rx.iter().zip(&receive) {
            assert!(rx["skb"].len() == 16 && rx["skb"] == receive["skb"], "{rx:?} {receive:?}");
            assert_eq!((&*rx["interface"], &*rx["clock"]), (&*link.far, clock));
            assert_eq!(rx["length_bytes"], LENGTH.to_string());
            assert_eq!((&*rx["context"], &*receive["context"]), ("task", "softirq"));
        }
        if clock == "boot" {
            assert!(rows.iter().all(|row| row["time_ns"].is_empty() && row["error_ns"].is_empty()));
            continue;
        }
        // The kernel stamps a packet just before the event `netif_rx`.
        let time =
            |row: &BTreeMap<String, String>, column: &str| row[column].parse::<i64>().unwrap();
        let mut reader = Reader::open(packets.as_ref()).unwrap();
        let mut stamps = Vec::new();
        while let Some(packet) = reader.next_packet().unwrap() {
            stamps.push(packet.time.as_nanos());
        }
        assert_eq!(stamps.len(), PACKETS);
        let next = stamps.iter().skip(1).chain([&i64::MAX]);
        for ((row, &stamp), &next) in rx.iter().zip(&stamps).zip(next) {
            let (time, error) = (time(row, "time_ns"), time(row, "error_ns"));
            assert!(error > 0 && stamp <= time + error && time - error <= next, "{stamp} {row:?}");
        }
    }
    drop(link);
    assert_eq!(Leftovers::now(), before);
}

#[test]
fn trace_instance_is_removed_after_ctrl_c_and_sigkill() {
    if !is_root() {
        return;
    }
    let link = Link::new();
    let (_folder, path) = folder();
    let events = path("events.parquet");
    let capture = link.capture(&["--events", &events]);
    assert_eq!(instances(&capture).len(), 1);
    signal(&capture, Signal::INT);
    let process = capture.id();
    let mut capture = capture;
    assert!(capture.wait().unwrap().success());
    assert!(instances(&capture).is_empty(), "{process}");
    let file = fs::read(&events).unwrap();
    assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"), "a complete Parquet file");

    let mut capture = link.capture(&["--events", &events]);
    assert_eq!(instances(&capture).len(), 1);
    capture.kill().unwrap();
    capture.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    while !instances(&capture).is_empty() {
        assert!(Instant::now() < deadline, "the trace instance remains");
        std::thread::yield_now();
    }
}

#[test]
fn invalid_requests_for_events_are_usage_errors() {
    if !is_root() {
        return;
    }
    let (_folder, path) = folder();
    let [events, packets] = ["events.csv", "packets.pcapng"].map(path);
    let refused = |arguments: &[&str]| {
        let output = run(&[&["capture", "-i", "lo", "-c", "1"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        stderr(&output)
    };
    let message = refused(&["--events", &events, "--events-list", "net:netif_rxx"]);
    assert!(message.contains("cannot record net:netif_rxx: no such event"), "{message}");
    let message = refused(&["--events", &events, "--events-clock", "sundial"]);
    assert!(message.contains("sundial") && message.contains("x86-tsc, mono"), "{message}");
    assert!(refused(&["--events-list", "net:netif_rx"]).contains("--events <FILE>"));
    let message = refused(&["--events", &events, "-w", &events]);
    assert!(message.contains("--events and -w name the same file"), "{message}");
    assert!(refused(&["--events", "-", "-w", &packets]).contains("--events needs a file"));
}
