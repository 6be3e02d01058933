//! Assembles the sections of a PID, which may continue from one packet to the next.

use super::TsPacket;

/// Bytes of a section's header, with its length.
const HEAD: usize = 3;
/// Table id that marks the rest of a packet as stuffing (ISO/IEC 13818-1 section 2.4.4).
const STUFFING: u8 = 0xff;

/// The sections of one PID. Keeps the begin of at most one section, of at most 4098 bytes.
#[derive(Clone, Debug, Default)]
pub struct SectionAssembler {
    pending: Vec<u8>,
}

impl SectionAssembler {
    /// Records the next packet of the PID, in sequence and without repetitions. Calls `each` with the bytes of each section
    /// that is complete.
    pub fn record(&mut self, packet: &TsPacket<'_>, mut each: impl FnMut(&[u8])) {
        let Some(payload) = packet.payload else { return };
        if packet.scrambled {
            return self.interrupt();
        }
        if !packet.begins_unit {
            if !self.pending.is_empty() {
                self.append(payload, &mut each);
            }
            return;
        }
        // The pointer is the number of bytes before the first section that begins here.
        let parts = payload.split_first().and_then(|(pointer, rest)| {
            let pointer = usize::from(*pointer);
            Some((rest.get(..pointer)?, rest.get(pointer..)?))
        });
        let Some((end, begin)) = parts else { return self.interrupt() };
        if !self.pending.is_empty() {
            self.append(end, &mut each);
        }
        self.interrupt();
        self.append(begin, &mut each);
    }

    /// Packets are missing: the section that has begun is incomplete.
    pub fn interrupt(&mut self) {
        self.pending = Vec::new();
    }

    fn append(&mut self, bytes: &[u8], each: &mut impl FnMut(&[u8])) {
        self.pending.extend_from_slice(bytes);
        let mut rest = &self.pending[..];
        while let Some(length) = section_length(rest).filter(|length| *length <= rest.len()) {
            let (section, next) = rest.split_at(length);
            each(section);
            rest = next;
        }
        let is_stuffing = rest.first() == Some(&STUFFING);
        if is_stuffing || rest.is_empty() {
            self.interrupt();
        } else {
            self.pending = rest.to_vec();
        }
    }
}

/// Length of the section that begins here; none for stuffing, and if the header continues in the next packet.
fn section_length(bytes: &[u8]) -> Option<usize> {
    let [table, high, low, ..] = *bytes else { return None };
    (table != STUFFING).then(|| HEAD + usize::from(u16::from_be_bytes([high & 0x0f, low])))
}

#[cfg(test)]
mod tests {
    use super::super::{PACKET_BYTES, TsPacket};
    use super::*;

    /// The sections in packets with these payloads, and whether one begins in each.
    fn sections(payloads: &[(bool, Vec<u8>)]) -> Vec<Vec<u8>> {
        let (mut assembler, mut found) = (SectionAssembler::default(), Vec::new());
        for (begins_unit, payload) in payloads {
            let packet = TsPacket {
                pid: 0,
                begins_unit: *begins_unit,
                scrambled: false,
                continuity: 0,
                discontinuity: false,
                clock: None,
                payload: Some(payload),
            };
            assembler.record(&packet, |section| found.push(section.to_vec()));
        }
        found
    }

    /// A section of this table with `length` bytes of content.
    fn section(table: u8, length: u8) -> Vec<u8> {
        [vec![table, 0xb0, length], vec![table; length.into()]].concat()
    }

    #[test]
    fn sections_are_found_wherever_packets_divide_them() {
        let all = [section(2, 20), section(0x42, 9), section(2, 7)];
        let bytes = all.concat();
        // A packet in which a section begins has a pointer.
        let ends = [all[0].len(), all[0].len() + all[1].len()];
        for first in (1..bytes.len()).filter(|first| !ends.contains(first)) {
            let (begin, end) = bytes.split_at(first);
            let begin = [&[0], begin].concat();
            let end = [end, &[STUFFING; 5]].concat();
            assert_eq!(sections(&[(true, begin), (false, end)]), all, "{first} bytes");
        }
    }

    #[test]
    fn pointer_separates_the_end_of_a_section_from_the_next() {
        let [first, next] = [section(2, 20), section(2, 7)];
        let payloads = |pointer: usize| {
            let begin = [&[0], &first[..10]].concat();
            let pointer = u8::try_from(pointer).unwrap();
            [(true, begin), (true, [&[pointer], &first[10..], &next].concat())]
        };
        assert_eq!(sections(&payloads(first.len() - 10)), [first.clone(), next.clone()]);
        assert_eq!(sections(&payloads(200)), Vec::<Vec<u8>>::new(), "a pointer behind the end");
    }

    #[test]
    fn rest_of_a_section_whose_begin_is_missing_is_ignored() {
        assert_eq!(sections(&[(false, section(2, 7))]), Vec::<Vec<u8>>::new());
        assert_eq!(sections(&[(true, vec![])]), Vec::<Vec<u8>>::new());
        let payload = [&[0][..], &section(2, 7), &[STUFFING; PACKET_BYTES]].concat();
        assert_eq!(sections(&[(true, payload), (false, section(2, 7))]), [section(2, 7)]);
    }
}
