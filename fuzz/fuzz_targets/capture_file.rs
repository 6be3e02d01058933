//! Capture files: pcapng and classic pcap, whole, damaged, or anything else.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_capture::file::Reader;

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("wirestamp-fuzz-{}", std::process::id()));
    std::fs::write(&path, bytes).expect("the temporary folder can be written");
    if let Ok(mut reader) = Reader::open(&path) {
        while let Ok(Some(_)) = reader.next_packet() {}
    }
});
