//! What others hear of the packets of a test.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use wirestamp_active::reflector::Server;
use wirestamp_active::sender::{Form, Heard, Rhythm, Sender, Test};
use wirestamp_active::{Passage, Witness};
use wirestamp_capture::Stop;
use wirestamp_clock::{Span, Time, Utc};

const PACKETS: u64 = 200;

struct Watching {
    passages: Vec<Passage>,
    complete_until: Time<Utc>,
    /// Packets that passed before a time by which all were said to have been told of.
    late: u64,
    heard: u64,
}

impl Watching {
    fn new() -> Self {
        let complete_until = Time::from_nanos(i64::MIN);
        Self { passages: Vec::new(), complete_until, late: 0, heard: 0 }
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
}

#[test]
fn both_ends_know_each_packet_by_the_same_mark() {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Server::bind(&[any], None).unwrap();
    let to = server.addresses().unwrap()[0];
    let test = Test {
        to,
        from: any,
        packets: Some(PACKETS),
        lasting: None,
        rhythm: Rhythm::Periodic(Duration::from_millis(1)),
        timeout: Span::from_secs(10),
        form: Form { length: 100, ..Form::default() },
        same_clock: true,
    };
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
