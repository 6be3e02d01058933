//! Flows of one point.

use wirestamp_capture::CaptureLoss;
use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::flow::{FlowConfig, FlowMonitor, FlowPacket};
use wirestamp_packet::{Encapsulation, LinkType, Packet};

/// The flows of one point, and counts of frames without a flow.
#[derive(Clone, Debug)]
pub struct Flows {
    /// The flows.
    pub monitor: FlowMonitor,
    /// Frames without a flow: not IP, or cut too short.
    pub not_ip: u64,
    /// Packets with an earlier stamp than a packet before them.
    pub out_of_order: u64,
    /// Whether packets in tunnels belong to the flow inside.
    inner: bool,
    newest: Option<Time<Utc>>,
}

impl Flows {
    /// An empty table.
    #[must_use]
    pub fn new(config: FlowConfig) -> Self {
        Self {
            monitor: FlowMonitor::new(config),
            not_ip: 0,
            out_of_order: 0,
            inner: false,
            newest: None,
        }
    }

    /// With `inner`, packets in tunnels belong to the flow inside ([`Packet::innermost`]).
    #[must_use]
    pub fn inside_tunnels(self, inner: bool) -> Self {
        Self { inner, ..self }
    }

    /// Whether there was no frame yet.
    pub(super) fn is_empty(&self) -> bool {
        self.newest.is_none()
    }

    /// Records packets lost by the capture.
    pub fn missed(&mut self, missed: &CaptureLoss) {
        self.monitor.missed(*missed);
    }

    /// Takes the next frame, in the order of capture: its captured bytes, its length on the wire, and its stamp.
    pub fn observe(&mut self, link: LinkType, bytes: &[u8], length: u32, time: Time<Utc>) {
        self.out_of_order += u64::from(self.newest.is_some_and(|newest| time < newest));
        self.newest = self.newest.max(Some(time));
        match Packet::parse(link, bytes) {
            Ok(mut packet) => {
                if self.inner {
                    packet = packet.innermost();
                }
                packet.apply_frame_length(bytes.len(), length);
                let encapsulation = Encapsulation::of(link, bytes, self.inner);
                self.monitor.observe(&FlowPacket { packet: &packet, length, time, encapsulation });
            }
            Err(_) => self.not_ip += 1,
        }
    }
}
