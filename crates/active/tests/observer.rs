//! Notifications of the packets of a test.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use wirestamp_active::reflector::Server;
use wirestamp_active::sender::{PacketFormat, PacketSchedule, ReceivedAnswer, Sender, TestConfig};
use wirestamp_active::{PacketObserver, TestPacket};
use wirestamp_capture::Stop;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::stamp::{Key, NotStamp};

const PACKETS: u64 = 200;

struct RecordingObserver {
    packets: Vec<TestPacket>,
    complete_until: Time<Utc>,
    /// Packets with a time before one already reported as complete.
    late: u64,
    answers: u64,
    /// Marks of the answered packets.
    answered: Vec<u64>,
    answered_until: Time<Utc>,
    /// Answers whose time until they left is known.
    returned: usize,
    rejected: Vec<NotStamp>,
}

impl RecordingObserver {
    fn new() -> Self {
        let beginning = Time::from_nanos(i64::MIN);
        Self {
            packets: Vec::new(),
            complete_until: beginning,
            late: 0,
            answers: 0,
            answered: Vec::new(),
            answered_until: beginning,
            returned: 0,
            rejected: Vec::new(),
        }
    }

    fn marks(&self) -> Vec<u64> {
        self.packets.iter().map(|it| it.mark).collect()
    }
}

impl PacketObserver for &mut RecordingObserver {
    fn packet(&mut self, packet: &TestPacket) {
        self.late += u64::from(packet.at < self.complete_until);
        self.packets.push(*packet);
    }

    fn complete(&mut self, until: Time<Utc>) {
        self.complete_until = self.complete_until.max(until);
    }

    fn answer(&mut self, answer: &ReceivedAnswer) {
        self.answers += 1;
        self.answered.push(answer.mark);
        // All answers to earlier packets were reported.
        self.late += u64::from(answer.sent.is_none_or(|sent| sent.utc < self.answered_until));
    }

    fn answered(&mut self, until: Time<Utc>) {
        self.answered_until = self.answered_until.max(until);
    }

    fn returned(&mut self, session: u16, sending: Option<Span>) {
        assert_eq!(session, 0);
        self.returned += usize::from(sending.is_some_and(|sending| sending >= Span::ZERO));
    }

    fn rejected(&mut self, why: NotStamp) {
        self.rejected.push(why);
    }
}

fn any() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn test(to: SocketAddr, format: PacketFormat) -> TestConfig {
    TestConfig {
        to,
        from: any(),
        packets: Some(PACKETS),
        lasting: None,
        schedule: PacketSchedule::Periodic(Duration::from_millis(1)),
        timeout: Span::from_secs(10),
        format,
        same_clock: true,
    }
}

#[test]
fn both_ends_report_the_same_marks() {
    let server = Server::bind(&[any()], None).unwrap();
    let format = PacketFormat { length: 100, ..PacketFormat::default() };
    let test = test(server.addresses().unwrap()[0], format);
    let (stop, mut sent, mut received) =
        (Stop::new().unwrap(), RecordingObserver::new(), RecordingObserver::new());
    thread::scope(|scope| {
        let reflecting = scope.spawn(|| server.run(&stop, &mut received));
        Sender::open(test).unwrap().run(&Stop::new().unwrap(), &mut sent).unwrap();
        stop.request();
        reflecting.join().unwrap().unwrap();
    });
    // The reflector may also have received closing packets.
    received.packets.truncate(sent.packets.len());
    assert_eq!(sent.marks().len() as u64, PACKETS);
    assert_eq!(received.marks(), sent.marks());
    assert_eq!((sent.late, received.late, sent.answers), (0, 0, PACKETS));
    assert!(sent.complete_until > sent.packets[0].at, "{:?}", sent.complete_until);
    // By the timeout of 10 s.
    let behind = sent.complete_until - sent.answered_until;
    assert!((Span::from_secs(9)..Span::from_secs(60)).contains(&behind), "{behind}");
    sent.answered.sort_unstable();
    assert_eq!(sent.answered, sent.marks());
    assert!(received.returned > 0);
    for (there, here) in sent.packets.iter().zip(&received.packets) {
        let delay = here.at - there.at;
        assert!(delay + there.error >= Span::ZERO, "{there:?} {here:?}");
        assert_eq!((there.length, here.length), (142, 142));
        assert_eq!((there.from.port(), there.to), (here.from.port(), here.to));
    }
}

#[test]
fn reflector_reports_rejected_datagrams() {
    let key = || Key::new(b"a key that sender and reflector share");
    let server = Server::bind(&[any()], key()).unwrap();
    let to = server.addresses().unwrap()[0];
    let forger = UdpSocket::bind(any()).unwrap();
    // They wait in the socket until the reflector starts.
    for length in [112, 44, 112] {
        forger.send_to(&vec![7; length], to).unwrap();
    }
    let test = test(to, PacketFormat { key: key(), ..PacketFormat::default() });
    let (stop, mut sent, mut received) =
        (Stop::new().unwrap(), RecordingObserver::new(), RecordingObserver::new());
    thread::scope(|scope| {
        let reflecting = scope.spawn(|| server.run(&stop, &mut received));
        Sender::open(test).unwrap().run(&Stop::new().unwrap(), &mut sent).unwrap();
        stop.request();
        assert_eq!(reflecting.join().unwrap().unwrap().forged, 2);
    });
    received.packets.truncate(sent.packets.len());
    assert_eq!((received.marks(), sent.answers), (sent.marks(), PACKETS));
    let rejected = [NotStamp::Forged, NotStamp::TooShort(44, 112), NotStamp::Forged];
    assert_eq!((&received.rejected[..], &sent.rejected[..]), (&rejected[..], &[][..]));
}

/// Stops the sender after a rejected datagram.
struct StoppingObserver<'a>(&'a Stop, Vec<NotStamp>);

impl PacketObserver for &mut StoppingObserver<'_> {
    fn rejected(&mut self, why: NotStamp) {
        self.1.push(why);
        self.0.request();
    }
}

#[test]
fn sender_reports_rejected_datagrams() {
    let forger = UdpSocket::bind(any()).unwrap();
    let format = PacketFormat { key: Key::new(b"a key"), ..PacketFormat::default() };
    let test = test(forger.local_addr().unwrap(), format);
    let test = TestConfig { packets: None, timeout: Span::from_millis(1), ..test };
    let stop = Stop::new().unwrap();
    let mut observer = StoppingObserver(&stop, Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let (_, sender) = forger.recv_from(&mut [0; 200]).unwrap();
            forger.send_to(&[7; 112], sender).unwrap();
        });
        let report = Sender::open(test).unwrap().run(&stop, &mut observer).unwrap();
        assert_eq!(report.forged, 1);
    });
    assert_eq!(observer.1, [NotStamp::Forged]);
}
