//! The payload of test packets; what decodes must encode to the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_traffic::Payload;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(payload) = Payload::decode(bytes) {
        let mut again = bytes.to_vec();
        payload.encode(&mut again).expect("it came out of a buffer of this size");
        assert_eq!(Payload::decode(&again), Ok(payload));
    }
});
