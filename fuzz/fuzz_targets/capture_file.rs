//! Capture files: pcapng and classic pcap, complete, damaged or compressed, or any other bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_capture::file::Reader;

fuzz_target!(|bytes: &[u8]| {
    read(bytes);
    // Mutation rarely produces a complete zstd frame.
    if let Ok(compressed) = zstd::encode_all(bytes, 1) {
        read(&compressed);
    }
});

fn read(bytes: &[u8]) {
    let path = std::env::temp_dir().join(format!("wirestamp-fuzz-{}", std::process::id()));
    std::fs::write(&path, bytes).expect("the temporary folder can be written");
    if let Ok(mut reader) = Reader::open(&path) {
        while let Ok(Some(packet)) = reader.next_packet() {
            let interface = packet.interface;
            assert!(reader.interfaces()[interface].packets > 0);
        }
        let _ = reader.capture_lost();
    }
}
