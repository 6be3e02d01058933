//! What the kernel says of a packet beside it: control messages, cmsg(3).

use crate::vlan::Tag;

/// The size of the word that control messages are aligned to, and that holds their length.
const WORD: usize = size_of::<usize>();
/// The header: the length of the whole, a level and a type.
const HEADER_BYTES: usize = (WORD + 2 * size_of::<libc::c_int>()).next_multiple_of(WORD);
/// Three times: the kernel's, an obsolete one, the network card's (struct `scm_timestamping`,
/// `Documentation/networking/timestamping.rst`, 2.1).
const TIMESTAMPS_BYTES: usize = 3 * size_of::<libc::timespec>();
const KERNEL: usize = 0;
const CARD: usize = 2;
/// A struct `tpacket_auxdata` (packet(7)).
const AUXDATA_BYTES: usize = size_of::<libc::tpacket_auxdata>();

/// The room that the control messages we ask for take.
const BYTES: usize = space(TIMESTAMPS_BYTES) + space(AUXDATA_BYTES);

/// The room that a message with `bytes` of data takes, `CMSG_SPACE` of cmsg(3).
const fn space(bytes: usize) -> usize {
    HEADER_BYTES + bytes.next_multiple_of(WORD)
}

/// Room for one packet's control messages, aligned as the kernel wants it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(8))]
pub(super) struct Control([u8; BYTES]);

/// What the kernel said of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    /// When the packet entered the network stack, in nanoseconds of `CLOCK_REALTIME`; none if it
    /// did so before the kernel had begun to stamp.
    pub(super) arrival: Option<u64>,
    /// The network card's stamp in nanoseconds of its clock, if it was asked for and there is one.
    pub(super) by_card: Option<u64>,
    /// Bytes that the packet had before it was cut.
    pub(super) length: Option<u32>,
    /// The VLAN tag that was taken out of it.
    pub(super) tag: Tag,
}

impl Control {
    /// Room that nothing has been written to.
    pub(super) const EMPTY: Self = Self([0; BYTES]);

    /// The room, to be written to by the kernel.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.0
    }

    /// What the first `length` bytes say, which the kernel wrote.
    pub(super) fn read(&self, length: usize) -> Said {
        let mut said = Said::default();
        let mut rest = self.0.get(..length).unwrap_or(&self.0);
        while let Some((message, next)) = split(rest) {
            match (message.level, message.kind) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                    said.arrival = time(message.data, KERNEL);
                    said.by_card = time(message.data, CARD);
                }
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => said.auxdata(message.data),
                _ => {}
            }
            rest = next;
        }
        said
    }
}

impl Said {
    /// Fields of a struct `tpacket_auxdata` (linux/if_packet.h): status, length, captured length,
    /// two offsets of 16 bits, the tag's control information and protocol.
    fn auxdata(&mut self, data: &[u8]) {
        let long = |offset: usize| Some(u32::from_ne_bytes(*data.get(offset..)?.first_chunk()?));
        let short = |offset: usize| Some(u16::from_ne_bytes(*data.get(offset..)?.first_chunk()?));
        self.length = long(4);
        if let (Some(status), Some(tci), Some(tpid)) = (long(0), short(16), short(18)) {
            self.tag = Tag { status, tci, tpid };
        }
    }
}

struct Message<'a> {
    level: libc::c_int,
    kind: libc::c_int,
    data: &'a [u8],
}

/// The first message, and what follows it; none if there is no whole one.
fn split(bytes: &[u8]) -> Option<(Message<'_>, &[u8])> {
    let number = |offset: usize| {
        Some(libc::c_int::from_ne_bytes(*bytes.get(WORD + offset..)?.first_chunk()?))
    };
    let length = usize::from_ne_bytes(*bytes.first_chunk()?);
    let data = bytes.get(HEADER_BYTES..length)?;
    let message = Message { level: number(0)?, kind: number(size_of::<libc::c_int>())?, data };
    // The last one need not be padded.
    let next = bytes.get(length.next_multiple_of(WORD)..).unwrap_or_default();
    Some((message, next))
}

/// One of the times of a struct `scm_timestamping`, in nanoseconds; it is 0 where there is none.
fn time(data: &[u8], nth: usize) -> Option<u64> {
    let data = data.get(nth * size_of::<libc::timespec>()..)?;
    let number = |offset: usize| {
        let number = libc::c_long::from_ne_bytes(*data.get(offset..)?.first_chunk()?);
        u64::try_from(number).ok()
    };
    let seconds = number(0)?.checked_mul(1_000_000_000)?;
    seconds.checked_add(number(size_of::<libc::c_long>())?).filter(|&nanos| nanos > 0)
}

/// Reads any bytes as the kernel's messages.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(bytes: &[u8]) {
    let mut control = Control::EMPTY;
    control.0.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    control.read(bytes.len());
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

    fn control(bytes: &[u8]) -> Control {
        let mut control = Control::EMPTY;
        control.0[..bytes.len()].copy_from_slice(bytes);
        control
    }

    fn timestamps(kernel: [i64; 2], card: [i64; 2]) -> Vec<u8> {
        let times = [kernel, [0, 0], card].concat();
        let times: Vec<u8> = times.iter().flat_map(|number| number.to_ne_bytes()).collect();
        message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPING, &times)
    }

    fn auxdata() -> Vec<u8> {
        let (status, offsets) = (libc::TP_STATUS_VLAN_VALID, 0);
        let data = [status, 1514, 60, offsets].map(u32::to_ne_bytes).concat();
        let tag = [0x2007, 0x88a8].map(u16::to_ne_bytes).concat();
        message(libc::SOL_PACKET, libc::PACKET_AUXDATA, &[data, tag].concat())
    }

    #[test]
    fn arrival_length_and_tag_are_read_in_any_order() {
        let tag = Tag { status: libc::TP_STATUS_VLAN_VALID, tci: 0x2007, tpid: 0x88a8 };
        let arrival = Some(1_700_000_000_000_000_009);
        let said = Said { arrival, by_card: Some(5_000_000_007), length: Some(1514), tag };
        let (times, auxdata) = (timestamps([1_700_000_000, 9], [5, 7]), auxdata());
        for bytes in [[&*times, &auxdata].concat(), [auxdata, times].concat()] {
            assert_eq!(bytes.len(), BYTES);
            assert_eq!(control(&bytes).read(BYTES), said);
        }
    }

    #[test]
    fn a_packet_without_a_stamp_has_no_arrival() {
        let said = control(&auxdata()).read(auxdata().len());
        assert_eq!((said.arrival, said.length), (None, Some(1514)));
        assert_eq!(control(&timestamps([0, 0], [0, 0])).read(BYTES), Said::default());
        let by_card = control(&timestamps([0, 0], [0, 1])).read(BYTES);
        assert_eq!((by_card.arrival, by_card.by_card), (None, Some(1)));
        assert_eq!(control(&auxdata()).read(0), Said::default());
    }

    proptest! {
        #[test]
        fn no_bytes_lead_astray(bytes: [u8; 32], first in 0_usize..200, length in 0_usize..200) {
            let bytes = [&first.to_ne_bytes(), &bytes[..], &[0; BYTES]].concat();
            read_any(&bytes[..length.min(bytes.len())]);
        }
    }
}
