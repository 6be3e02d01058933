//! Shards: parts of the packets of a task, by flow.

use std::net::{IpAddr, SocketAddr};

use xxhash_rust::xxh3::xxh3_64;

use crate::FlowKey;

/// Bytes of an end of a flow: the address, and the port.
const END_BYTES: usize = 18;

/// One of several shards. Each packet belongs to exactly one of them: `flow.shard_hash() % count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shard {
    index: u16,
    count: u16,
}

impl Shard {
    /// Shard `index` of `count`; none if there is no such shard.
    #[must_use]
    pub fn new(index: u16, count: u16) -> Option<Self> {
        (index < count).then_some(Self { index, count })
    }

    /// Whether packets whose flow has this hash ([`FlowKey::shard_hash`]) belong to the shard.
    #[must_use]
    pub fn has(self, hash: u64) -> bool {
        hash % u64::from(self.count) == u64::from(self.index)
    }
}

impl FlowKey {
    /// Hash of the flow, equal for both directions. It never changes, because all probes of a task use it.
    ///
    /// XXH3 (64 bits, no seed) over 37 bytes: the lower end, the higher end, and the protocol. An end is its address (16
    /// bytes; IPv4 as IPv4-mapped address, RFC 4291 section 2.5.5.2) and its port (2 bytes, big-endian). Ends are
    /// ordered by these bytes.
    #[must_use]
    pub fn shard_hash(&self) -> u64 {
        let mut ends = [self.source, self.destination].map(end);
        ends.sort_unstable();
        let mut input = [0; 2 * END_BYTES + 1];
        let (first, rest) = input.split_at_mut(END_BYTES);
        first.copy_from_slice(&ends[0]);
        rest[..END_BYTES].copy_from_slice(&ends[1]);
        rest[END_BYTES] = self.protocol;
        xxh3_64(&input)
    }
}

fn end(end: SocketAddr) -> [u8; END_BYTES] {
    let address = match end.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let mut bytes = [0; END_BYTES];
    bytes[..16].copy_from_slice(&address.octets());
    bytes[16..].copy_from_slice(&end.port().to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::samples::Datagram;
    use crate::{LinkType, Packet};

    fn flow(source: &str, destination: &str, protocol: u8) -> FlowKey {
        let parse = |text: &str| text.parse().expect("a socket address");
        FlowKey { source: parse(source), destination: parse(destination), protocol }
    }

    /// The bytes of the documentation, hashed by the reference implementation (xxHash in C, from Python).
    #[test]
    fn hash_never_changes() {
        let v4 = flow("192.0.2.1:5004", "198.51.100.7:40000", 17);
        let v6 = flow("[2001:db8::1]:443", "[2001:db8::2]:50000", 6);
        assert_eq!([v4, v6].map(|it| it.shard_hash()), [V4, V6]);
    }
    const V4: u64 = 2_919_443_626_228_663_487;
    const V6: u64 = 3_015_429_990_795_704_305;

    #[test]
    fn flows_are_spread_over_all_shards() {
        let mut counts = [0_u32; 64];
        for port in 1024..9216 {
            let flow = flow(&format!("10.0.0.1:{port}"), "10.0.0.2:443", 6);
            let hash = flow.shard_hash();
            let of_it = (0..64).filter(|it| Shard::new(*it, 64).is_some_and(|it| it.has(hash)));
            of_it.for_each(|it| counts[usize::from(it)] += 1);
        }
        // 128 each; the standard deviation is 11.
        assert!(counts.iter().all(|it| (80..180).contains(it)), "{counts:?}");
    }

    #[test]
    fn index_is_below_the_count() {
        assert!(Shard::new(0, 0).is_none() && Shard::new(4, 4).is_none());
        assert!(Shard::new(0, 1).is_some_and(|it| it.has(u64::MAX)));
    }

    proptest! {
        #[test]
        fn each_packet_belongs_to_one_shard_in_both_directions(
            ends: ([u8; 16], [u8; 16]), ports: (u16, u16), protocol: u8, is_v4: bool,
            count in 1_u16..=64,
        ) {
            let address = |bytes: [u8; 16]| -> IpAddr {
                let [a, b, c, d, ..] = bytes;
                if is_v4 { [a, b, c, d].into() } else { bytes.into() }
            };
            let source = SocketAddr::new(address(ends.0), ports.0);
            let destination = SocketAddr::new(address(ends.1), ports.1);
            let there = FlowKey { source, destination, protocol };
            let back = FlowKey { source: destination, destination: source, protocol };
            let of = |flow: FlowKey| -> Vec<u16> {
                let is_its = |it: &u16| {
                    Shard::new(*it, count).is_some_and(|it| it.has(flow.shard_hash()))
                };
                (0..count).filter(is_its).collect()
            };
            prop_assert_eq!(of(there).len(), 1);
            prop_assert_eq!(of(there), of(back));
        }

        /// Packets with the same identity at two points are in the same shard: what routers change is in neither.
        #[test]
        fn same_packet_is_in_the_same_shard_at_all_points(
            payload in prop::collection::vec(any::<u8>(), 0..200),
            (mac, vlan, padding) in (any::<u8>(), any::<Option<u16>>(), 0usize..50),
            (ttl, dscp_ecn, flow_label) in (any::<u8>(), any::<u8>(), any::<u16>()),
        ) {
            let sent = Datagram::new(&payload);
            let received = Datagram { mac, vlan, padding, ttl, dscp_ecn, flow_label, ..sent.clone() };
            for (one, other) in [
                (sent.frame(&sent.ipv4()), received.frame(&received.ipv4())),
                (sent.frame(&sent.ipv6(17, &[])), received.frame(&received.ipv6(17, &[]))),
            ] {
                let hash = |frame: &[u8]| {
                    let packet = Packet::parse(LinkType::Ethernet, frame).expect("an IP packet");
                    packet.flow().shard_hash()
                };
                prop_assert_eq!(hash(&one), hash(&other));
            }
        }
    }
}
