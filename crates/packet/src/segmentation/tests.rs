//! Tests of segments that are divided.

use proptest::prelude::*;

use super::*;
use crate::samples::Datagram;
use crate::{IdentityKey, LinkType, PacketId};

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;

/// A segment in a packet of IPv4.
#[derive(Clone)]
struct Segment {
    identification: u16,
    sequence: u32,
    flags: u8,
    options: Vec<u8>,
    payload: Vec<u8>,
}

impl Segment {
    fn packet(&self) -> Vec<u8> {
        let offset = u8::try_from((HEADER + self.options.len()) / 4).unwrap() << 4;
        let numbers = [self.sequence, 7].map(u32::to_be_bytes);
        let rest = [offset, self.flags, 1, 0, 0, 0, 0, 0];
        let body =
            [&[0, 80, 1, 0][..], numbers.as_flattened(), &rest, &self.options, &self.payload]
                .concat();
        let identification = self.identification;
        let mut packet = Datagram { identification, ..Datagram::new(&body[8..]) }.ipv4();
        packet[9] = 6;
        packet[20..28].copy_from_slice(&body[..8]);
        packet
    }

    /// The segments that the network carries, made as the kernel makes them.
    fn on_wire(&self, size: usize) -> Vec<Self> {
        let count = self.payload.len().div_ceil(size);
        let part = |(number, payload): (usize, &[u8])| {
            let number = u16::try_from(number).unwrap();
            let is_last = usize::from(number) + 1 == count;
            Self {
                identification: self.identification.wrapping_add(number),
                sequence: self
                    .sequence
                    .wrapping_add(u32::from(number) * u32::try_from(size).unwrap()),
                flags: if is_last { self.flags } else { self.flags & !PSH },
                payload: payload.to_vec(),
                ..self.clone()
            }
        };
        self.payload.chunks(size).enumerate().map(part).collect()
    }
}

fn divide(segmentation: &mut Segmentation, packet: &[u8]) -> Vec<(Option<PacketId>, u32)> {
    let length = u32::try_from(packet.len()).unwrap() + 14;
    let packet = Packet::parse(LinkType::Ip, packet).expect("an IP packet");
    let mut parts = Vec::new();
    let mut add = |part: &Packet<'_>, length| {
        parts.push((part.identity(IdentityKey(1)), length));
    };
    if !segmentation.divide(&packet, length, &mut add) {
        add(&packet, length);
    }
    parts
}

fn syn(size: u16, flags: u8) -> Segment {
    let [high, low] = size.to_be_bytes();
    let options = vec![1, 1, 4, 2, 2, 4, high, low];
    Segment { identification: 0, sequence: 1, flags, options, payload: Vec::new() }
}

fn data(payload: usize) -> Segment {
    let payload = (0..payload).map(|place| u8::try_from(place % 251).unwrap()).collect();
    Segment {
        identification: 65_530,
        sequence: 1000,
        flags: ACK | PSH,
        options: vec![1; 12],
        payload,
    }
}

fn assert_divided(segmentation: &mut Segmentation, segment: &Segment, size: usize) {
    let parts = divide(segmentation, &segment.packet());
    let expected: Vec<_> = segment
        .on_wire(size)
        .iter()
        .flat_map(|part| divide(&mut Segmentation::default(), &part.packet()))
        .collect();
    assert_eq!(parts, expected);
    assert!(parts.iter().all(|(id, _)| id.is_some()));
}

/// Linux writes a length of 0 for segments above 65,535 bytes (BIG TCP).
#[test]
fn segment_above_64_kib_is_divided() {
    let segment = |flags, payload| Segment {
        identification: 7,
        sequence: 100,
        flags,
        options: Vec::new(),
        payload,
    };
    let whole = segment(ACK, vec![5; 1000]).packet();
    let mut big = whole[..40].to_vec();
    big.resize(40 + 80_000, 5);
    big[2..4].fill(0);
    let parse = |bytes: &'static [u8]| Packet::parse(LinkType::Ip, bytes).expect("an IP packet");
    let big: &'static [u8] = big.leak();
    let mut segmentation = Segmentation::default();
    assert_eq!(segmentation.packets(&parse(big)), 1, "its length is unknown");
    let lengths = |captured: usize| {
        let mut packet = parse(&big[..captured]);
        packet.apply_frame_length(captured, 80_040);
        let (mut lengths, mut next) = (Vec::new(), 100);
        Segmentation::default().divide(&packet, 80_040, |part, frame| {
            let segment = TcpSegment::of(part).expect("a segment");
            assert_eq!((segment.sequence, segment.length + 40), (next, frame));
            next += segment.length;
            lengths.push(frame);
        });
        lengths
    };
    let expected: Vec<_> = std::iter::repeat_n(1500, 54).chain([1160 + 40]).collect();
    assert_eq!(lengths(80_040), expected);
    assert_eq!(lengths(100), expected, "captured with a short snap length");
    let mut hostile = parse(big);
    hostile.apply_frame_length(80_040, u32::MAX);
    assert_eq!(segmentation.packets(&hostile), 1);
}

#[test]
fn parts_have_the_identities_of_the_packets_on_the_wire() {
    let mut segmentation = Segmentation::default();
    assert_divided(&mut segmentation, &data(20_000), 1448);
    assert_eq!((segmentation.divided, segmentation.parts), (1, 14));
    for (flags, stated) in [(SYN, 1300), (SYN | ACK, 1200)] {
        assert_eq!(divide(&mut segmentation, &syn(stated, flags).packet()).len(), 1);
        assert_divided(&mut segmentation, &data(30_000), usize::from(stated) - 12);
    }
}

/// The counter of a connection passes 0; packets without identification always have 0.
#[test]
fn identification_may_pass_zero() {
    let mut segmentation = Segmentation::default();
    let zero = Segment { identification: 0, ..data(20_000) };
    let ids =
        |parts: &[(Option<PacketId>, u32)]| -> Vec<_> { parts.iter().map(|(id, _)| *id).collect() };
    let without = divide(&mut segmentation, &zero.packet());
    assert_divided(&mut segmentation, &data(20_000), 1448);
    assert_divided(&mut segmentation, &zero, 1448);
    assert_ne!(ids(&without), ids(&divide(&mut segmentation, &zero.packet())));
    assert_eq!(segmentation.assumed, 4);
}

#[test]
fn packets_of_the_network_are_left_as_they_are() {
    let mut segmentation = Segmentation::default();
    divide(&mut segmentation, &syn(8960, SYN).packet());
    let udp = Datagram::new(&[7; 4000]).ipv4();
    for packet in [data(8948).packet(), data(0).packet(), udp] {
        assert_eq!(divide(&mut segmentation, &packet).len(), 1);
    }
    assert_eq!(segmentation.divided, 0);
}

#[test]
fn parts_that_were_not_captured_have_no_identity() {
    let parts = divide(&mut Segmentation::default(), &data(2896).packet()[..1000]);
    assert_eq!(parts.iter().map(|(id, _)| id.is_some()).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn the_oldest_connection_is_forgotten() {
    let mut segmentation = Segmentation::default();
    for port in 0..=u16::MAX {
        let mut packet = syn(1000, SYN).packet();
        packet[20..22].copy_from_slice(&port.to_be_bytes());
        divide(&mut segmentation, &packet);
    }
    let mut packet = syn(1000, SYN).packet();
    packet[12] += 1;
    divide(&mut segmentation, &packet);
    assert_eq!((segmentation.sizes.len(), segmentation.order.len()), (CONNECTIONS, CONNECTIONS));
}

proptest! {
    #[test]
    fn any_header_is_divided(
        options in prop::collection::vec(any::<u8>(), 0..40),
        flags in any::<u8>(),
        payload in 0..9000_usize,
        captured in any::<prop::sample::Index>(),
    ) {
        let options = options[..options.len() / 4 * 4].to_vec();
        let mut segmentation = Segmentation::default();
        for flags in [SYN, flags] {
            let segment = Segment { options: options.clone(), flags, ..data(payload) };
            let packet = segment.packet();
            let captured = 20 + captured.index(packet.len() - 19);
            let parts = divide(&mut segmentation, &packet[..captured]);
            prop_assert!(!parts.is_empty());
        }
    }
}
