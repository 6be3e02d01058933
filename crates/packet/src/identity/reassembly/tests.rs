//! Fragments in any order, repeated, contradictory, old and missing.

use proptest::prelude::*;

use super::*;
use crate::samples::Datagram;
use crate::{LinkType, MatchRule, PacketId};

/// The fragments of an IPv4 packet, with `bytes` above IP in each but the last.
fn fragments(packet: &[u8], bytes: usize) -> Vec<Vec<u8>> {
    let (header, body) = packet.split_at(20);
    let pieces = body.len().div_ceil(bytes);
    let fragment = |(index, piece): (usize, &[u8])| {
        let mut fragment = [header, piece].concat();
        let length = u16::try_from(fragment.len()).unwrap();
        let offset = u16::try_from(index * bytes / 8).unwrap();
        let more = u16::from(index + 1 < pieces) << 13;
        fragment[2..4].copy_from_slice(&length.to_be_bytes());
        fragment[6..8].copy_from_slice(&(offset | more).to_be_bytes());
        fragment
    };
    body.chunks(bytes).enumerate().map(fragment).collect()
}

fn recognise(reassembly: &mut Reassembly, packet: &[u8]) -> Recognised {
    recognise_at(0, reassembly, packet)
}

/// Recognises a packet that was captured after this time in milliseconds.
fn recognise_at(millis: i64, reassembly: &mut Reassembly, packet: &[u8]) -> Recognised {
    let length = u32::try_from(packet.len()).unwrap();
    let time = Time::from_nanos(millis * 1_000_000);
    let packet = Packet::parse(LinkType::Ip, packet).expect("an IP packet");
    MatchRule::Reassembled.recognise(&packet, length, time, reassembly, IdentityKey(1))
}

/// A packet with different bytes everywhere, and its fragments.
fn varied(first: u8, payload: u8) -> (Vec<u8>, Vec<Vec<u8>>) {
    let payload: Vec<u8> = (0..payload).map(|byte| byte.wrapping_add(first)).collect();
    let packet = Datagram::new(&payload).ipv4();
    let fragments = fragments(&packet, 64);
    (packet, fragments)
}

/// The identity of a packet that is no fragment.
fn id_of(packet: &[u8]) -> PacketId {
    id(recognise(&mut Reassembly::default(), packet)).expect("an identity")
}

fn id(recognised: Recognised) -> Option<PacketId> {
    match recognised {
        Recognised::As { id, .. } => Some(id),
        Recognised::Incomplete | Recognised::Unidentified => None,
    }
}

#[test]
fn fragments_have_the_identity_of_their_packet_in_any_order() {
    let packet = Datagram::new(&[7; 300]).ipv4();
    let Recognised::As { id: whole, flow: of_whole, .. } =
        recognise(&mut Reassembly::default(), &packet)
    else {
        panic!("no identity")
    };
    for bytes in [16, 64, 128, 200] {
        let mut fragments = fragments(&packet, bytes);
        for _ in 0..fragments.len() {
            fragments.rotate_left(1);
            let mut reassembly = Reassembly::default();
            let found: Vec<_> = fragments.iter().map(|it| recognise(&mut reassembly, it)).collect();
            let (last, others) = found.split_last().unwrap();
            assert!(others.iter().all(|it| *it == Recognised::Incomplete), "{found:?}");
            let Recognised::As { id, flow, .. } = *last else { panic!("{last:?}") };
            assert_eq!((id, flow), (whole, of_whole), "{bytes}");
        }
    }
}

#[test]
fn datagram_is_joined_in_any_order() {
    let payload: Vec<u8> = (0..250).collect();
    let whole = Datagram::new(&payload).ipv4();
    let flow = Packet::parse(LinkType::Ip, &whole).expect("an IP packet").flow();
    let mut fragments = fragments(&whole, 64);
    let join = |reassembly: &mut Reassembly, bytes: &[u8]| {
        let packet = Packet::parse(LinkType::Ip, bytes).expect("an IP packet");
        // As if each frame had ten more bytes.
        let frame = u32::from(packet.body_length().map_or(0, |it| u16::try_from(it).unwrap())) + 30;
        reassembly.join(&packet, frame, Time::from_nanos(0))
    };
    let expected = |captured: usize| JoinedDatagram {
        flow,
        payload: payload[..captured].to_vec(),
        payload_length: 250,
        fragments: 5,
        length: 258 + 5 * 30,
        first_length: 64 + 30,
    };
    for _ in 0..fragments.len() {
        fragments.rotate_left(1);
        let mut reassembly = Reassembly::default();
        let mut joined: Vec<_> = fragments.iter().map(|it| join(&mut reassembly, it)).collect();
        assert_eq!(joined.pop(), Some(Some(expected(250))));
        assert!(joined.iter().all(Option::is_none));
        assert_eq!((reassembly.incomplete.len(), reassembly.kept), (0, 0));
        assert_eq!(reassembly.not_joined(), 0);
    }
    // Of the second fragment, the capture has the first 30 bytes above IP.
    fragments[1].truncate(50);
    let mut reassembly = Reassembly::default();
    let joined = fragments.iter().filter_map(|it| join(&mut reassembly, it));
    assert_eq!(joined.collect::<Vec<_>>(), [expected(64 + 30 - 8)]);
    fragments.remove(1);
    assert!(fragments.iter().all(|it| join(&mut reassembly, it).is_none()));
    assert_eq!(reassembly.not_joined(), 1);
}

#[test]
fn packet_without_one_of_its_fragments_is_not_recognised() {
    let mut fragments = fragments(&Datagram::new(&[7; 300]).ipv4(), 64);
    fragments.remove(1);
    let mut reassembly = Reassembly::default();
    let found = fragments.iter().map(|it| recognise(&mut reassembly, it));
    assert!(found.into_iter().all(|it| it == Recognised::Incomplete));
}

#[test]
fn later_packets_replace_incomplete_ones() {
    let first = |identification: u32| {
        let mut fragment = fragments(&Datagram::new(&[7; 300]).ipv4(), 64).swap_remove(0);
        let identification = u16::try_from(identification).unwrap();
        fragment[4..6].copy_from_slice(&identification.to_be_bytes());
        fragment
    };
    let mut reassembly = Reassembly::default();
    (0..10_000).for_each(|n| _ = recognise(&mut reassembly, &first(n)));
    assert!(reassembly.incomplete.len() <= INCOMPLETE_PACKETS);
    assert!(reassembly.order.len() <= 2 * INCOMPLETE_PACKETS);
}

#[test]
fn complete_packets_replace_no_incomplete_one() {
    let with_number = |number: usize| {
        let mut fragments = fragments(&Datagram::new(&[7; 300]).ipv4(), 64);
        let number = u16::try_from(number).unwrap();
        fragments.iter_mut().for_each(|it| it[4..6].copy_from_slice(&number.to_be_bytes()));
        fragments
    };
    let mut reassembly = Reassembly::default();
    let late = with_number(0);
    let (last, others) = late.split_last().unwrap();
    others.iter().for_each(|it| _ = recognise(&mut reassembly, it));
    for number in 1..=3 * INCOMPLETE_PACKETS {
        let found: Vec<_> =
            with_number(number).iter().map(|it| recognise(&mut reassembly, it)).collect();
        assert!(matches!(found.last(), Some(Recognised::As { .. })));
        assert!(reassembly.order.len() <= 2 * INCOMPLETE_PACKETS);
    }
    assert!(matches!(recognise(&mut reassembly, last), Recognised::As { .. }));
}
#[test]
fn repeated_fragment_replaces_no_other() {
    let (packet, fragments) = varied(0, 150);
    let [first, middle, last] = &fragments[..] else { panic!("{}", fragments.len()) };
    let mut reassembly = Reassembly::default();
    for fragment in [first, first, last, first, last] {
        assert_eq!(recognise(&mut reassembly, fragment), Recognised::Incomplete);
    }
    let recognised = recognise(&mut reassembly, middle);
    let Recognised::As { id, length, .. } = recognised else { panic!("{recognised:?}") };
    let once: usize = fragments.iter().map(Vec::len).sum();
    assert_eq!((id, length as usize), (id_of(&packet), once));
    assert_eq!((reassembly.incomplete.len(), reassembly.kept), (0, 0));
}

#[test]
fn overlapping_fragments_count_once() {
    let (packet, pieces) = varied(0, 200);
    let other_pieces = fragments(&packet, 48);
    let mut reassembly = Reassembly::default();
    // Bytes 0 to 48, 64 to 128, 96 to 144, 128 to 192, 192 to the end: 48 to 64 are missing.
    for fragment in [&other_pieces[0], &pieces[1], &other_pieces[2], &pieces[2], &pieces[3]] {
        assert_eq!(recognise(&mut reassembly, fragment), Recognised::Incomplete);
    }
    assert_eq!(id(recognise(&mut reassembly, &other_pieces[1])), Some(id_of(&packet)));
}

#[test]
fn contradictory_fragments_have_no_identity() {
    let (_, pieces) = varied(0, 200);
    let mut other_content = pieces[1].clone();
    *other_content.last_mut().unwrap() ^= 1;
    let (_, shorter) = varied(0, 190);
    for contradictory in [&other_content, shorter.last().unwrap()] {
        let mut reassembly = Reassembly::default();
        let mut found = Vec::new();
        for fragment in [&pieces[0], &pieces[1], &pieces[3], contradictory, &pieces[2]] {
            found.push(recognise(&mut reassembly, fragment));
        }
        let unidentified = found.iter().filter(|it| **it == Recognised::Unidentified);
        assert_eq!(unidentified.count(), 1, "{found:?}");
        assert!(found.into_iter().all(|it| id(it).is_none()));
        assert_eq!(reassembly.kept, 0);
    }
}

#[test]
fn reused_identification_begins_another_packet() {
    let (_, lost) = varied(0, 200);
    let (packet, pieces) = varied(9, 200);
    for (seconds, expected) in [(0, None), (2, Some(id_of(&packet))), (61, Some(id_of(&packet)))] {
        let mut reassembly = Reassembly::default();
        _ = recognise(&mut reassembly, &lost[0]);
        let found = pieces.iter().map(|it| recognise_at(seconds * 1000, &mut reassembly, it));
        assert_eq!(found.fold(None, |before, it| id(it).or(before)), expected, "{seconds} s");
    }
}

#[test]
fn parts_older_than_the_reassembly_timeout_are_dropped() {
    let (packet, pieces) = varied(0, 200);
    for (seconds, is_complete) in [(59, true), (61, false), (-59, true), (-61, false)] {
        let mut reassembly = Reassembly::default();
        _ = recognise(&mut reassembly, &pieces[0]);
        let rest = &pieces[1..];
        let found = rest.iter().map(|it| recognise_at(seconds * 1000, &mut reassembly, it));
        let expected = is_complete.then(|| id_of(&packet));
        assert_eq!(found.fold(None, |before, it| id(it).or(before)), expected, "{seconds} s");
    }
}

#[test]
fn kept_bytes_are_bounded() {
    let payload = vec![7; 60_000];
    let mut reassembly = Reassembly::default();
    for identification in 0..1000_u16 {
        let datagram = Datagram { identification, ..Datagram::new(&payload) };
        _ = recognise(&mut reassembly, &fragments(&datagram.ipv4(), 59_992)[0]);
        assert!(reassembly.kept <= KEPT_BYTES + (1 << 17), "{}", reassembly.kept);
    }
    let kept: usize = reassembly.incomplete.values().map(|parts| parts.bytes.len()).sum();
    assert_eq!(reassembly.kept, kept);
}

proptest! {
    #[test]
    fn each_set_of_all_fragments_gives_the_packet_once(
        payload in 100u8..,
        size in prop::sample::select(vec![16usize, 24, 64, 96]),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
        lost in any::<Option<prop::sample::Index>>(),
    ) {
        let (packet, _) = varied(0, payload);
        let pieces = fragments(&packet, size);
        let lost = lost.map(|lost| lost.index(pieces.len()));
        let order = order.into_iter().map(|place| place.index(pieces.len())).chain(0..pieces.len());
        let mut reassembly = Reassembly::default();
        let mut arrived = vec![false; pieces.len()];
        let mut packets = 0;
        for place in order.filter(|place| Some(*place) != lost) {
            let found = recognise(&mut reassembly, &pieces[place]);
            arrived[place] = true;
            if arrived.iter().all(|it| *it) {
                prop_assert_eq!(id(found), Some(id_of(&packet)));
                arrived.fill(false);
                packets += 1;
            } else {
                prop_assert_eq!(found, Recognised::Incomplete);
            }
        }
        prop_assert_eq!(packets > 0, lost.is_none());
    }
}
