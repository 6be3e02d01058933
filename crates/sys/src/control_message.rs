//! Control messages, which the kernel passes with packets: cmsg(3), packet(7),
//! `Documentation/networking/timestamping.rst`.

/// The size of the word that control messages are aligned to, and that holds their length.
const WORD: usize = size_of::<usize>();
/// The header: the length of the whole, a level and a type.
const HEADER_BYTES: usize = (WORD + 2 * size_of::<libc::c_int>()).next_multiple_of(WORD);
/// Three timestamps (struct `scm_timestamping`): the kernel's, an obsolete one, the network card's.
const TIMESTAMPS_BYTES: usize = 3 * size_of::<libc::timespec>();
const SOFTWARE: usize = 0;
const HARDWARE: usize = 2;
/// Struct `tpacket_auxdata` (packet(7)).
const AUXDATA_BYTES: usize = size_of::<libc::tpacket_auxdata>();
/// An extended error and the longest address that may follow it (ip(7), `IP_RECVERR`).
const ERROR_BYTES: usize = size_of::<libc::sock_extended_err>() + size_of::<libc::sockaddr_in6>();

/// Room for the control messages of a received packet.
const PACKET_BYTES: usize = space(TIMESTAMPS_BYTES) + space(AUXDATA_BYTES);
/// Room for the control messages of a transmit timestamp.
pub const TRANSMIT_STAMP_BYTES: usize = space(ERROR_BYTES) + space(TIMESTAMPS_BYTES);

/// Room for a message with `bytes` of data (`CMSG_SPACE` of cmsg(3)).
const fn space(bytes: usize) -> usize {
    HEADER_BYTES + bytes.next_multiple_of(WORD)
}

/// One control message.
#[derive(Clone, Copy, Debug)]
pub struct ControlMessage<'a> {
    /// The protocol, such as `SOL_SOCKET`.
    pub level: libc::c_int,
    /// The type within the protocol, such as `SCM_TIMESTAMPING`.
    pub kind: libc::c_int,
    /// The content.
    pub data: &'a [u8],
}

/// The complete control messages at the start of `bytes`.
#[inline]
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = ControlMessage<'_>> {
    std::iter::from_fn(move || {
        let (message, rest) = split(bytes)?;
        bytes = rest;
        Some(message)
    })
}

/// The first message and the bytes after it; `None` if there is no complete message.
#[inline]
fn split(bytes: &[u8]) -> Option<(ControlMessage<'_>, &[u8])> {
    let number = |offset: usize| {
        Some(libc::c_int::from_ne_bytes(*bytes.get(WORD + offset..)?.first_chunk()?))
    };
    let length = usize::from_ne_bytes(*bytes.first_chunk()?);
    let data = bytes.get(HEADER_BYTES..length)?;
    let (level, kind) = (number(0)?, number(size_of::<libc::c_int>())?);
    // The last message may have no padding.
    let rest = bytes.get(length.next_multiple_of(WORD)..).unwrap_or_default();
    Some((ControlMessage { level, kind, data }, rest))
}

/// The two times of struct `scm_timestamping`, in nanoseconds since the epoch of their clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// The kernel's, of `CLOCK_REALTIME`.
    pub software: Option<i64>,
    /// The network card's, of its own clock.
    pub hardware: Option<i64>,
}

impl Timestamps {
    /// Reads the data of a message of type `SCM_TIMESTAMPING`.
    #[inline]
    #[must_use]
    pub fn read(data: &[u8]) -> Self {
        Self { software: time(data, SOFTWARE), hardware: time(data, HARDWARE) }
    }

    /// The first timestamps among control messages.
    #[must_use]
    pub fn find(control: &[u8]) -> Option<Self> {
        messages(control).find(ControlMessage::has_timestamps).map(|found| Self::read(found.data))
    }
}

impl ControlMessage<'_> {
    #[inline]
    fn has_timestamps(&self) -> bool {
        (self.level, self.kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING)
    }
}

/// The `nth` struct `timespec` in nanoseconds; `None` if it is 0, which means no timestamp.
#[inline]
fn time(data: &[u8], nth: usize) -> Option<i64> {
    let data = data.get(nth * size_of::<libc::timespec>()..)?;
    let number =
        |offset: usize| Some(libc::c_long::from_ne_bytes(*data.get(offset..)?.first_chunk()?));
    let seconds = number(0)?.checked_mul(1_000_000_000)?;
    seconds.checked_add(number(size_of::<libc::c_long>())?).filter(|&nanos| nanos != 0)
}

/// A VLAN tag that the kernel removed from a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VlanTag {
    /// The packet's status word; without `TP_STATUS_VLAN_VALID` there was no tag.
    pub status: u32,
    /// The tag control information.
    pub tci: u16,
    /// The tag's protocol; 0 if the kernel does not report it, which means 802.1Q.
    pub tpid: u16,
}

/// Tag protocol of 802.1Q (`ETH_P_8021Q` of linux/if_ether.h).
const TPID_8021Q: u16 = 0x8100;

impl VlanTag {
    /// Protocol and control information; none if there was no tag.
    #[must_use]
    #[inline]
    pub fn removed(self) -> Option<[u16; 2]> {
        let tpid = if self.tpid == 0 { TPID_8021Q } else { self.tpid };
        (self.status & libc::TP_STATUS_VLAN_VALID != 0).then_some([tpid, self.tci])
    }
}

/// Room for the control messages of one packet of a packet socket, aligned as the kernel requires.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub struct PacketControl([u8; PACKET_BYTES]);

/// Facts about a received packet from its control messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketFacts {
    /// The kernel's stamp on arrival, in nanoseconds of `CLOCK_REALTIME`; `None` if the packet
    /// arrived before the kernel enabled stamping.
    pub arrival: Option<u64>,
    /// The network card's stamp in nanoseconds of its clock.
    pub hardware: Option<u64>,
    /// Packet length in bytes before truncation.
    pub length: Option<u32>,
    /// The VLAN tag that the kernel removed from the packet.
    pub tag: VlanTag,
}

impl PacketControl {
    /// Room without messages.
    pub const EMPTY: Self = Self([0; PACKET_BYTES]);

    /// The room, for the kernel to write to.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.0
    }

    /// Reads the first `length` bytes, which the kernel wrote.
    #[inline]
    #[must_use]
    pub fn read(&self, length: usize) -> PacketFacts {
        let mut facts = PacketFacts::default();
        for message in messages(self.0.get(..length).unwrap_or(&self.0)) {
            match (message.level, message.kind) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                    let Timestamps { software, hardware } = Timestamps::read(message.data);
                    let positive = |nanos: i64| u64::try_from(nanos).ok();
                    facts.arrival = software.and_then(positive);
                    facts.hardware = hardware.and_then(positive);
                }
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => facts.read_auxdata(message.data),
                _ => {}
            }
        }
        facts
    }
}

impl PacketFacts {
    /// Struct `tpacket_auxdata` (linux/if_packet.h): status, length, captured length, two offsets
    /// of 16 bits, the tag's control information and protocol.
    #[inline]
    fn read_auxdata(&mut self, data: &[u8]) {
        let long = |offset: usize| Some(u32::from_ne_bytes(*data.get(offset..)?.first_chunk()?));
        let short = |offset: usize| Some(u16::from_ne_bytes(*data.get(offset..)?.first_chunk()?));
        self.length = long(4);
        if let (Some(status), Some(tci), Some(tpid)) = (long(0), short(16), short(18)) {
            self.tag = VlanTag { status, tci, tpid };
        }
    }
}

/// The kernel's report of a transmit timestamp, from the error queue of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitStamp {
    /// Number of the packet among those of its socket, from 0 on and modulo 2^32.
    pub packet: u32,
    /// The event: `SCM_TSTAMP_SND` or `SCM_TSTAMP_SCHED` (linux/errqueue.h).
    pub event: u32,
    /// When it happened.
    pub times: Timestamps,
}

impl TransmitStamp {
    /// Finds the report among control messages; `None` if no message is such a report.
    #[must_use]
    pub fn find(control: &[u8]) -> Option<Self> {
        const ORIGIN_TIMESTAMPING: u8 = 4; // SO_EE_ORIGIN_TIMESTAMPING of linux/errqueue.h
        let error = messages(control).find_map(|message| match (message.level, message.kind) {
            (libc::SOL_IP, libc::IP_RECVERR)
            | (libc::SOL_IPV6, libc::IPV6_RECVERR)
            | (libc::SOL_PACKET, libc::PACKET_TX_TIMESTAMP) => Some(message.data),
            _ => None,
        })?;
        // Struct `sock_extended_err`: error, origin, type, code, padding, the event, the number.
        let word = |offset: usize| Some(u32::from_ne_bytes(*error.get(offset..)?.first_chunk()?));
        let (origin, event, packet) = (*error.get(4)?, word(8)?, word(12)?);
        let times = Timestamps::find(control)?;
        (origin == ORIGIN_TIMESTAMPING).then_some(Self { packet, event, times })
    }
}

/// Reads any bytes as control messages, for tests and fuzzing.
#[cfg(any(test, fuzzing))]
pub fn read_any(bytes: &[u8]) {
    let mut control = PacketControl::EMPTY;
    control.0.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    let _ = control.read(bytes.len());
    let _ = TransmitStamp::find(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(level: libc::c_int, kind: libc::c_int, data: &[u8]) -> Vec<u8> {
        let mut message = (HEADER_BYTES + data.len()).to_ne_bytes().to_vec();
        message.extend(level.to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(data);
        message.resize(message.len().next_multiple_of(WORD), 0);
        message
    }

    fn control(bytes: &[u8]) -> PacketControl {
        let mut control = PacketControl::EMPTY;
        control.0[..bytes.len()].copy_from_slice(bytes);
        control
    }

    fn timestamps(software: [i64; 2], hardware: [i64; 2]) -> Vec<u8> {
        let times = [software, [0, 0], hardware].concat();
        let times: Vec<u8> = times.iter().flat_map(|number| number.to_ne_bytes()).collect();
        message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &times)
    }

    fn auxdata() -> Vec<u8> {
        let (status, offsets) = (libc::TP_STATUS_VLAN_VALID, 0);
        let data = [status, 1514, 60, offsets].map(u32::to_ne_bytes).concat();
        let tag = [0x2007, 0x88a8].map(u16::to_ne_bytes).concat();
        message(libc::SOL_PACKET, libc::PACKET_AUXDATA, &[data, tag].concat())
    }

    fn error(level: libc::c_int, kind: libc::c_int, event: u32, packet: u32) -> Vec<u8> {
        let error = [42, u32::from_ne_bytes([4, 0, 0, 0]), event, packet];
        message(level, kind, &error.map(u32::to_ne_bytes).concat())
    }

    #[test]
    fn arrival_length_and_tag_are_read_in_any_order() {
        let tag = VlanTag { status: libc::TP_STATUS_VLAN_VALID, tci: 0x2007, tpid: 0x88a8 };
        let arrival = Some(1_700_000_000_000_000_009);
        let facts = PacketFacts { arrival, hardware: Some(5_000_000_007), length: Some(1514), tag };
        let (times, auxdata) = (timestamps([1_700_000_000, 9], [5, 7]), auxdata());
        for bytes in [[&*times, &auxdata].concat(), [auxdata, times].concat()] {
            assert_eq!(bytes.len(), PACKET_BYTES);
            assert_eq!(control(&bytes).read(PACKET_BYTES), facts);
        }
    }

    #[test]
    fn packet_without_stamp_has_no_arrival() {
        let facts = control(&auxdata()).read(auxdata().len());
        assert_eq!((facts.arrival, facts.length), (None, Some(1514)));
        let without = control(&timestamps([0, 0], [0, 0])).read(PACKET_BYTES);
        assert_eq!(without, PacketFacts::default());
        let by_card = control(&timestamps([0, 0], [0, 1])).read(PACKET_BYTES);
        assert_eq!((by_card.arrival, by_card.hardware), (None, Some(1)));
        assert_eq!(control(&auxdata()).read(0), PacketFacts::default());
    }

    #[test]
    fn transmit_stamp_is_found_on_every_kind_of_socket() {
        let sockets = [
            (libc::SOL_IP, libc::IP_RECVERR),
            (libc::SOL_IPV6, libc::IPV6_RECVERR),
            (libc::SOL_PACKET, libc::PACKET_TX_TIMESTAMP),
        ];
        for (level, option) in sockets {
            let bytes = [timestamps([1, 5], [0, 0]), error(level, option, 1, 7)].concat();
            assert!(bytes.len() <= TRANSMIT_STAMP_BYTES);
            let times = Timestamps { software: Some(1_000_000_005), hardware: None };
            let stamp = TransmitStamp { packet: 7, event: 1, times };
            assert_eq!(TransmitStamp::find(&bytes), Some(stamp));
        }
    }

    #[test]
    fn messages_about_other_matters_have_no_transmit_stamp() {
        let error = error(libc::SOL_IP, libc::IP_RECVERR, 0, 7);
        assert_eq!(TransmitStamp::find(&error), None);
        assert_eq!(TransmitStamp::find(&timestamps([1, 0], [0, 0])), None);
        assert_eq!(TransmitStamp::find(&[]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(
            bytes: [u8; 32], first in 0_usize..200, length in 0_usize..200
        ) {
            let bytes = [&first.to_ne_bytes(), &bytes[..], &[0; PACKET_BYTES]].concat();
            read_any(&bytes[..length.min(bytes.len())]);
        }
    }
}
