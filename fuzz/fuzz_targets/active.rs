//! A STAMP reflector and a STAMP sender, with any bytes as packets of the other.
#![no_main]

use std::net::SocketAddr;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use wirestamp_active::reflector::{Arrival, Reflector};
use wirestamp_active::sender::{PacketFormat, PacketSchedule, Session, TestConfig};
use wirestamp_active::{ClockState, SystemClock};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::stamp::Key;

struct Still;

impl SystemClock for Still {
    fn now(&self) -> Time<Utc> {
        Time::from_nanos(1_700_000_000_000_000_000)
    }

    fn state(&mut self) -> ClockState {
        ClockState { synchronised: true, error: Span::from_micros(50), tai: None }
    }
}

fuzz_target!(|input: (bool, bool, u8, Vec<&[u8]>)| {
    let (is_open, light, sent, packets) = input;
    let key = (!is_open).then(|| Key::new(b"a key that sender and reflector share")).flatten();
    let at = |port| SocketAddr::from(([192, 0, 2, 7], port));
    let mut reflector = Reflector::new(key.clone());
    let mut session = Session::new(
        &TestConfig {
            to: at(862),
            from: at(4000),
            packets: None,
            lasting: None,
            schedule: PacketSchedule::Periodic(Duration::from_millis(1)),
            timeout: Span::from_millis(100),
            format: PacketFormat { key, light, ..PacketFormat::default() },
            same_clock: false,
        },
        Still.state(),
    );
    let (mut packet, mut answer) = (Vec::new(), Vec::new());
    for _ in 0..sent {
        session.packet(Still.now(), &mut packet);
    }
    for bytes in packets {
        let arrival =
            Arrival { bytes, from: at(4000), to: None, at: Still.now(), ttl: 64, class: 0 };
        if reflector.reflect(&arrival, &mut Still, &mut answer).is_ok() {
            assert_eq!(answer.len(), bytes.len().max(if is_open { 44 } else { 112 }));
        }
        let _ = session.answer(bytes, at(862), Still.now());
        session.advance(Still.now());
    }
    let report = session.finish();
    let counts = report.both.counts;
    assert_eq!(counts.sent, counts.answered + counts.lost);
    assert_eq!(counts.lost, counts.lost_there + counts.lost_back + counts.undecided);
});
