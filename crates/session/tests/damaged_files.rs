//! Comparing files that are cut at any byte.

use std::fs;
use std::path::Path;
use std::process::Command;

use wirestamp_capture::file::Reader;
use wirestamp_metrics::{Outcome, Quality};
use wirestamp_session::{Terms, compare};

/// A classic capture in nanoseconds of `count` UDP packets over IPv4, one every millisecond.
fn classic(count: u32) -> Vec<u8> {
    let words = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1];
    let mut file: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
    for number in 0..count {
        let mut frame = vec![0_u8; 12];
        frame.extend([0x08, 0x00]);
        frame.extend([0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 77, 1, 1, 10, 77, 2, 2]);
        frame.extend([0x13, 0x88, 0x13, 0x88, 0, 20, 0, 0]);
        frame.extend(number.to_be_bytes());
        frame.extend([0; 8]);
        let length = u32::try_from(frame.len()).expect("a short frame");
        let head = [1_700_000_000, number * 1_000_000, length, length];
        file.extend(head.into_iter().flat_map(u32::to_ne_bytes));
        file.extend(frame);
    }
    file
}

/// Result of comparing `a` with `b`: the outcomes, or an error.
fn compared(a: &Path, b: &Path, partial: bool) -> Result<Quality, String> {
    let open = |path| Reader::open(path).map_err(|error| error.to_string());
    let mut quality = Quality::of_flow();
    let mut record = |outcome: Outcome, _: bool| quality.record(&outcome);
    let terms = Terms { partial, ..Terms::default() };
    let found = compare(open(a)?, open(b)?, &terms, &mut record);
    found.map(|_| quality).map_err(|error| error.to_string())
}

/// Compares `intact` with each prefix of the file `whole`: the prefix as point B, then as point A.
fn every_cut(whole: &[u8], intact: &Path, packets: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let cut = folder.path().join("cut");
    let mut arrived = 0;
    for length in 0..=whole.len() {
        fs::write(&cut, &whole[..length]).expect("a file");
        match compared(intact, &cut, true) {
            Ok(found) => {
                let counts = found.counts();
                assert_eq!((counts.sent, counts.matched + counts.lost), (packets, packets));
                assert_eq!((counts.duplicated, counts.reordered, counts.unexpected), (0, 0, 0));
                assert!(counts.matched >= arrived, "a longer part has fewer packets");
                arrived = counts.matched;
            }
            Err(said) => assert_sentence(&said, length),
        }
        // As point A, without the option that accepts a damaged file.
        match compared(&cut, intact, false) {
            Ok(found) => assert_eq!(found.counts().lost, 0),
            Err(said) => assert_sentence(&said, length),
        }
    }
    assert_eq!(arrived, packets);
}

fn assert_sentence(said: &str, length: usize) {
    assert!(said.contains("cut") && said.len() > 20, "{length}: {said}");
    assert!(!said.contains('\n') && !said.contains("Error {"), "{length}: {said}");
}

#[test]
fn a_classic_capture_that_is_cut_at_any_byte_gives_a_result_or_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let intact = folder.path().join("intact");
    let whole = classic(9);
    fs::write(&intact, &whole).expect("a file");
    every_cut(&whole, &intact, 9);
}

#[test]
fn a_pcapng_that_is_cut_at_any_byte_gives_a_result_or_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let [classic_file, intact] = ["classic", "intact"].map(|name| folder.path().join(name));
    fs::write(&classic_file, classic(9)).expect("a file");
    let edited =
        Command::new("editcap").args(["-F", "pcapng"]).args([&classic_file, &intact]).status();
    assert!(edited.expect("editcap is installed").success());
    let whole = fs::read(&intact).expect("editcap's file");
    every_cut(&whole, &intact, 9);
}
