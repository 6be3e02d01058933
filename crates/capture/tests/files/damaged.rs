//! Truncated, damaged and hostile files.

use std::fs::{self, File};
use std::io::Read as _;

use proptest::prelude::*;
use wirestamp_capture::Error;
use wirestamp_capture::file::Format;

use crate::captured::read;
use crate::{FORMATS, destination, write_some};

#[test]
fn truncated_file_returns_its_complete_packets() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        for zstd in [false, true] {
            let to = destination(&folder, format, zstd);
            let whole = fs::read(write_some(&to, 4)).unwrap();
            let mut most = 0;
            for length in 0..=whole.len() {
                fs::write(&to.path, &whole[..length]).unwrap();
                let content = read(&to.path);
                assert!(content.packets.len() >= most, "{format} {length}");
                most = content.packets.len();
                match content.end {
                    Ok(()) | Err(Error::NotACapture { .. }) => {}
                    Err(Error::Damaged { packets, .. }) => assert_eq!(packets, most as u64),
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!(most, 4);
        }
    }
}

#[test]
fn file_without_end_has_a_valid_max_error() {
    let folder = tempfile::tempdir().unwrap();
    let to = destination(&folder, Format::Pcapng, false);
    let bound = |count| {
        let whole = fs::read(write_some(&to, count)).unwrap();
        fs::write(&to.path, &whole[..whole.len() - 4]).unwrap();
        let content = read(&to.path);
        assert!(content.end.is_err() && content.packets.len() == usize::try_from(count).unwrap());
        assert_eq!(content.interfaces[0].ledger, None);
        content.interfaces[0].provenance.as_ref().unwrap().error_ns
    };
    assert_eq!((bound(2), bound(8)), (64, 67));
}

#[test]
fn too_large_zstd_window_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bomb");
    // A frame with a window of 128 MiB (RFC 8878, section 3.1.1.1), of one block of zeroes.
    let head = [0x28, 0xb5, 0x2f, 0xfd, 0, (27 - 10) << 3];
    fs::write(&path, [&head[..], &[0x03, 0xff, 0x07, 0]].concat()).unwrap();
    let error = read(&path).end.unwrap_err().to_string();
    assert!(error.contains("memory"), "{error}");
}

#[test]
fn false_lengths_allocate_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let to = destination(&folder, Format::Pcapng, true);
    let head = {
        write_some(&to, 0);
        let mut bytes = Vec::new();
        zstd::Decoder::new(File::open(&to.path).unwrap()).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    };
    // A packet block of nearly 4 GiB, with as many zeroes as 1 KiB of zstd expands to.
    let block = [6_u32, u32::MAX - 3].map(u32::to_ne_bytes).concat();
    let zeroes = vec![0; 16 << 20];
    let bytes = [head, block, zeroes].concat();
    fs::write(&to.path, zstd::encode_all(&*bytes, 1).unwrap()).unwrap();
    let content = read(&to.path);
    assert!(matches!(content.end, Err(Error::Damaged { packets: 0, .. })), "{:?}", content.end);
}

proptest! {
    #[test]
    fn no_damage_makes_the_reader_panic(
        format in prop::sample::select(FORMATS.to_vec()),
        zstd in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = write_some(&destination(&folder, format, zstd), 3);
        let mut bytes = fs::read(&path).unwrap();
        for (index, byte) in damage {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        fs::write(&path, bytes).unwrap();
        let _ = read(&path);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(
        magic in prop::sample::select(vec![
            [0x0a, 0x0d, 0x0d, 0x0a],
            [0xd4, 0xc3, 0xb2, 0xa1],
            [0x4d, 0x3c, 0xb2, 0xa1],
            [0x28, 0xb5, 0x2f, 0xfd],
            [0, 0, 0, 0],
        ]),
        rest in prop::collection::vec(any::<u8>(), 0..200),
        compressed in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("any");
        let mut bytes = [&magic[..], &rest].concat();
        if compressed {
            bytes = zstd::encode_all(&*bytes, 1).unwrap();
        }
        fs::write(&path, bytes).unwrap();
        let _ = read(&path);
    }
}
