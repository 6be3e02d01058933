//! Classic pcap files.

use std::fs;

use wirestamp_capture::file::Reader;

use crate::captured::read;

#[test]
fn classic_files_keep_their_precision() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("classic.pcap");
    for (magic, fraction, nanos) in
        [(0xa1b2_c3d4_u32, 123_456_u32, 123_456_000), (0xa1b2_3c4d, 123_456_789, 123_456_789)]
    {
        let header = [magic, 0x0004_0002, 0, 0, 262_144, 1];
        let packet = [1_795_269_909, fraction, 4, 60];
        let words = header.into_iter().chain(packet).flat_map(u32::to_ne_bytes);
        fs::write(&path, words.chain([1, 2, 3, 4]).collect::<Vec<_>>()).unwrap();
        let content = read(&path);
        content.end.unwrap();
        let expected = (1_795_269_909_000_000_000 + nanos, None, vec![1, 2, 3, 4]);
        assert_eq!(content.packets, [expected]);
    }
}

/// As tcpdump and tshark read it.
#[test]
fn classic_file_may_have_whole_seconds_in_the_fraction_and_short_lengths() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.pcap");
    let header = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1];
    let packet = [1_795_269_909, 2_500_000, 4, 2];
    let words = header.into_iter().chain(packet).flat_map(u32::to_ne_bytes);
    fs::write(&path, words.chain([1, 2, 3, 4]).collect::<Vec<_>>()).unwrap();
    let mut reader = Reader::open(&path).unwrap();
    let packet = reader.next_packet().unwrap().unwrap();
    let nanos = packet.time.as_nanos();
    assert_eq!((nanos, packet.length, packet.bytes.len()), (1_795_269_911_500_000_000, 4, 4));
    // The largest values of all fields.
    let packet = [u32::MAX, u32::MAX, 0, u32::MAX];
    let words = header.into_iter().chain(packet).flat_map(u32::to_ne_bytes);
    fs::write(&path, words.collect::<Vec<_>>()).unwrap();
    let mut reader = Reader::open(&path).unwrap();
    let packet = reader.next_packet().unwrap().unwrap();
    assert_eq!((packet.time.as_nanos(), packet.length), (4_294_971_589_967_295_000, u32::MAX));
}
