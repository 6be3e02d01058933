//! Comments in capture files: of an interface, a packet, and the statistics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_capture::file::{RawValue, Reader};

fuzz_target!(|text: &str| {
    let ours = format!("wirestamp {text}");
    let _ = RawValue::from_comment(&ours);
    let path = std::env::temp_dir().join(format!("wirestamp-fuzz-{}", std::process::id()));
    for comment in [text, &ours] {
        std::fs::write(&path, file(comment)).expect("the temporary folder can be written");
        let mut reader = Reader::open(&path).expect("a pcapng file");
        let packet = reader.next_packet().expect("a whole block").expect("a packet");
        assert_eq!(*packet.bytes, [7; 4]);
        assert!(reader.next_packet().expect("a whole block").is_none());
        let _ = (reader.interfaces()[0].capture_lost(), reader.capture_lost());
    }
});

/// A pcapng file of one packet, with `comment` in every possible place.
fn file(comment: &str) -> Vec<u8> {
    // The max length of an option, cut between two characters.
    let end = comment.floor_char_boundary(65_000);
    let option = option(1, &comment.as_bytes()[..end]);
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    let ethernet = [1, 0, 0, 0, 0, 0, 0, 0];
    let packet = [0, 0, 0, 4, 4].map(u32::to_le_bytes).concat();
    [
        block(0x0a0d_0d0a, &section),
        block(1, &[&ethernet[..], &option].concat()),
        block(6, &[&packet[..], &[7; 4], &option].concat()),
        block(5, &[&[0; 12][..], &option].concat()),
    ]
    .concat()
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let length = u16::try_from(value.len()).expect("it was cut");
    let mut option = [code, length].map(u16::to_le_bytes).concat();
    option.extend(value);
    option.resize(option.len().next_multiple_of(4), 0);
    option.extend([0; 4]); // the end of options
    option
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 12).expect("a short block").to_le_bytes();
    [&kind.to_le_bytes()[..], &length, body, &length].concat()
}
