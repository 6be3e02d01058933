//! Counts and flow results of a probe, from any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_mesh::protocol::{Counts, Flows};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(counts) = Counts::decode(bytes) {
        assert_eq!(Counts::decode(&counts.encode()), Ok(counts));
    }
    if let Ok(flows) = Flows::decode(bytes) {
        assert_eq!(Flows::decode(&flows.encode()), Ok(flows));
    }
});
