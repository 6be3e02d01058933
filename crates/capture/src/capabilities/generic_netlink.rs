//! One question and its answer in generic netlink: netlink(7), and
//! `Documentation/userspace-api/netlink/intro.rst` in the kernel's source.

use std::fs::File;
use std::io::{self, Read, Write};

use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink, socket_with};

/// Bytes of a message's header: length, type, flags, sequence number, port.
const HEADER: usize = 16;
/// Bytes of the generic header after it: command, version, two reserved.
const GENERIC: usize = 4;
/// Bytes of an attribute's header: length, type. Attributes begin at multiples of four.
const ATTRIBUTE: usize = 4;
/// The type's bits that do not say how the attribute is encoded (`NLA_TYPE_MASK`, linux/netlink.h).
const TYPE_MASK: u16 = 0x3fff;
const REQUEST: u16 = 1; // NLM_F_REQUEST
const ERROR: u16 = 2; // NLMSG_ERROR
/// What netlink(7) and the kernel's documentation advise to receive into.
const LARGEST_ANSWER: usize = 8192;

/// The family that knows the numbers of the others, and its question (linux/genetlink.h).
mod control {
    pub(super) const FAMILY: u16 = 0x10;
    pub(super) const GET_FAMILY: u8 = 3;
    pub(super) const FAMILY_ID: u16 = 1;
    pub(super) const FAMILY_NAME: u16 = 2;
}

/// Asks `family` for what `command` gives for one attribute, in the calling thread's network
/// namespace.
pub(super) fn ask(family: &str, command: u8, kind: u16, value: &[u8]) -> io::Result<Answer> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket =
        socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, Some(netlink::GENERIC))?;
    let mut socket = File::from(socket);
    let name = [family.as_bytes(), &[0]].concat();
    let question = (control::GET_FAMILY, control::FAMILY_NAME);
    let number = exchange(&mut socket, control::FAMILY, question, &name)?
        .attribute(control::FAMILY_ID)
        .map(u16::from_ne_bytes)
        .ok_or(io::ErrorKind::InvalidData)?;
    exchange(&mut socket, number, (command, kind), value)
}

/// The kernel answers before it returns from the write.
fn exchange(
    socket: &mut File,
    family: u16,
    (command, kind): (u8, u16),
    value: &[u8],
) -> io::Result<Answer> {
    socket.write_all(&question(family, command, kind, value)?)?;
    let mut answer = vec![0; LARGEST_ANSWER];
    let length = socket.read(&mut answer)?;
    answer.truncate(length);
    Answer::parse(answer)
}

/// A message that asks `family`, with one attribute.
fn question(family: u16, command: u8, kind: u16, value: &[u8]) -> io::Result<Vec<u8>> {
    let attribute = ATTRIBUTE + value.len();
    let whole = HEADER + GENERIC + attribute.next_multiple_of(4);
    let (whole_length, attribute_length) = (u16::try_from(whole), u16::try_from(attribute));
    let too_long = |_| io::ErrorKind::InvalidInput;
    let mut message = Vec::with_capacity(whole);
    message.extend(u32::from(whole_length.map_err(too_long)?).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    message.extend([0; 8]); // one question at a time needs no number, and the kernel knows the port
    message.extend([command, 1, 0, 0]);
    message.extend(attribute_length.map_err(too_long)?.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(whole, 0);
    Ok(message)
}

/// A message with attributes.
#[derive(Debug)]
pub(super) struct Answer(Vec<u8>);

impl Answer {
    fn parse(message: Vec<u8>) -> io::Result<Self> {
        let kind = message.get(4..).and_then(<[u8]>::first_chunk).copied().map(u16::from_ne_bytes);
        match kind {
            Some(ERROR) => {
                let number = message.get(HEADER..).and_then(<[u8]>::first_chunk).copied();
                let number = number.map(i32::from_ne_bytes).and_then(i32::checked_neg);
                Err(number.map_or(io::ErrorKind::InvalidData.into(), io::Error::from_raw_os_error))
            }
            Some(_) => Ok(Self(message)),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The first bytes of the attribute of that type; none if it is absent or shorter.
    pub(super) fn attribute<const N: usize>(&self, kind: u16) -> Option<[u8; N]> {
        let mut rest = self.0.get(HEADER + GENERIC..)?;
        loop {
            let length = usize::from(u16::from_ne_bytes(*rest.first_chunk()?));
            let found = u16::from_ne_bytes(*rest.get(2..)?.first_chunk()?) & TYPE_MASK;
            if found == kind {
                return rest.get(ATTRIBUTE..length)?.first_chunk().copied();
            }
            rest = rest.get(length.max(ATTRIBUTE).next_multiple_of(4)..)?;
        }
    }
}

/// Looks in any bytes, taken for an answer, for an attribute.
#[cfg(any(test, fuzzing))]
pub(crate) fn read_any(message: &[u8], kind: u16) {
    if let Ok(answer) = Answer::parse(message.to_vec()) {
        let _ = answer.attribute::<8>(kind);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// An answer of several attributes.
    fn answer(attributes: &[(u16, &[u8])]) -> Answer {
        let mut message = vec![0; HEADER + GENERIC];
        message[4] = 0x20;
        for (kind, value) in attributes {
            message.extend(&question(0, 0, *kind, value).unwrap()[HEADER + GENERIC..]);
        }
        Answer::parse(message).unwrap()
    }

    #[test]
    fn an_attribute_is_found_behind_others_of_odd_length() {
        let found = answer(&[(7, b"odd"), (0x8003, &8_u64.to_ne_bytes()), (4, &[1])]);
        assert_eq!(found.attribute(3).map(u64::from_ne_bytes), Some(8));
        assert_eq!(found.attribute(4), Some([1]));
        assert_eq!((found.attribute::<2>(4), found.attribute::<1>(5)), (None, None));
    }

    #[test]
    fn a_refusal_is_the_error_that_it_names() {
        let mut message = vec![0; HEADER];
        message[4..6].copy_from_slice(&ERROR.to_ne_bytes());
        message.extend((-libc::ENOENT).to_ne_bytes());
        let error = Answer::parse(message).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn a_family_that_does_not_exist_is_an_error_and_the_one_of_all_families_answers() {
        let error = ask("no-such-family", 1, 1, &[]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let itself = ask("nlctrl", control::GET_FAMILY, control::FAMILY_NAME, b"nlctrl\0").unwrap();
        let number = itself.attribute(control::FAMILY_ID).map(u16::from_ne_bytes);
        assert_eq!(number, Some(control::FAMILY));
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic_or_run_for_ever(message: Vec<u8>, kind: u16) {
            read_any(&message, kind);
        }
    }
}
