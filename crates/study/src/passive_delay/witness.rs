//! Who sees the packets at the other ends of the links that the taps are at.

use anyhow::Context;
use wirestamp_capture::{Capture, Captured, Error, Ledger, Sink, Stop};
use wirestamp_clock::{ClockService, Time, Utc};
use wirestamp_packet::{LinkType, Packet};
use wirestamp_traffic::Payload;

use super::setting::PASSIVE;

/// When a packet left an interface, if it did: the kernel's stamp from right before the driver took it
/// (`dev_queue_xmit_nit` of net/core/dev.c).
pub(super) type Left = Option<Time<Utc>>;

/// When the packets of the passive traffic left, by their numbers.
pub(super) type Departures = Vec<Left>;

/// More than any run sends: 60 s at 106,000 a second.
const MOST_PACKETS: usize = 10_000_000;
/// Bytes of each packet to keep: Ethernet, IPv6 and UDP headers and the numbers behind them.
pub(super) const SNAPLEN: u32 = 96;

/// What a witness saw.
#[derive(Debug)]
pub(super) struct Seen {
    interface: String,
    pub(super) departures: Departures,
    ledger: Ledger,
}

impl Seen {
    /// Why that is not all there was to see, if it is not.
    pub(super) fn unknown(&self) -> Option<String> {
        let Self { interface, ledger, .. } = self;
        let (lost, late) = (ledger.lost(), ledger.stamped_late);
        let whole = ledger.balances() && lost + late == 0;
        (!whole).then(|| format!("the witness at {interface} missed {lost} packets, {late} stamps"))
    }
}

/// Runs a capture of what leaves an interface until `stop` is requested.
///
/// # Errors
/// When the capture fails.
pub(super) fn watch(capture: Capture, clock: &ClockService, stop: &Stop) -> anyhow::Result<Seen> {
    let interface = capture.facts().interface.clone();
    let mut witness = Witness::default();
    let (ledger, outcome) = capture.run(clock, stop, &mut witness);
    outcome.with_context(|| format!("the witness at {interface} failed"))?;
    Ok(Seen { interface, departures: witness.departures, ledger })
}

#[derive(Default)]
struct Witness {
    departures: Departures,
}

impl Sink for Witness {
    fn packet(&mut self, packet: &Captured<'_>) -> Result<(), Error> {
        let number = number_of(packet.bytes).and_then(|number| usize::try_from(number).ok());
        // Numbers go up by one; those of a stranger must not take memory.
        if let Some(number) = number.filter(|number| *number < MOST_PACKETS) {
            if self.departures.len() <= number {
                self.departures.resize(number + 1, None);
            }
            self.departures[number] = Some(packet.stamp.utc);
        }
        Ok(())
    }
}

/// The number of a packet of the passive traffic.
fn number_of(frame: &[u8]) -> Option<u64> {
    let packet = Packet::parse(LinkType::Ethernet, frame).ok()?;
    let payload = Payload::decode(packet.payload()).ok()?;
    (payload.stream == PASSIVE).then_some(payload.sequence)
}

#[cfg(test)]
mod tests {
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
            payload.encode(&mut frame[62..]).unwrap();
            frame
        };
        assert_eq!(number_of(&frame(PASSIVE)), Some(7));
        assert_eq!(number_of(&frame(PASSIVE + 1)), None);
        assert_eq!(number_of(&frame(PASSIVE)[..70]), None);
        assert_eq!(number_of(b"no frame"), None);
    }
}
