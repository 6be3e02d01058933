//! Different packets have different identities.

use wirestamp_packet::{IdentityKey, LinkType, Packet, PacketId};

/// Packets of each kind: the test has 16 times as many pairs as one million packets in flight.
const PACKETS: u32 = 4_000_000;

/// An IPv4 UDP datagram of a typical sender: the identification counts up and wraps, and the payload has a sequence
/// number.
fn v4(number: u32) -> [u8; 40] {
    let mut packet = [0; 40];
    packet[..10].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 17]);
    packet[4..6].copy_from_slice(&number.to_be_bytes()[2..]);
    packet[12..20].copy_from_slice(&[10, 77, 1, 1, 10, 77, 2, 2]);
    packet[20..28].copy_from_slice(&[0x13, 0x88, 0x17, 0x70, 0, 20, 0, 0]);
    packet[28..32].copy_from_slice(&number.to_be_bytes());
    packet
}

/// The same in IPv6, which has no identification.
fn v6(number: u32) -> [u8; 60] {
    let mut packet = [0; 60];
    packet[..8].copy_from_slice(&[0x60, 0, 0, 0, 0, 20, 17, 64]);
    (packet[8], packet[23], packet[24], packet[39]) = (0xfd, 1, 0xfd, 2);
    packet[40..60].copy_from_slice(&v4(number)[20..]);
    packet
}

fn identity(bytes: &[u8]) -> PacketId {
    let packet = Packet::parse(LinkType::Ip, bytes).expect("an IP packet");
    packet.identity(IdentityKey::default()).expect("all of it")
}

/// Number of equal neighbours after sorting.
fn collisions(mut identities: Vec<PacketId>) -> usize {
    identities.sort_unstable();
    identities.array_windows().filter(|[one, next]| one == next).count()
}

#[test]
fn similar_packets_have_different_identities() {
    let identities = (0..PACKETS).flat_map(|number| [identity(&v4(number)), identity(&v6(number))]);
    // Expected of a random function: (8e6)^2 / 2^65, or 1.7e-6 pairs.
    assert_eq!(collisions(identities.collect()), 0);
}

#[test]
fn half_identities_collide_like_random_numbers() {
    // Collisions of all 64 bits are too rare to observe, so 32 bits are compared. For n = 200,000 the expected number
    // is n^2 / 2^33 = 4.66 pairs, Poisson distributed; more than 20 occur once in 10^8 runs.
    for shift in [0, 32] {
        let half = |number| PacketId((identity(&v4(number)).0 >> shift) & 0xffff_ffff);
        let pairs = collisions((0..200_000).map(half).collect());
        assert!((1..=20).contains(&pairs), "{pairs} pairs");
    }
}
