//! Results of a collector are exported in forms that other programs read.

mod flows;
mod nfdump;
mod pmacct;
mod prometheus;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use wirestamp_mesh::export::Exporter;
use wirestamp_mesh::protocol::ipfix::element::{
    DROPPED_PACKET_DELTA_COUNT, METERING_PROCESS_ID, PACKET_DELTA_COUNT,
};
use wirestamp_mesh::protocol::ipfix::{Element, Order, Session, Transport, Unread};

use super::common::{Probe, Running, mesh};
use super::{BATCHES, PACKETS, batches};

/// Receiver of the messages that a controller exports.
struct Receiver {
    socket: UdpSocket,
    session: Session,
    /// All messages, as received.
    messages: Vec<Vec<u8>>,
}

impl Receiver {
    fn of(mesh: &Running) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        let to = socket.local_addr().unwrap().to_string();
        let exporter = Exporter::open(&to, Arc::clone(&mesh.probes));
        let exporter = mesh.runtime.block_on(exporter).unwrap();
        mesh.runtime.spawn(exporter.run(Arc::clone(&mesh.sources), mesh.tasks.clone()));
        Self { socket, session: Session::new(Transport::Datagrams), messages: Vec::new() }
    }

    /// Sums of elements over the result records of the next message. Asserts that all of them are of this task.
    fn sums<const N: usize>(&mut self, task: u64, of: [Element; N]) -> [u64; N] {
        let mut bytes = vec![0; 65_536];
        let length = self.socket.recv(&mut bytes).unwrap();
        bytes.truncate(length);
        let message = self.session.read(&bytes).unwrap();
        assert!(matches!(message.order, Order::First | Order::Missed(0)), "{message:?}");
        // Without the option records that describe the tasks.
        let results = message.records.iter().filter(|it| it.template().scope() == 0);
        assert!(results.clone().all(|it| it.unsigned(METERING_PROCESS_ID) == Some(task)));
        let sums = of.map(|of| results.clone().filter_map(|it| it.unsigned(of)).sum());
        self.messages.push(bytes);
        sums
    }

    /// All messages. Asserts that they could be decoded completely.
    fn messages(self) -> Vec<Vec<u8>> {
        assert_eq!(self.session.unread(), Unread::default());
        self.messages
    }
}

/// Exported results of all packets.
fn exported() -> Vec<Vec<u8>> {
    let (folder, mesh) = mesh();
    let mut receiver = Receiver::of(&mesh);
    let mut receive = || receiver.sums(1, [PACKET_DELTA_COUNT, DROPPED_PACKET_DELTA_COUNT]);
    // Templates come before anything else.
    assert_eq!(receive(), [0, 0]);
    for (name, point) in [("roof", 0), ("cellar", 1)] {
        let probe = Probe::let_in(&mesh.runtime, folder.path(), mesh.address, name, point);
        probe.hold(batches(point, 0..BATCHES));
        mesh.runtime.spawn(Arc::new(probe).deliver(mesh.address));
    }
    let (mut sent, mut lost) = (0, 0);
    while sent < PACKETS.unsigned_abs() {
        let [more_sent, more_lost] = receive();
        (sent, lost) = (sent + more_sent, lost + more_lost);
    }
    assert_eq!((sent, lost), (PACKETS.unsigned_abs(), PACKETS.unsigned_abs() / 10));
    receiver.messages()
}

/// Writes a capture file (pcap, its packets beginning with IP) of datagrams with these messages.
fn write_capture(messages: &[Vec<u8>], path: &Path) {
    let mut file = [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65_535, 101].map(u32::to_be_bytes).concat();
    for message in messages {
        let [udp, ip] = [8, 28].map(|more| u16::try_from(message.len() + more).unwrap());
        file.extend([0, 0, ip.into(), ip.into()].map(u32::to_be_bytes).as_flattened());
        let [high, low] = ip.to_be_bytes();
        file.extend([0x45, 0, high, low, 0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
        file.extend([4739, 4739, udp, 0].map(u16::to_be_bytes).as_flattened());
        file.extend(message);
    }
    fs::write(path, file).unwrap();
}

/// Output of tshark for messages, without warnings.
fn dissected(messages: &[Vec<u8>]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exported.pcap");
    write_capture(messages, &path);
    let printed = Command::new("tshark").args(["-V", "-r"]).arg(&path).output().unwrap();
    assert!(printed.status.success());
    let printed = String::from_utf8(printed.stdout).unwrap();
    for complaint in ["Malformed", "Expert Info", "No template", "Expected Sequence"] {
        assert!(!printed.contains(complaint), "{complaint}: {printed}");
    }
    printed
}

#[test]
fn tshark_accepts_exported_messages() {
    let printed = dissected(&exported());
    assert!(printed.contains("(32473)"), "{printed}");
    assert!(printed.contains("Dropped Packets: 10"), "{printed}");
}

/// A program that is killed when it is not needed any more.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A port that was free a moment ago: receivers do not report their port.
fn free_port() -> u16 {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// Records that nfacctd (pmacct) prints for these messages and keys: exactly `count`. `primitives` describes the
/// enterprise keys.
fn printed(messages: &[Vec<u8>], keys: &str, primitives: &str, count: usize) -> Vec<Value> {
    printed_until(messages, keys, primitives, |found| found.len() == count)
}

/// The same until they are complete, and no more.
fn printed_until(
    messages: &[Vec<u8>],
    keys: &str,
    primitives: &str,
    is_complete: impl Fn(&[Value]) -> bool,
) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let [settings, file] = ["settings", "primitives"].map(|name| folder.path().join(name));
    fs::write(&file, primitives).unwrap();
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = free_port();
    let text = format!(
        "daemonize: false\nnfacctd_ip: 127.0.0.1\nnfacctd_port: {port}\nplugins: print\n\
         aggregate: {keys}\naggregate_primitives: {}\nprint_output: json\n\
         print_refresh_time: 1\n",
        file.display()
    );
    fs::write(&settings, text).unwrap();
    let mut command = Command::new("nfacctd");
    command.arg("-f").arg(&settings).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut nfacctd = Ending(command.spawn().unwrap());
    let said = BufReader::new(nfacctd.0.stderr.take().unwrap());
    let mut said = said.lines().map(Result::unwrap);
    // This line means that the printing process is ready. The receiving process is ready earlier.
    assert!(said.any(|line| line.contains("Purging cache - END")));
    messages
        .iter()
        .for_each(|message| assert!(sender.send_to(message, ("127.0.0.1", port)).is_ok()));
    let printed = BufReader::new(nfacctd.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut records = printed.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    let mut found = Vec::new();
    while !is_complete(&found) {
        found.push(records.next().expect("more records"));
    }
    // Its other process ends on its own, and closes the pipe.
    drop(nfacctd);
    assert_eq!(records.count(), 0);
    found
}

const PRIMITIVES: &str = "\
name=task_name field_type=32473:1 len=vlen semantics=str
name=lost field_type=133 len=8 semantics=u_int
name=received field_type=32473:4 len=8 semantics=u_int
name=delay_min field_type=32473:16 len=8 semantics=u_int
name=delay_max field_type=32473:23 len=8 semantics=u_int
";

/// nfacctd (pmacct) decodes and prints exported records, including our enterprise elements.
#[test]
fn nfacctd_accepts_exported_messages() {
    let seconds = usize::try_from(PACKETS / 100).unwrap();
    let keys = "task_name, lost, received, delay_min, delay_max, timestamp_start";
    for record in printed(&exported(), keys, PRIMITIVES, seconds) {
        assert_eq!(record["task_name"], "p", "{record}");
        assert_eq!(
            (&record["lost"], &record["received"]),
            (&"10".into(), &"90".into()),
            "{record}"
        );
        assert_eq!(record["delay_min"], "5000000", "{record}");
        assert_eq!(record["delay_max"], "5000000", "{record}");
        assert!(record["timestamp_start"].as_str().unwrap().starts_with("2023-11-14"), "{record}");
    }
}
