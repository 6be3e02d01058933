//! nfcapd (nfdump) stores exported records, and nfdump adds them up.

use wirestamp_mesh::collector::Measured;
use wirestamp_mesh::export::Ipfix;

use super::super::common::BEGIN;
use super::*;

/// Records that nfdump prints for these messages.
fn stored(messages: &[Vec<u8>]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = free_port();
    let mut command = Command::new("nfcapd");
    command.args(["-b", "127.0.0.1", "-p", &port.to_string(), "-w"]).arg(folder.path());
    let mut nfcapd = Ending(command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap());
    let said = BufReader::new(nfcapd.0.stderr.take().unwrap());
    let mut said = said.lines().map(Result::unwrap);
    assert!(said.any(|line| line.contains("Startup nfcapd")));
    for message in messages {
        assert!(sender.send_to(message, ("127.0.0.1", port)).is_ok());
    }
    // It reads one message after the other. When the last one is read, the queue is empty.
    while waiting(port) {
        thread::sleep(Duration::from_millis(5));
    }
    // It writes its file when it ends.
    let pid = rustix::process::Pid::from_child(&nfcapd.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let said: Vec<_> = said.collect();
    nfcapd.0.wait().unwrap();
    let printed =
        Command::new("nfdump").args(["-o", "json", "-R"]).arg(folder.path()).output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    serde_json::from_str(&printed).unwrap_or_else(|_| panic!("{printed} {said:?}"))
}

/// Whether datagrams wait at this port.
fn waiting(port: u16) -> bool {
    let sockets = fs::read_to_string("/proc/net/udp").unwrap();
    let socket = format!("0100007F:{port:04X} ");
    let line = sockets.lines().find(|line| line.contains(&socket)).unwrap();
    let queues = line.split_whitespace().nth(4).unwrap();
    !queues.ends_with(":00000000")
}

fn sum(records: &[Value], key: &str, of: impl Fn(&Value) -> bool) -> u64 {
    records.iter().filter(|it| of(it)).filter_map(|it| it[key].as_u64()).sum()
}

#[test]
fn nfdump_sums_are_the_packets_of_flows() {
    let records = stored(&flows::exported());
    // The flow with 80 packets was reported again with 90.
    assert_eq!(sum(&records, "in_packets", |it| it["dst_port"] == 5004), 90, "{records:?}");
    assert_eq!(sum(&records, "in_packets", |it| it["dst_port"] == 443), 7, "{records:?}");
}

#[test]
fn nfdump_sums_are_the_packets_of_a_path() {
    let records = stored(&exported());
    assert_eq!(sum(&records, "in_packets", |_| true), PACKETS.unsigned_abs(), "{records:?}");
}

#[test]
fn nfdump_shows_the_addresses_of_a_path() {
    let (_folder, mesh) = mesh();
    let mut ipfix = Ipfix::default();
    let mut messages = ipfix.descriptions(&mesh.tasks.borrow(), 1);
    let windows = [Measured { begin_ns: BEGIN, ..Measured::default() }];
    for ends in [["192.0.2.1", "192.0.2.2"], ["192.0.2.1", "2001:db8::2"]] {
        let ends = ends.map(|end| end.parse().unwrap());
        messages.extend(ipfix.results((1, "p"), Some(ends), &windows, 2));
    }
    let records = stored(&messages);
    let [v4, v6] = records.as_slice() else { panic!("{records:?}") };
    assert_eq!((&v4["src4_addr"], &v4["dst4_addr"]), (&"192.0.2.1".into(), &"192.0.2.2".into()));
    assert_eq!(
        (&v6["src6_addr"], &v6["dst6_addr"]),
        (&"::ffff:192.0.2.1".into(), &"2001:db8::2".into())
    );
}
