//! RTP headers, whole and cut off by a capture.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_packet::rtp::{Rtp, amr_wb_mode};

fuzz_target!(|input: (u16, &[u8])| {
    let (on_wire, bytes) = input;
    for on_wire in [bytes.len(), usize::from(on_wire)] {
        let Some(rtp) = Rtp::parse(bytes, on_wire) else { continue };
        let _ = (rtp.marker(), rtp.payload_type(), rtp.sequence(), rtp.timestamp(), rtp.ssrc());
        assert!(amr_wb_mode(rtp.payload(), on_wire).is_none_or(|mode| mode < 9));
        if let Some(payload) = rtp.payload_range() {
            assert!(payload.start >= 12 && payload.start <= payload.end);
            assert!(payload.end <= on_wire);
        }
    }
});
