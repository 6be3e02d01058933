//! Files of anchors; what can be read converts any raw value, and can be written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_clock::{AnchorFile, AnchorWriter};

fuzz_target!(|bytes: &[u8]| {
    let Ok(file) = AnchorFile::read(bytes) else { return };
    let timeline = file.timeline();
    let mut raw: Vec<u64> = timeline.anchors().map(|anchor| anchor.raw).collect();
    raw.extend([0, u64::MAX / 2, u64::MAX]);
    raw.extend(
        bytes.chunks_exact(8).filter_map(|chunk| chunk.try_into().ok()).map(u64::from_le_bytes),
    );
    let mut stamps = Vec::new();
    timeline.convert_batch(&raw, &mut stamps);
    assert!(raw.iter().zip(&stamps).all(|(&raw, stamp)| timeline.convert(raw) == *stamp));
    if let Ok(mut writer) = AnchorWriter::new(Vec::new(), file.clock(), file.boot_id()) {
        writer.update(timeline).expect("memory takes everything");
        assert_eq!(writer.written(), timeline.anchors().len() as u64);
    }
});
