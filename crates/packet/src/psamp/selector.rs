//! Which packets a point looks at, where it does not look at all.

use super::{HashRange, PayloadWindow};
use crate::Packet;

/// Chooses packets by their BOB hash (RFC 5475 section 6.2): points with equal selectors choose the
/// same packets.
///
/// ```
/// use wirestamp_packet::psamp::{HashRange, HashSelector, PayloadWindow};
/// use wirestamp_packet::{LinkType, Packet};
///
/// let selector = HashSelector {
///     window: PayloadWindow::default(),
///     initial: 0x5eed,
///     range: HashRange::share(0.1)?,
/// };
/// # let frame = [0u8; 60];
/// if let Ok(packet) = Packet::parse(LinkType::Ethernet, &frame) {
///     match selector.selects(&packet) {
///         Some(true) => println!("one packet in ten: {}", packet.flow()),
///         Some(false) => {}
///         None => println!("captured too short to say, to be counted"),
///     }
/// }
/// # Ok::<(), wirestamp_packet::psamp::RangeError>(())
/// ```
///
/// Packets that are equal in all that is hashed share their fate, and how evenly the others are
/// spread depends on how much they differ there: among IPv6 packets, which carry no
/// identification, the payload has to bring the difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashSelector {
    /// The bytes above IP that take part.
    pub window: PayloadWindow,
    /// The hash's init value; to be kept private, as the range is (RFC 5475 section 6.2.4.1).
    pub initial: u32,
    /// The hash values that select a packet.
    pub range: HashRange,
}

impl HashSelector {
    /// Whether the packet is selected; `None` where it [has no hash](Packet::bob), which is to be
    /// counted, since another point may have captured enough to select it.
    #[must_use]
    pub fn selects(&self, packet: &Packet<'_>) -> Option<bool> {
        packet.bob(self.window, self.initial).map(|hash| self.range.contains(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LinkType;
    use crate::samples::Datagram;

    const PACKETS: u16 = 20_000;

    /// What a selector says of packets that differ in a counter of two bytes.
    fn selected(v6: bool, share: f64, initial: u32, change: impl Fn(&mut Datagram)) -> Vec<u16> {
        let range = HashRange::share(share).expect("a share");
        let selector = HashSelector { window: PayloadWindow::default(), initial, range };
        let chosen = |number: &u16| {
            let mut datagram = Datagram::new(&number.to_be_bytes());
            change(&mut datagram);
            let packet = if v6 { datagram.ipv6(17, &[]) } else { datagram.ipv4() };
            let packet = Packet::parse(LinkType::Ip, &packet).expect("an IP packet");
            selector.selects(&packet).expect("a hash")
        };
        (0..PACKETS).filter(chosen).collect()
    }

    #[test]
    fn two_points_choose_the_same_packets_and_about_as_many_as_asked() {
        for v6 in [false, true] {
            for share in [0.01, 0.1, 0.5] {
                let before = selected(v6, share, 7, |_| {});
                let after = selected(v6, share, 7, |datagram| {
                    (datagram.ttl, datagram.dscp_ecn) = (3, 0xb8);
                    (datagram.header_checksum, datagram.transport_checksum) = (1, 2);
                });
                assert_eq!(before, after);
                let expected = f64::from(PACKETS) * share;
                // Five standard deviations of a binomial distribution.
                let room = 5.0 * (expected * (1.0 - share)).sqrt();
                let count = f64::from(u16::try_from(before.len()).expect("at most all"));
                assert!((count - expected).abs() < room, "{count} of {expected} ± {room}");
            }
        }
    }

    #[test]
    fn another_init_value_chooses_other_packets() {
        assert_ne!(selected(false, 0.1, 7, |_| {}), selected(false, 0.1, 8, |_| {}));
    }
}
