//! Reports from a probe to a collector, with any bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_mesh::protocol::ObservationBatch;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(seen) = ObservationBatch::decode(bytes) {
        assert_eq!(ObservationBatch::decode(&seen.encode()), Ok(seen));
    }
});
