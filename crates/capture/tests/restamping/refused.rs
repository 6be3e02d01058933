//! Restamps that are refused or aborted, and captures that change meanwhile.

use std::fs::{self, File};
use std::io::Write as _;
use std::ops::ControlFlow;

use pcap_file::pcapng::Block;
use pcap_file::pcapng::blocks::interface_description::InterfaceTsResolution;
use tempfile::TempDir;
use wirestamp_capture::file::Restamp;
use wirestamp_clock::AnchorFile;

use crate::samples::{BOOT, anchors, blocks, interface, on, read, restamp, write};

#[test]
fn compressed_capture_is_refused_with_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture");
    write(&path, &blocks());
    let compressed = zstd::encode_all(&*fs::read(&path).unwrap(), 1).unwrap();
    fs::write(&path, compressed).unwrap();
    let refused = restamp(&path, &anchors("tsc", BOOT)).unwrap_err();
    assert!(refused.contains("zstd -d"), "{refused}");
}

/// The reason why the capture of these blocks is not restamped.
fn refused(folder: &TempDir, blocks: &[Block<'_>], anchors: &AnchorFile) -> String {
    let path = folder.path().join("capture");
    write(&path, blocks);
    restamp(&path, anchors).unwrap_err()
}

#[test]
fn unsuitable_captures_are_refused_with_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (blocks, tsc) = (blocks(), anchors("tsc", BOOT));
    let coarse = interface(BOOT, InterfaceTsResolution::MICRO);
    let of = |chosen: &[usize]| chosen.iter().map(|&i| blocks[i].clone()).collect::<Vec<_>>();
    let cases = [
        (of(&[0, 1, 2]), "it has no packets"),
        (of(&[0, 1, 2, 6]), "no packet has its raw value"),
        (of(&[0, 1, 4]), "stamped by tsc of boot b-2, and the anchors are of tsc of boot b-1"),
        (of(&[7, 8, 11]), "were not stamped in the time of these anchors"),
        (vec![blocks[7].clone(), coarse, blocks[9].clone()], "its times are not in nanoseconds"),
    ];
    for (blocks, expected) in cases {
        let reason = refused(&folder, &blocks, &tsc);
        assert!(reason.contains(expected) && reason.lines().count() == 1, "{reason}");
    }
}

#[test]
fn damaged_capture_is_refused_before_writing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture");
    write(&path, &blocks());
    let whole = fs::read(&path).unwrap();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        if let Err(reason) = restamp(&path, &anchors("tsc", BOOT)) {
            assert_eq!(reason.lines().count(), 1);
            assert!(!reason.contains("damaged") || reason.contains("editcap"), "{reason}");
            assert!(!folder.path().join("capture.again").exists(), "{reason}");
        } else {
            fs::remove_file(path.with_extension("again")).unwrap();
        }
    }
}

#[test]
fn packets_after_the_survey_are_not_in_the_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let [path, again] = ["capture", "again"].map(|name| folder.path().join(name));
    write(&path, &blocks()[7..]);
    let anchors = anchors("tsc", BOOT);
    let restamp = Restamp::survey(&path, &anchors, &mut on, &mut |_| ()).unwrap();
    let whole = fs::read(&path).unwrap();
    let mut growing = File::options().append(true).open(&path).unwrap();
    growing.write_all(&whole).unwrap();
    restamp.write(&again, &mut on).unwrap();
    assert_eq!(read(&again).len(), blocks()[7..].len());
    assert_eq!(restamp.counts().packets, 4);

    growing.set_len(whole.len() as u64 - 1).unwrap();
    fs::remove_file(&again).unwrap();
    let reason = restamp.write(&again, &mut on).unwrap_err().to_string();
    assert!(reason.contains("it changed while it was read"), "{reason}");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
}

#[test]
fn aborted_restamp_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let [path, again] = ["capture", "again"].map(|name| folder.path().join(name));
    write(&path, &blocks());
    let anchors = anchors("tsc", BOOT);
    let mut off = |_| ControlFlow::Break(());
    let refused = Restamp::survey(&path, &anchors, &mut off, &mut |_| ()).err().unwrap();
    assert!(refused.to_string().contains("stopped"), "{refused}");

    fs::write(&again, "before").unwrap();
    let restamp = Restamp::survey(&path, &anchors, &mut on, &mut |_| ()).unwrap();
    let refused = restamp.write(&again, &mut off).unwrap_err();
    assert!(refused.to_string().contains("stopped"), "{refused}");
    assert_eq!(fs::read(&again).unwrap(), b"before");
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
}
