//! RTP headers, whole and cut off by a capture.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_packet::rtp::Rtp;

fuzz_target!(|input: (u16, &[u8])| {
    let (on_wire, bytes) = input;
    for on_wire in [bytes.len(), usize::from(on_wire)] {
        let Ok(rtp) = Rtp::parse(bytes, on_wire) else { continue };
        let _ = (rtp.marker(), rtp.payload_type(), rtp.sequence(), rtp.timestamp(), rtp.ssrc());
        let extension = rtp.extension().map_or(0, |(_, data)| 4 + data.len());
        if let Some(payload) = rtp.payload_range() {
            assert_eq!(payload.start, 12 + 4 * rtp.csrc().count() + extension);
            assert!(payload.end <= on_wire);
            assert!(rtp.payload().len() <= payload.len());
        }
    }
});
