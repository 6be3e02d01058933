//! What a probe has counted, with any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_protocol::Counts;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(counts) = Counts::decode(bytes) {
        assert_eq!(Counts::decode(&counts.encode()), Ok(counts));
    }
});
