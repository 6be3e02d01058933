//! Stamps of a capture at the end of the cable.

use std::sync::atomic::{AtomicU64, Ordering};

use wirestamp_capture::{
    Capture, CapturedPacket, Config, Cores, Direction, Error, Ledger, Sink, StampSource, Stop, Wait,
};
use wirestamp_clock::{ClockService, Time, Utc};
use wirestamp_lab::TAP_A;
use wirestamp_packet::{LinkType, Packet};
use wirestamp_traffic::Payload;

use super::source::Source;
use crate::tester::CpuUse;

/// Captured bytes of a packet: its headers and the sender's data.
const SNAPLEN: u32 = 128;

/// The stamps of one capture.
pub(crate) struct Captures {
    /// The packets in the order that they were captured: number, and stamp.
    pub(crate) stamps: Vec<(u64, Time<Utc>)>,
    /// The packet ledger of the capture.
    pub(crate) ledger: Ledger,
    /// CPU use of the thread that takes the stamps: of the whole capture if the kernel stamps, which then has one thread.
    pub(crate) cpu_use: CpuUse,
}

/// Capture settings of a source. Threads that stamp in user space have real-time priority where it is
/// granted, so that no other capture delays them.
pub(super) fn config(source: Source, cores: Cores) -> Config {
    let realtime = source.stamp == StampSource::Raw;
    // Away from the core of the sender.
    let all = Cores { convert: cores.acquire, consume: cores.acquire, ..cores };
    Config {
        snaplen: SNAPLEN,
        filter: Some("udp".into()),
        direction: Direction::In,
        lanes: vec![all],
        wait: Wait::Block { realtime },
        ..Config::new(TAP_A, source.method, source.stamp)
    }
}

impl Captures {
    /// Runs a capture to its end, and updates `count` with each packet.
    pub(crate) fn take(
        capture: Capture,
        clock: &ClockService,
        end: &Stop,
        count: &AtomicU64,
    ) -> anyhow::Result<Self> {
        let mut taker = Taker { stamps: Vec::new(), count };
        let ((ledger, outcome), cpu_use) = CpuUse::of(|| capture.run(clock, end, &mut taker));
        outcome?;
        Ok(Self { stamps: taker.stamps, ledger, cpu_use })
    }
}

/// Keeps the stamps.
struct Taker<'a> {
    stamps: Vec<(u64, Time<Utc>)>,
    count: &'a AtomicU64,
}

impl Sink for Taker<'_> {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        let parsed = Packet::parse(LinkType::Ethernet, packet.bytes).ok();
        let payload = parsed.and_then(|parsed| Payload::decode(parsed.payload()));
        if let Some(Payload { sequence, .. }) = payload {
            self.stamps.push((sequence, packet.stamp.utc));
            self.count.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }
}
