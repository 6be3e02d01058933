//! The header of packets of all interfaces at once (`any`), with the interface and the kind of each packet.

/// Length of the header.
pub(super) const BYTES: usize = 20;

/// `LINKTYPE_LINUX_SLL2` of the link types of capture files (<https://www.tcpdump.org/linktypes.html>): protocol, two bytes of
/// zero, interface, hardware type, packet type, length of the address, address. Numbers are in network byte order.
///
/// As by tcpdump, a VLAN tag that the kernel removed is not part of it: the packet is also captured at the VLAN's interface.
pub(super) fn header(from: &libc::sockaddr_ll) -> [u8; BYTES] {
    // The kernel stores it in network byte order.
    let [a, b] = from.sll_protocol.to_ne_bytes();
    let [i, j, k, l] = from.sll_ifindex.to_be_bytes();
    let [m, n] = from.sll_hatype.to_be_bytes();
    // The kernel writes only the bytes of the address, and leaves the others as they were.
    let mut address = from.sll_addr;
    address.iter_mut().skip(from.sll_halen.into()).for_each(|byte| *byte = 0);
    let [o, p, q, r, s, t, u, v] = address;
    let (kind, length) = (from.sll_pkttype, from.sll_halen);
    [a, b, 0, 0, i, j, k, l, m, n, kind, length, o, p, q, r, s, t, u, v]
}

#[cfg(test)]
mod tests {
    use wirestamp_packet::{LinkType, Packet};

    use super::*;

    #[test]
    fn packet_is_found_behind_the_header() {
        let from = libc::sockaddr_ll {
            sll_family: 17,
            sll_protocol: 0x0800_u16.to_be(),
            sll_ifindex: 7,
            sll_hatype: 1,
            sll_pkttype: 4,
            sll_halen: 6,
            sll_addr: [1, 2, 3, 4, 5, 6, 7, 8],
        };
        let header = header(&from);
        let expected = [8, 0, 0, 0, 0, 0, 0, 7, 0, 1, 4, 6, 1, 2, 3, 4, 5, 6, 0, 0];
        assert_eq!(header, expected);
        let ip = [0x45, 0, 0, 28, 0, 1, 0x40, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        let frame = [&header[..], &ip, &[0, 9, 0, 10, 0, 8, 0, 0]].concat();
        let parsed = Packet::parse(LinkType::LinuxCooked2, &frame).unwrap();
        assert!(parsed.payload().is_empty());
    }
}
