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
    /// Datagrams that were joined.
    joined: u64,
}

/// A UDP datagram that was captured in fragments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedDatagram {
    /// Its flow.
    pub flow: FlowKey,
    /// Its payload, up to the first byte that was not captured.
    pub payload: Vec<u8>,
    /// Bytes of its payload on the wire.
    pub payload_length: usize,
    /// Number of its fragments, without repeated ones.
    pub fragments: u32,
    /// Bytes of the frames of these fragments on the wire.
    pub length: u32,
    /// Bytes of the frame of the first fragment on the wire.
    pub first_length: u32,
}

/// The packet of a fragment, with this fragment.
enum Collected {
    /// The fragment's length is unknown, or it contradicts an earlier one.
    Invalid,
    /// Another fragment is missing.
    Incomplete,
    Complete(Parts),
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
        match self.collect(packet, frame, time) {
            Collected::Invalid => Recognised::Unidentified,
            Collected::Incomplete => Recognised::Incomplete,
            Collected::Complete(parts) => {
                let (flow, length) = (parts.flow, parts.frames);
                let id = parts.identity(key);
                id.map_or(Recognised::Unidentified, |id| Recognised::As { id, flow, length })
            }
        }
    }

    /// Adds a fragment of a UDP datagram, in a frame of `frame` bytes that was captured at `time`. Returns the datagram with
    /// the fragment that completes it, unless the UDP header was not captured.
    pub fn join(
        &mut self,
        packet: &Packet<'_>,
        frame: u32,
        time: Time<Utc>,
    ) -> Option<JoinedDatagram> {
        let Collected::Complete(parts) = self.collect(packet, frame, time) else { return None };
        let (payload, payload_length) = parts.udp_payload()?;
        self.joined += 1;
        Some(JoinedDatagram {
            flow: parts.flow,
            payload: payload.to_vec(),
            payload_length,
            fragments: parts.fragments,
            length: parts.frames,
            first_length: parts.first_frame,
        })
    }

    /// Datagrams of which [`Self::join`] got a fragment and that it did not join so far.
    #[must_use]
    pub const fn not_joined(&self) -> u64 {
        self.number - self.joined
    }

    fn collect(&mut self, packet: &Packet<'_>, frame: u32, time: Time<Utc>) -> Collected {
        let Some(piece) = Piece::of(packet) else { return Collected::Invalid };
        let whole = (without_ports(packet.flow()), packet.fragment().identification);
        self.make_room();
        let continues = |parts: &Parts| parts.continues_with(&piece, time);
        if !self.incomplete.get(&whole).is_some_and(continues) {
            self.begin(whole, packet, time);
        }
        let Some(parts) = self.incomplete.get_mut(&whole) else { return Collected::Incomplete };
        if parts.is_contradictory {
            return Collected::Incomplete;
        }
        let kept = parts.bytes.len();
        if parts.contradicts(&piece) {
            parts.is_contradictory = true;
            parts.bytes = Vec::new();
            self.kept = self.kept.saturating_sub(kept);
            return Collected::Invalid;
        }
        if piece.range.start == 0 {
            parts.flow = packet.flow();
        }
        parts.add(&piece, frame);
        self.kept += parts.bytes.len() - kept;
        if !parts.is_complete() {
            return Collected::Incomplete;
        }
        self.remove(&whole).map_or(Collected::Incomplete, Collected::Complete)
    }

    /// Begins a packet. Parts of an earlier one with the same identification are dropped.
    fn begin(&mut self, whole: Whole, packet: &Packet<'_>, time: Time<Utc>) {
        self.remove(&whole);
        self.number += 1;
        self.order.push_back((whole, self.number));
        self.incomplete.insert(whole, Parts::of(packet, self.number, time));
    }

    fn make_room(&mut self) {
        let Self { incomplete, order, .. } = self;
        let is_incomplete =
            |(whole, number): &_| incomplete.get(whole).is_some_and(|it| it.number == *number);
        if order.len() >= 2 * INCOMPLETE_PACKETS {
            order.retain(is_incomplete);
        }
        while self.incomplete.len() >= INCOMPLETE_PACKETS || self.kept > KEPT_BYTES {
            let Some((oldest, number)) = self.order.pop_front() else { return };
            if self.incomplete.get(&oldest).is_some_and(|parts| parts.number == number) {
                self.remove(&oldest);
            }
        }
    }

    fn remove(&mut self, whole: &Whole) -> Option<Parts> {
        let removed = self.incomplete.remove(whole)?;
        self.kept = self.kept.saturating_sub(removed.bytes.len());
        Some(removed)
    }
}

fn without_ports(mut flow: FlowKey) -> FlowKey {
    flow.source.set_port(0);
    flow.destination.set_port(0);
    flow
}
