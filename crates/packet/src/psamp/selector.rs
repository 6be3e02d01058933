//! Hash-based selection of packets at a point.

use super::{HashRange, PayloadWindow};
use crate::Packet;

/// Selects packets by their BOB hash (RFC 5475 section 6.2): points with equal selectors select the same packets.
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
///         None => println!("captured too short for a decision; count it"),
///     }
/// }
/// # Ok::<(), wirestamp_packet::psamp::RangeError>(())
/// ```
///
/// Packets with equal hashed fields are all selected or none is. How evenly the others are spread depends on the
/// differences in these fields. IPv6 packets carry no identification, so that their payload must differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashSelector {
    /// The hashed bytes above IP.
    pub window: PayloadWindow,
    /// The hash's init value; must be kept private, like the range (RFC 5475 section 6.2.4.1).
    pub initial: u32,
    /// The hash values that select a packet.
    pub range: HashRange,
}

impl HashSelector {
    /// True if the packet is selected; `None` if it [has no hash](Packet::bob). Count such packets, because another
    /// point may have captured enough to select them.
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

    /// Selected ones of packets that differ in a counter of two bytes.
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
    fn points_select_the_same_share_of_packets() {
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
    fn another_init_value_selects_other_packets() {
        assert_ne!(selected(false, 0.1, 7, |_| {}), selected(false, 0.1, 8, |_| {}));
    }
}
