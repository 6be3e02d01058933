//! Reference capture of the packets at the sending ends of the links to the taps.
//!
//! The clock must be read as the last step before the driver gets the packet. An interrupt between this step and
//! the tap's stamp is an error of the truth that does not average out: at a full queue, it affects the packets that
//! pass, because the bottleneck's timer has just made room for them. A packet socket is not suitable: it stamps
//! before it copies, so that the interrupt can occur during half a microsecond.
//!
//! A tracing program at the driver would also support interfaces with a queue, but not every kernel runs such
//! programs for every packet (docs/adr/0003-layers-follow-the-sk-buff.md).

use anyhow::Context;
use wirestamp_capture::Stop;
use wirestamp_capture::layers::{Journey, Layers, LayersLedger, Point};
use wirestamp_clock::ClockService;
use wirestamp_lab::Netns;
use wirestamp_packet::{LinkType, Packet};
use wirestamp_traffic::Payload;

use super::setting::PASSIVE;

/// When a packet left by an interface, if it did: nanoseconds of `CLOCK_MONOTONIC`.
pub(super) type Left = Option<u64>;

/// When the packets of the passive traffic left, by their numbers.
pub(super) type Departures = Vec<Left>;

/// Max packets; more than any run sends (60 s at 106,000 a second).
const MAX_PACKETS: usize = 10_000_000;

/// Records when packets leave an interface: the truth that measurements are compared with.
pub(super) struct ReferenceCapture {
    interface: &'static str,
    layers: Layers,
}

/// Packets seen by a reference capture.
#[derive(Debug)]
pub(super) struct ReferencePackets {
    interface: &'static str,
    pub(super) departures: Departures,
    ledger: LayersLedger,
}

impl ReferencePackets {
    /// Reason why the record is incomplete; `None` if it is complete.
    pub(super) fn unknown(&self) -> Option<String> {
        let Self { interface, ledger, .. } = self;
        let missed = ledger.lost() + ledger.skipped;
        let whole = ledger.balances() && missed == 0;
        (!whole).then(|| format!("the reference capture at {interface} missed {missed} packets"))
    }
}

impl ReferenceCapture {
    /// Starts to record packets that leave an interface.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub(super) fn open(
        namespace: &Netns,
        interface: &'static str,
        clock: &ClockService,
    ) -> anyhow::Result<Self> {
        let open = || Layers::departures(interface, Some("udp"), clock);
        let layers = namespace.run(open).context("cannot enter the lab")??;
        Ok(Self { interface, layers })
    }

    /// Records until `stop` is requested.
    ///
    /// # Errors
    /// When the records cannot be read.
    pub(super) fn watch(self, stop: &Stop) -> anyhow::Result<ReferencePackets> {
        let Self { interface, layers } = self;
        let mut departures = Departures::new();
        let (ledger, outcome) = layers.run(stop, &mut |packet| {
            note(&packet, &mut departures);
            Ok(())
        });
        outcome.with_context(|| format!("the reference capture at {interface} failed"))?;
        Ok(ReferencePackets { interface, departures, ledger })
    }
}

fn note(packet: &Journey, departures: &mut Departures) {
    let number = number_of(&packet.head).and_then(|number| usize::try_from(number).ok());
    // Numbers increase by one; a number from another program must not allocate memory.
    if let Some(number) = number.filter(|number| *number < MAX_PACKETS) {
        if departures.len() <= number {
            departures.resize(number + 1, None);
        }
        departures[number] = packet.time(Point::Queue);
    }
}

/// The number of a packet of the passive traffic.
fn number_of(frame: &[u8]) -> Option<u64> {
    let packet = Packet::parse(LinkType::Ethernet, frame).ok()?;
    let payload = Payload::decode(packet.payload())?;
    (payload.stream == PASSIVE).then_some(payload.sequence)
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Time;

    use super::*;

    #[test]
    fn only_packets_of_the_passive_traffic_have_a_number() {
        let frame = |stream| {
            let mut frame = vec![0; 62 + Payload::MIN_BYTES];
            // Ethernet type, version, payload length, next header: IPv6 with UDP.
            frame[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]);
            frame[18..21].copy_from_slice(&[0, 40, 17]);
            frame[58..60].copy_from_slice(&[0, 40]);
            let time = Time::from_nanos(1);
            let payload = Payload { stream, sequence: 7, intended: time, actual: time };
            payload.encode(&mut frame[62..]);
            frame
        };
        assert_eq!(number_of(&frame(PASSIVE)), Some(7));
        assert_eq!(number_of(&frame(PASSIVE + 1)), None);
        assert_eq!(number_of(&frame(PASSIVE)[..70]), None);
        assert_eq!(number_of(b"no frame"), None);
    }
}
