//! Payload of a replica: its number.

use std::ops::Range;

use anyhow::ensure;
use etherparse::PacketBuilder;

/// Ethernet's check sequence, which frames on a veth do not have.
const CHECK_SEQUENCE: usize = 4;
/// Behind the headers of Ethernet, IPv4 and UDP.
const NUMBER: Range<usize> = 42..50;
/// The UDP checksum; 0 means none (RFC 768), and is valid for each number.
const CHECKSUM: Range<usize> = 40..42;

/// Locally administered addresses that no interface of the bed has: its stack drops the frames right
/// after the taps.
const HARDWARE: [[u8; 6]; 2] = [[2, 0, 0, 0, 0, 0x98], [2, 0, 0, 0, 0, 0x99]];
/// Addresses of no interface either, in a network of this bed's own.
const ADDRESSES: [[u8; 4]; 2] = [[10, 77, 3, 98], [10, 77, 3, 99]];
const PORTS: [u16; 2] = [7000, 5004];

/// A frame of `frame_bytes`, check sequence included. All replicas differ in their number only.
///
/// # Errors
/// When a number does not fit in.
pub(super) fn template(frame_bytes: u16) -> anyhow::Result<Vec<u8>> {
    let length = usize::from(frame_bytes).saturating_sub(CHECK_SEQUENCE);
    let payload = length.saturating_sub(NUMBER.start);
    ensure!(payload >= NUMBER.len(), "a frame of {frame_bytes} bytes has no room for a number");
    let [source, destination] = HARDWARE;
    let builder = PacketBuilder::ethernet2(source, destination);
    let builder = builder.ipv4(ADDRESSES[0], ADDRESSES[1], 64).udp(PORTS[0], PORTS[1]);
    let mut frame = vec![0; length];
    let written = builder.write_to_slice(&mut frame, &vec![0; payload]);
    ensure!(written.is_ok(), "cannot make a frame of {frame_bytes} bytes");
    frame[CHECKSUM].fill(0);
    Ok(frame)
}

/// Writes a number into a frame that [`template`] has made.
pub(super) fn set_number(frame: &mut [u8], number: u64) {
    frame[NUMBER].copy_from_slice(&number.to_be_bytes());
}

/// The number of a replica; none of any other frame.
pub(super) fn number(frame: &[u8]) -> Option<u64> {
    let is_ours = frame.starts_with(&HARDWARE[1]);
    let number = frame.get(NUMBER).filter(|_| is_ours)?;
    number.try_into().ok().map(u64::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_has_requested_length_and_number() {
        for frame_bytes in [64, 256, 1518] {
            let mut frame = template(frame_bytes).unwrap();
            assert_eq!(frame.len(), usize::from(frame_bytes) - 4);
            set_number(&mut frame, 0x0102_0304_0506_0708);
            assert_eq!(number(&frame), Some(0x0102_0304_0506_0708));
            assert!(etherparse::SlicedPacket::from_ethernet(&frame).unwrap().transport.is_some());
        }
        assert!(template(53).is_err() && template(0).is_err());
    }

    #[test]
    fn frames_of_others_have_no_number() {
        assert_eq!(number(&[0xff; 60]), None);
        assert_eq!(number(&[]), None);
        let frame = template(64).unwrap();
        assert_eq!(number(&frame[..NUMBER.end - 1]), None);
    }
}
