//! Fragments of packets, joined as far as the identity of the packet needs it.

mod parts;
mod ranges;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};

use wirestamp_clock::{Time, Utc};

use self::parts::{Parts, Piece};
use super::recognised::Recognised;
use super::{IdentityKey, Packet};
use crate::FlowKey;

/// Max packets of which a part is missing. A further one replaces the oldest.
const INCOMPLETE_PACKETS: usize = 4096;

/// Max bytes that are kept of incomplete packets. With more, the oldest packets are dropped.
const KEPT_BYTES: usize = 32 << 20;

/// Fragments of one point.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    incomplete: HashMap<Whole, Parts>,
    /// The incomplete packets in the order of their first fragment, with their numbers; some may be complete by now.
    order: VecDeque<(Whole, u64)>,
    /// Number of the newest packet.
    number: u64,
    /// Bytes kept of all incomplete packets.
    kept: usize,
}

/// What all fragments of a packet have in common: flow without ports, and identification.
type Whole = (FlowKey, u32);

impl Reassembly {
    /// Adds a fragment that was captured at `time`. The packet is recognised with the fragment that completes it, in
    /// whatever order they arrive. Repeated and overlapping fragments count once. If their content differs, the packet
    /// has no identity (RFC 8200 section 4.5).
    ///
    /// As on a host, a fragment that is repeated after its packet was complete begins another packet. So a packet of which
    /// all fragments arrive twice is recognised twice: it is a duplicate.
    pub(super) fn add(
        &mut self,
        packet: &Packet<'_>,
        frame: u32,
        time: Time<Utc>,
        key: IdentityKey,
    ) -> Recognised {
        let Some(piece) = Piece::of(packet) else { return Recognised::Unidentified };
        let whole = (without_ports(packet.flow()), packet.fragment().identification);
        self.make_room();
        let continues = |parts: &Parts| parts.continues_with(&piece, time);
        if !self.incomplete.get(&whole).is_some_and(continues) {
            self.begin(whole, packet, time);
        }
        let Some(parts) = self.incomplete.get_mut(&whole) else { return Recognised::Incomplete };
        if parts.is_contradictory {
            return Recognised::Incomplete;
        }
        let kept = parts.bytes.len();
        if parts.contradicts(&piece) {
            parts.is_contradictory = true;
            parts.bytes = Vec::new();
            self.kept = self.kept.saturating_sub(kept);
            return Recognised::Unidentified;
        }
        if piece.range.start == 0 {
            parts.flow = packet.flow();
        }
        parts.add(&piece, frame);
        self.kept += parts.bytes.len() - kept;
        if !parts.is_complete() {
            return Recognised::Incomplete;
        }
        let (id, flow, length) = (parts.identity(key), parts.flow, parts.frames);
        self.remove(&whole);
        id.map_or(Recognised::Unidentified, |id| Recognised::As { id, flow, length })
    }

    /// Begins a packet. Parts of an earlier one with the same identification are dropped.
    fn begin(&mut self, whole: Whole, packet: &Packet<'_>, time: Time<Utc>) {
        self.remove(&whole);
        self.number += 1;
        self.order.push_back((whole, self.number));
        self.incomplete.insert(whole, Parts::of(packet, self.number, time));
    }

    fn make_room(&mut self) {
        while self.order.len() >= INCOMPLETE_PACKETS || self.kept > KEPT_BYTES {
            let Some((oldest, number)) = self.order.pop_front() else { return };
            if self.incomplete.get(&oldest).is_some_and(|parts| parts.number == number) {
                self.remove(&oldest);
            }
        }
    }

    fn remove(&mut self, whole: &Whole) {
        let removed = self.incomplete.remove(whole);
        self.kept = self.kept.saturating_sub(removed.map_or(0, |parts| parts.bytes.len()));
    }
}

fn without_ports(mut flow: FlowKey) -> FlowKey {
    flow.source.set_port(0);
    flow.destination.set_port(0);
    flow
}
