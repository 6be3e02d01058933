//! What a probe tells a collector, with any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_mesh::protocol::Seen;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(seen) = Seen::decode(bytes) {
        assert_eq!(Seen::decode(&seen.encode()), Ok(seen));
    }
});
