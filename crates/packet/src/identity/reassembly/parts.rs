//! The parts of a fragmented packet.

use std::ops::Range;

use etherparse::{UdpSlice, ip_number};
use wirestamp_clock::{Span, Time, Utc};

use super::ranges::Ranges;
use crate::identity::{IDENTITY_BYTES, IdentifyingHeader, IdentityKey, PacketId};
use crate::internet::Fragment;
use crate::{FlowKey, Packet};

/// Max time between the first fragment of a packet and the others: the reassembly timeout of a host (RFC 8200 section
/// 4.5; RFC 791 section 3.2 proposes a shorter one).
const REASSEMBLY_TIMEOUT: Span = Span::from_secs(60);

/// Fragments that contradict each other belong to one packet if they are at most this far apart: it has no identity then.
/// Otherwise they belong to two packets with the same identification: a busy sender uses the 65,536 values of IPv4 again
/// within seconds.
const CONTRADICTION_TIME: Span = Span::from_secs(1);

/// Bytes of the UDP header.
const UDP_HEADER: usize = 8;

/// A fragment.
pub(super) struct Piece<'a> {
    /// Its bytes above IP, as positions in the packet.
    pub(super) range: Range<usize>,
    /// Those that were captured.
    captured: &'a [u8],
    is_last: bool,
}

/// The parts of a packet that were observed.
#[derive(Clone, Debug)]
pub(super) struct Parts {
    pub(super) number: u64,
    /// Time of the fragment that was observed first.
    begin: Time<Utc>,
    /// The flow, with the ports of the first fragment.
    pub(super) flow: FlowKey,
    /// That of the packet without fragmentation: IPv6 has none then.
    identification: u32,
    /// Bytes above IP that were observed.
    observed: Ranges,
    /// Bytes above IP that were captured, and their positions: between them are zeros.
    pub(super) bytes: Vec<u8>,
    captured: Ranges,
    /// Bytes above IP of the whole packet, from the last fragment.
    length: Option<usize>,
    /// Frames of all fragments without repeated ones, in bytes.
    pub(super) frames: u32,
    /// Number of these fragments.
    pub(super) fragments: u32,
    /// Frame of the first fragment, in bytes.
    pub(super) first_frame: u32,
    /// The fragments contradict each other: the packet has no identity.
    pub(super) is_contradictory: bool,
}

impl<'a> Piece<'a> {
    /// None if the length of the fragment is unknown.
    pub(super) fn of(packet: &Packet<'a>) -> Option<Self> {
        let (fragment, body, length) = (packet.fragment(), packet.body(), packet.body_length()?);
        let start = usize::from(fragment.offset) * 8;
        let captured = body.get(..length).unwrap_or(body);
        Some(Self { range: start..start + length, captured, is_last: !fragment.more })
    }

    /// Positions of the captured bytes in the packet.
    fn captured_range(&self) -> Range<usize> {
        self.range.start..self.range.start + self.captured.len()
    }
}

impl Parts {
    pub(super) fn of(packet: &Packet<'_>, number: u64, begin: Time<Utc>) -> Self {
        let flow = packet.flow();
        let is_v4 = flow.source.is_ipv4();
        Self {
            number,
            begin,
            flow,
            identification: if is_v4 { packet.fragment().identification } else { 0 },
            observed: Ranges::default(),
            bytes: Vec::new(),
            captured: Ranges::default(),
            length: None,
            frames: 0,
            fragments: 0,
            first_frame: 0,
            is_contradictory: false,
        }
    }

    /// Whether a fragment with the same identification belongs to this packet.
    pub(super) fn continues_with(&self, piece: &Piece<'_>, time: Time<Utc>) -> bool {
        // The packets of a capture may be out of order.
        let age = (time - self.begin).abs();
        let is_contradictory = || self.is_contradictory || self.contradicts(piece);
        age <= CONTRADICTION_TIME || age <= REASSEMBLY_TIMEOUT && !is_contradictory()
    }

    /// Whether captured bytes or the length of the packet differ from those of earlier fragments.
    pub(super) fn contradicts(&self, piece: &Piece<'_>) -> bool {
        let end = piece.range.end;
        let is_other_length = match self.length {
            Some(length) => end > length || piece.is_last && end != length,
            None => piece.is_last && end < self.observed.end(),
        };
        let differ = |common: Range<usize>| {
            let start = piece.range.start;
            let new = piece.captured.get(common.start - start..common.end - start);
            self.bytes.get(common) != new
        };
        is_other_length || self.captured.common(piece.captured_range()).any(differ)
    }

    pub(super) fn add(&mut self, piece: &Piece<'_>, frame: u32) {
        if piece.is_last {
            self.length = Some(piece.range.end);
        }
        let captured = piece.captured_range();
        if self.bytes.len() < captured.end && !captured.is_empty() {
            self.bytes.resize(captured.end, 0);
        }
        if let Some(into) = self.bytes.get_mut(captured.clone()) {
            into.copy_from_slice(piece.captured);
        }
        self.captured.insert(captured);
        if self.observed.insert(piece.range.clone()) {
            self.frames = self.frames.saturating_add(frame);
            self.fragments += 1;
            if piece.range.start == 0 {
                self.first_frame = frame;
            }
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.length.is_some_and(|length| self.observed.covers(&(0..length)))
    }

    /// Payload of the complete packet, if it is UDP: the bytes up to the first that was not captured, and the length on the
    /// wire. UDP has its own length field, and bytes after its end are not payload.
    pub(super) fn udp_payload(&self) -> Option<(&[u8], usize)> {
        let length = self.length.filter(|_| self.flow.protocol == ip_number::UDP.0)?;
        let captured = self.bytes.get(..self.captured.leading().min(length))?;
        let udp = UdpSlice::from_slice_lax(captured).ok()?;
        let stated = Some(usize::from(udp.length())).filter(|stated| *stated != 0);
        let on_wire = stated.map_or(length, |stated| stated.min(length)).checked_sub(UDP_HEADER)?;
        Some((udp.payload(), on_wire))
    }

    /// The identity that the complete packet has without fragmentation. None if too few of its first bytes were captured.
    pub(super) fn identity(&self, key: IdentityKey) -> Option<PacketId> {
        let length = self.length?;
        let window = 0..length.min(IDENTITY_BYTES);
        let first = self.bytes.get(window.clone()).filter(|_| self.captured.covers(&window))?;
        let fragment = Fragment { identification: self.identification, ..Fragment::default() };
        let header = IdentifyingHeader { flow: self.flow, fragment, length: Some(length) };
        Some(header.identity(first, key))
    }
}
