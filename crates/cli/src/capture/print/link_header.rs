//! The link-layer header of a frame as text (`-e`).

use std::fmt::Write as _;

use wirestamp_packet::LinkType;

/// EtherTypes of VLAN tags (IEEE 802.1Q, 802.1ad, and their predecessor).
const VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// The largest value that is a length in place of an EtherType (IEEE 802.3).
const MAX_LENGTH: u16 = 1500;
/// Max number of printed VLAN tags.
const MAX_TAGS: usize = 4;

/// The header of a frame, with the separator from what follows.
pub(super) fn of(link: LinkType, bytes: &[u8]) -> String {
    let header = match link {
        LinkType::Ethernet => ethernet(bytes),
        LinkType::LinuxCooked2 => linux_cooked_2(bytes),
        LinkType::LinuxCooked => linux_cooked(bytes),
        LinkType::Ip => return "no link-layer header, ".to_owned(),
        other => return format!("link type {other:?}, "),
    };
    header.unwrap_or_else(|| "link-layer header not captured completely".to_owned()) + ", "
}

/// `source > destination`, VLAN tags, protocol.
fn ethernet(bytes: &[u8]) -> Option<String> {
    let (destination, rest) = bytes.split_first_chunk::<6>()?;
    let (source, rest) = rest.split_first_chunk::<6>()?;
    let mut text = format!("{} > {}", address(source), address(destination));
    let (&[high, low], mut rest) = rest.split_first_chunk()?;
    let mut ether_type = u16::from_be_bytes([high, low]);
    for _ in 0..MAX_TAGS {
        if !VLAN.contains(&ether_type) {
            break;
        }
        let (&[tag_high, tag_low, high, low], after) = rest.split_first_chunk()?;
        // Priority, drop eligible indicator, and number (IEEE 802.1Q section 9.6).
        let tag = u16::from_be_bytes([tag_high, tag_low]);
        let _ = write!(text, " VLAN {} priority {}", tag & 0x0fff, tag >> 13);
        (ether_type, rest) = (u16::from_be_bytes([high, low]), after);
    }
    Some(text + " " + &protocol(ether_type))
}

/// Direction, number of the interface, address of the sender, protocol (LINKTYPE_LINUX_SLL2).
fn linux_cooked_2(bytes: &[u8]) -> Option<String> {
    let &[p0, p1, _, _, i0, i1, i2, i3, _, _, kind, length, ref address @ ..] =
        bytes.first_chunk::<20>()?;
    let interface = u32::from_be_bytes([i0, i1, i2, i3]);
    let protocol = protocol(u16::from_be_bytes([p0, p1]));
    Some(format!(
        "{} interface {interface}{} {protocol}",
        direction(kind.into()),
        sender(address, length.into())
    ))
}

/// Direction, address of the sender, protocol (LINKTYPE_LINUX_SLL).
fn linux_cooked(bytes: &[u8]) -> Option<String> {
    let &[k0, k1, _, _, l0, l1, a0, a1, a2, a3, a4, a5, a6, a7, p0, p1] =
        bytes.first_chunk::<16>()?;
    let direction = direction(u16::from_be_bytes([k0, k1]));
    let sender = sender(&[a0, a1, a2, a3, a4, a5, a6, a7], u16::from_be_bytes([l0, l1]).into());
    Some(format!("{direction}{sender} {}", protocol(u16::from_be_bytes([p0, p1]))))
}

/// The packet type of Linux (packet(7)), in the words of tcpdump.
fn direction(kind: u16) -> &'static str {
    match kind {
        0 => "In",
        1 => "B",
        2 => "M",
        3 => "P",
        4 => "Out",
        _ => "?",
    }
}

/// The address of the sender, if it has one.
fn sender(bytes: &[u8; 8], length: usize) -> String {
    match bytes.get(..length.min(bytes.len())) {
        Some(known) if !known.is_empty() => format!(" from {}", address(known)),
        _ => String::new(),
    }
}

fn address(bytes: &[u8]) -> String {
    let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(":")
}

/// Name and number of an EtherType (IANA "IEEE 802 Numbers"), or a length.
fn protocol(ether_type: u16) -> String {
    let name = match ether_type {
        0x0800 => "IPv4",
        0x0806 => "ARP",
        0x86dd => "IPv6",
        0x8847 => "MPLS",
        0x8863 => "PPPoE discovery",
        0x8864 => "PPPoE",
        0x888e => "802.1X",
        0x88cc => "LLDP",
        0x88f7 => "PTP",
        length if length <= MAX_LENGTH => return format!("802.3 length {length}"),
        other => return format!("ethertype {other:#06x}"),
    };
    format!("{name} ({ether_type:#06x})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ethernet_header_has_addresses_tags_and_protocol() {
        let ends = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0xfe];
        let text = |rest: &[u8]| of(LinkType::Ethernet, &[&ends[..], rest].concat());
        let pair = "02:00:00:00:00:fe > 02:00:00:00:00:01";
        assert_eq!(text(&[0x08, 0x00]), format!("{pair} IPv4 (0x0800), "));
        let tagged = text(&[0x88, 0xa8, 0x00, 0x07, 0x81, 0x00, 0xa0, 0x2a, 0x86, 0xdd]);
        let tags = "VLAN 7 priority 0 VLAN 42 priority 5";
        assert_eq!(tagged, format!("{pair} {tags} IPv6 (0x86dd), "));
        assert_eq!(text(&[0x00, 0x26]), format!("{pair} 802.3 length 38, "));
        assert_eq!(text(&[0x88, 0xb5]), format!("{pair} ethertype 0x88b5, "));
        for cut in [&[][..], &[0x08], &[0x81, 0, 0]] {
            assert_eq!(text(cut), "link-layer header not captured completely, ");
        }
    }

    #[test]
    fn cooked_header_has_direction_interface_and_sender() {
        let header = [8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 4, 6, 2, 0, 0, 0, 0, 9, 0, 0];
        let text = "Out interface 3 from 02:00:00:00:00:09 IPv4 (0x0800), ";
        assert_eq!(of(LinkType::LinuxCooked2, &header), text);
        let header = [0, 0, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 6];
        assert_eq!(of(LinkType::LinuxCooked, &header), "In ARP (0x0806), ");
        assert!(of(LinkType::LinuxCooked, &header[1..]).contains("not captured"));
        assert_eq!(of(LinkType::Ip, &[]), "no link-layer header, ");
    }
}
