//! The measurement tasks that run on one capture, packet by packet.

use wirestamp_capture::{CapturedPacket, Error, Sink};
use wirestamp_clock::{ClockService, Domain, Timeline};
use wirestamp_metrics::{Distribution, InterArrival};
use wirestamp_packet::{LinkType, Packet};
use wirestamp_traffic::Payload;

use wirestamp_session::PointState;

/// Number of packets after which the clock's timeline is updated: some milliseconds at a high rate.
const REFRESH: u64 = 4096;

/// The report's tasks (section 2.5): volume alone, or with three more.
pub(super) struct Tasks<'a> {
    volume: Volume,
    more: Option<More<'a>>,
}

/// Task 1, "volume measurement".
#[derive(Default)]
struct Volume {
    packets: u64,
    bytes: u64,
}

/// Tasks 2 to 4.
struct More<'a> {
    clock: &'a ClockService,
    /// Timeline of the clock that senders read; updated after [`REFRESH`] packets.
    sent_by: Timeline,
    /// Passive one-way delay: the identity of each packet, as a correlator needs it.
    passive: PointState,
    identified: u64,
    /// Active one-way delay: the sender's time in the packet against its stamp.
    active: Distribution,
    /// "Traffic measurement": the times between packets.
    traffic: InterArrival,
}

impl<'a> Tasks<'a> {
    /// One task, or all four.
    pub(super) fn new(count: u8, clock: &'a ClockService) -> Self {
        let more = (count > 1).then(|| More {
            clock,
            sent_by: clock.timeline(Domain::Monotonic),
            passive: PointState::default(),
            identified: 0,
            active: Distribution::default(),
            traffic: InterArrival::default(),
        });
        Self { volume: Volume::default(), more }
    }

    /// Packets that every task has measured. All tasks except the first identify packets by their content.
    pub(super) fn measured(&self) -> u64 {
        let more = self.more.as_ref();
        more.map_or(self.volume.packets, |more| more.identified.min(more.active.count()))
    }
}

impl Sink for Tasks<'_> {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        self.volume.packets += 1;
        self.volume.bytes += u64::from(packet.length);
        if let Some(more) = &mut self.more {
            more.packet(packet);
        }
        Ok(())
    }
}

impl More<'_> {
    fn packet(&mut self, packet: &CapturedPacket<'_>) {
        let CapturedPacket { bytes, length, stamp, .. } = *packet;
        if self.identified.is_multiple_of(REFRESH) {
            self.sent_by = self.clock.timeline(Domain::Monotonic);
        }
        let identified = &mut self.identified;
        self.passive.take(LinkType::Ethernet, bytes, length, stamp, |_| *identified += 1);
        let payload = Packet::parse(LinkType::Ethernet, bytes).ok();
        let payload = payload.and_then(|packet| Payload::decode(packet.payload()));
        if let Some(sent) = payload.and_then(|payload| payload.sent_monotonic()) {
            let sent = self.sent_by.convert(sent.value);
            self.active.record(stamp.utc - sent.utc);
        }
        self.traffic.record(stamp);
    }
}
