//! The payload of test packets; what decodes must encode to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_traffic::Payload;

fuzz_target!(|bytes: &[u8]| {
    if let Some(payload) = Payload::decode(bytes) {
        // The brief form is written by the kernel only, and comes out in the full one.
        let mut again = vec![0; bytes.len().max(Payload::MIN_BYTES)];
        payload.encode(&mut again);
        assert_eq!(Payload::decode(&again), Some(payload));
    }
});
