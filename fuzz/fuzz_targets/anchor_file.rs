//! Files of anchors: a valid file converts any raw value, and can be written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wirestamp_clock::{AnchorFile, AnchorWriter};

const HEADER: &str = "raw_ticks,utc_ns,monotonic_raw_ns,error_ns,epoch,clock,boot_id,\
                      granularity_ns,frequency_hz,rate_error_ppm\n";

/// A file with the header and a row for each 27 bytes, which a fuzzer alone rarely finds. Rows ascend by steps that
/// the bytes define.
fn well_formed(bytes: &[u8]) -> Vec<u8> {
    let (mut text, mut epoch) = (HEADER.to_owned(), 0_u32);
    let (mut raw, mut utc, mut monotonic_raw) = (1_u64 << 40, 1_i64 << 60, 1_i64 << 40);
    for row in bytes.chunks_exact(27) {
        let word = |at: usize| u64::from_le_bytes(row[at..at + 8].try_into().expect("8 of 27"));
        // Shifted by up to 63 bits: steps of all sizes.
        let step = |at: usize| word(at) >> (row[26] % 64);
        raw = raw.wrapping_add(step(0));
        utc = utc.wrapping_add_unsigned(step(8));
        monotonic_raw = monotonic_raw.saturating_add_unsigned(step(16));
        epoch += u32::from(row[24] % 8 == 0);
        text += &format!("{raw},{utc},{monotonic_raw},{},{epoch},tsc,,11,1e9,1\n", row[25]);
    }
    text.into_bytes()
}

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    check(&well_formed(bytes));
});

fn check(bytes: &[u8]) {
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
}
