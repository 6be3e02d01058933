//! Reports of completeness: all packets up to a time were passed on.

use std::sync::mpsc;
use std::time::Duration;

use wirestamp_capture::{CapturedPacket, Error, Sink, StampSource};
use wirestamp_clock::{Time, Utc};

use super::bed::{capture, config, lab, pairs, send};

const PACKETS: u32 = 2000;

/// Counts packets that arrive after a report that covers them, and signals when all have arrived.
struct CompletenessChecker {
    until: Time<Utc>,
    newest: Time<Utc>,
    packets: u32,
    late: u32,
    all: mpsc::Sender<()>,
}

impl Sink for CompletenessChecker {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        self.packets += 1;
        self.late += u32::from(packet.stamp.utc < self.until);
        self.newest = self.newest.max(packet.stamp.utc);
        Ok(())
    }

    fn complete(&mut self, until: Time<Utc>) -> Result<(), Error> {
        self.until = self.until.max(until);
        if self.packets == PACKETS && self.until > self.newest {
            self.all.send(()).unwrap();
        }
        Ok(())
    }
}

#[test]
fn completeness_is_reported_without_traffic() {
    let Some(lab) = lab() else { return };
    for pair in pairs().filter(|pair| pair.stamp == StampSource::Kernel) {
        let (all, done) = mpsc::channel();
        let beginning = Time::from_nanos(i64::MIN);
        let mut checker =
            CompletenessChecker { until: beginning, newest: beginning, packets: 0, late: 0, all };
        let config = config(pair.method, pair.stamp, None);
        let (ledger, outcome) = capture(&lab, config, &mut checker, |stop| {
            send(&lab, PACKETS);
            done.recv_timeout(Duration::from_secs(60)).unwrap();
            stop.request();
        });
        let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
        outcome.unwrap();
        assert_eq!((checker.packets, checker.late), (PACKETS, 0), "{name}");
    }
}
