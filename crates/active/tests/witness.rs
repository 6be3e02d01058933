//! What others hear of the packets of a test.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

use wirestamp_active::reflector::Server;
use wirestamp_active::sender::{Form, Heard, Rhythm, Sender, Test};
use wirestamp_active::{Passage, Witness};
use wirestamp_capture::Stop;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::stamp::{Key, NotStamp};

const PACKETS: u64 = 200;

struct Watching {
    passages: Vec<Passage>,
    complete_until: Time<Utc>,
    /// Packets that passed before a time by which all were said to have been told of.
    late: u64,
    heard: u64,
    refused: Vec<NotStamp>,
}

impl Watching {
    fn new() -> Self {
        let complete_until = Time::from_nanos(i64::MIN);
        let (passages, refused) = (Vec::new(), Vec::new());
        Self { passages, complete_until, late: 0, heard: 0, refused }
    }

    fn marks(&self) -> Vec<u64> {
        self.passages.iter().map(|it| it.mark).collect()
    }
}

impl Witness for &mut Watching {
    fn passes(&mut self, passage: &Passage) {
        self.late += u64::from(passage.at < self.complete_until);
        self.passages.push(*passage);
    }

    fn complete(&mut self, until: Time<Utc>) {
        self.complete_until = self.complete_until.max(until);
    }

    fn heard(&mut self, _: &Heard) {
        self.heard += 1;
    }

    fn refuses(&mut self, why: NotStamp) {
        self.refused.push(why);
    }
}

fn any() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn test(to: SocketAddr, form: Form) -> Test {
    Test {
        to,
        from: any(),
        packets: Some(PACKETS),
        lasting: None,
        rhythm: Rhythm::Periodic(Duration::from_millis(1)),
        timeout: Span::from_secs(10),
        form,
        same_clock: true,
    }
}

#[test]
fn both_ends_know_each_packet_by_the_same_mark() {
    let server = Server::bind(&[any()], None).unwrap();
    let form = Form { length: 100, ..Form::default() };
    let test = test(server.addresses().unwrap()[0], form);
    let (stop, mut sent, mut received) = (Stop::new().unwrap(), Watching::new(), Watching::new());
    thread::scope(|scope| {
        let reflecting = scope.spawn(|| server.run(&stop, &mut received));
        Sender::open(test).unwrap().run(&Stop::new().unwrap(), &mut sent).unwrap();
        stop.request();
        reflecting.join().unwrap().unwrap();
    });
    // The reflector may have been asked behind the end what became of the last ones.
    received.passages.truncate(sent.passages.len());
    assert_eq!(sent.marks().len() as u64, PACKETS);
    assert_eq!(received.marks(), sent.marks());
    assert_eq!((sent.late, received.late, sent.heard), (0, 0, PACKETS));
    assert!(sent.complete_until > sent.passages[0].at, "{:?}", sent.complete_until);
    for (there, here) in sent.passages.iter().zip(&received.passages) {
        let delay = here.at - there.at;
        assert!(delay + there.error >= Span::ZERO, "{there:?} {here:?}");
        assert_eq!((there.length, here.length), (142, 142));
        assert_eq!((there.from.port(), there.to), (here.from.port(), here.to));
    }
}

#[test]
fn a_reflector_tells_what_it_refuses_and_takes_it_for_no_packet() {
    let key = || Key::new(b"a key that sender and reflector share");
    let server = Server::bind(&[any()], key()).unwrap();
    let to = server.addresses().unwrap()[0];
    let forger = UdpSocket::bind(any()).unwrap();
    // They wait for the reflector when it begins.
    for length in [112, 44, 112] {
        forger.send_to(&vec![7; length], to).unwrap();
    }
    let test = test(to, Form { key: key(), ..Form::default() });
    let (stop, mut sent, mut received) = (Stop::new().unwrap(), Watching::new(), Watching::new());
    thread::scope(|scope| {
        let reflecting = scope.spawn(|| server.run(&stop, &mut received));
        Sender::open(test).unwrap().run(&Stop::new().unwrap(), &mut sent).unwrap();
        stop.request();
        assert_eq!(reflecting.join().unwrap().unwrap().forged, 2);
    });
    received.passages.truncate(sent.passages.len());
    assert_eq!((received.marks(), sent.heard), (sent.marks(), PACKETS));
    let refused = [NotStamp::Forged, NotStamp::TooShort(44, 112), NotStamp::Forged];
    assert_eq!((&received.refused[..], &sent.refused[..]), (&refused[..], &[][..]));
}

/// Has a sender stop when it has refused something.
struct Refusing<'a>(&'a Stop, Vec<NotStamp>);

impl Witness for &mut Refusing<'_> {
    fn refuses(&mut self, why: NotStamp) {
        self.1.push(why);
        self.0.request();
    }
}

#[test]
fn a_sender_tells_what_it_refuses() {
    let forger = UdpSocket::bind(any()).unwrap();
    let form = Form { key: Key::new(b"a key"), ..Form::default() };
    let test = test(forger.local_addr().unwrap(), form);
    let test = Test { packets: None, timeout: Span::from_millis(1), ..test };
    let stop = Stop::new().unwrap();
    let mut refusing = Refusing(&stop, Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            let (_, sender) = forger.recv_from(&mut [0; 200]).unwrap();
            forger.send_to(&[7; 112], sender).unwrap();
        });
        let report = Sender::open(test).unwrap().run(&stop, &mut refusing).unwrap();
        assert_eq!(report.forged, 1);
    });
    assert_eq!(refusing.1, [NotStamp::Forged]);
}
