//! Netlink: one request and its answer (netlink(7)), and generic netlink
//! (`Documentation/userspace-api/netlink/intro.rst` in the kernel's source).

use std::io;

use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NetlinkSerializable, Nla, NlasIterator, Parseable,
};
use netlink_sys::protocols::NETLINK_GENERIC;
use netlink_sys::{Socket, SocketAddr};

/// Opens a netlink socket in the calling thread's network namespace.
///
/// # Errors
/// Those of socket(2) and bind(2).
pub fn open(protocol: isize) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    Ok(socket)
}

/// Sends a request to the kernel, and returns its answer.
///
/// # Errors
/// The error that the kernel answers with.
pub fn ask<M>(protocol: isize, request: M) -> io::Result<M>
where
    M: NetlinkSerializable + NetlinkDeserializable,
    NetlinkPayload<M>: From<M>,
{
    let socket = open(protocol)?;
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let mut message = NetlinkMessage::new(header, NetlinkPayload::from(request));
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    socket.send_to(&bytes, &SocketAddr::new(0, 0), 0)?;
    let (bytes, _) = socket.recv_from_full()?;
    // The kernel answers one request with one message, and no other program has this socket.
    match messages(&bytes)?.into_iter().next() {
        Some(NetlinkPayload::InnerMessage(answer)) => Ok(answer),
        Some(NetlinkPayload::Error(error)) => Err(error.to_io()),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The messages of one datagram.
///
/// # Errors
/// A message is truncated, or is not a valid `M`.
pub fn messages<M: NetlinkDeserializable>(mut bytes: &[u8]) -> io::Result<Vec<NetlinkPayload<M>>> {
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let message = NetlinkMessage::deserialize(bytes).map_err(io::Error::other)?;
        // Each begins on a multiple of four bytes (NLMSG_ALIGN, netlink(3)), and is never empty.
        let length = usize::try_from(message.header.length).map_err(io::Error::other)?;
        bytes = bytes.get(length.next_multiple_of(4).max(4)..).unwrap_or_default();
        messages.push(message.payload);
    }
    Ok(messages)
}

/// Bytes of the generic header: command, version, two reserved.
const GENERIC_HEADER: usize = 4;

/// The type's bits that do not describe the attribute's encoding (`NLA_TYPE_MASK`, linux/netlink.h).
const TYPE_MASK: u16 = 0x3fff;

/// The family that resolves the names of the others (linux/genetlink.h).
mod control {
    pub(super) const FAMILY: u16 = 0x10;
    pub(super) const GET_FAMILY: u8 = 3;
    pub(super) const FAMILY_ID: u16 = 1;
    pub(super) const FAMILY_NAME: u16 = 2;
}

/// A message of generic netlink.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generic {
    family: u16,
    command: u8,
    attributes: Vec<DefaultNla>,
}

impl Generic {
    /// Sends a request with one attribute to the family of this name, and returns the answer.
    ///
    /// # Errors
    /// `ENOENT` where the kernel has no such family, and the errors of the family.
    pub fn ask(family: &str, command: u8, kind: u16, value: &[u8]) -> io::Result<Self> {
        let name = [family.as_bytes(), &[0]].concat();
        let resolve = Self::new(control::FAMILY, control::GET_FAMILY, control::FAMILY_NAME, &name);
        let number = ask(NETLINK_GENERIC, resolve)?
            .attribute(control::FAMILY_ID)
            .map(u16::from_ne_bytes)
            .ok_or(io::ErrorKind::InvalidData)?;
        ask(NETLINK_GENERIC, Self::new(number, command, kind, value))
    }

    fn new(family: u16, command: u8, kind: u16, value: &[u8]) -> Self {
        Self { family, command, attributes: vec![DefaultNla::new(kind, value.to_vec())] }
    }

    /// The first bytes of the attribute of this type; none if it is absent or shorter.
    #[must_use]
    pub fn attribute<const N: usize>(&self, kind: u16) -> Option<[u8; N]> {
        let found = self.attributes.iter().find(|found| found.kind() & TYPE_MASK == kind)?;
        let mut value = vec![0; found.value_len()];
        found.emit_value(&mut value);
        value.first_chunk().copied()
    }
}

impl NetlinkSerializable for Generic {
    fn message_type(&self) -> u16 {
        self.family
    }

    fn buffer_len(&self) -> usize {
        GENERIC_HEADER + self.attributes.as_slice().buffer_len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        let (header, attributes) = buffer.split_at_mut(GENERIC_HEADER);
        header.copy_from_slice(&[self.command, 1, 0, 0]);
        self.attributes.as_slice().emit(attributes);
    }
}

impl NetlinkDeserializable for Generic {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        let (generic, attributes) = payload
            .split_at_checked(GENERIC_HEADER)
            .ok_or_else(|| DecodeError::buffer_too_small(payload.len(), GENERIC_HEADER))?;
        let attributes = NlasIterator::new(attributes).map(|found| DefaultNla::parse(&found?));
        let attributes = attributes.collect::<Result<_, _>>()?;
        Ok(Self { family: header.message_type, command: generic[0], attributes })
    }
}

impl From<Generic> for NetlinkPayload<Generic> {
    fn from(message: Generic) -> Self {
        Self::InnerMessage(message)
    }
}

/// Reads any bytes as an answer of generic netlink, for tests and fuzzing.
#[cfg(any(test, fuzzing))]
pub fn read_any(bytes: &[u8], kind: u16) {
    for message in messages::<Generic>(bytes).into_iter().flatten() {
        if let NetlinkPayload::InnerMessage(answer) = message {
            let _ = answer.attribute::<8>(kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn attribute_is_found_behind_others_of_odd_length() {
        let attributes: Vec<u8> = [
            Generic::new(0, 0, 7, b"odd"),
            Generic::new(0, 0, 0x8003, &8_u64.to_ne_bytes()),
            Generic::new(0, 0, 4, &[1]),
        ]
        .iter()
        .flat_map(|message| {
            let mut bytes = vec![0; message.buffer_len()];
            message.serialize(&mut bytes);
            bytes.split_off(GENERIC_HEADER)
        })
        .collect();
        let payload = [vec![0; GENERIC_HEADER], attributes].concat();
        let found = Generic::deserialize(&NetlinkHeader::default(), &payload).unwrap();
        assert_eq!(found.attribute(3).map(u64::from_ne_bytes), Some(8));
        assert_eq!(found.attribute(4), Some([1]));
        assert_eq!((found.attribute::<2>(4), found.attribute::<1>(5)), (None, None));
    }

    #[test]
    fn unknown_family_is_an_error_and_the_control_family_answers() {
        let error = Generic::ask("no-such-family", 1, 1, &[]).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        let (command, kind) = (control::GET_FAMILY, control::FAMILY_NAME);
        let itself = Generic::ask("nlctrl", command, kind, b"nlctrl\0").unwrap();
        let number = itself.attribute(control::FAMILY_ID).map(u16::from_ne_bytes);
        assert_eq!(number, Some(control::FAMILY));
    }

    proptest! {
        #[test]
        fn any_answer_is_read_without_panic(message: Vec<u8>, kind: u16) {
            read_any(&message, kind);
        }
    }
}
