//! The flows of files that are damaged, out of order, or hold strange packets.

use std::fs;
use std::path::Path;

use wirestamp_capture::file::Reader;
use wirestamp_capture::{Error, Filter};
use wirestamp_metrics::flow::FlowConfig;
use wirestamp_session::flows::{FileOptions, FileReport, of_file};

/// Classic pcap in nanoseconds, of raw IP (link type 101): time in milliseconds and bytes.
fn pcap(packets: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let header = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 101];
    let mut file = header.map(u32::to_le_bytes).as_flattened().to_vec();
    for (millis, bytes) in packets {
        let length = u32::try_from(bytes.len()).unwrap();
        let head = [1_700_000_000 + millis / 1000, millis % 1000 * 1_000_000, length, length];
        file.extend(head.map(u32::to_le_bytes).as_flattened());
        file.extend(bytes);
    }
    file
}

/// A packet of a call over IPv4.
fn voice(number: u8) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 50, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    packet.extend([0x13, 0x8c, 0x13, 0x8c, 0, 30, 0, 0]);
    let timestamp = (u32::from(number) * 160).to_be_bytes();
    packet.extend([&[0x80, 0, 0, number][..], &timestamp, &[0, 0, 0, 9], &[0xff; 10]].concat());
    packet
}

fn call(packets: u8) -> Vec<(u32, Vec<u8>)> {
    (0..packets).map(|number| (20 * u32::from(number), voice(number))).collect()
}

fn read(path: &Path, options: &FileOptions) -> Result<FileReport, Error> {
    of_file(Reader::open(path)?, FlowConfig::default(), options)
}

fn flows(bytes: &[u8], options: &FileOptions) -> Result<FileReport, Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture");
    fs::write(&path, bytes).unwrap();
    read(&path, options)
}

#[test]
fn a_capture_cut_anywhere_is_an_error_in_one_line_or_in_part_what_was_there() {
    let whole = pcap(&call(8));
    let partial = FileOptions { partial: true, ..FileOptions::default() };
    for length in 0..=whole.len() {
        let packets = (length.saturating_sub(24) / 66) as u64;
        let at_a_limit = length >= 24 && (length - 24) % 66 == 0;
        match flows(&whole[..length], &FileOptions::default()) {
            Ok(found) => assert!(at_a_limit && found.flows.monitor.packets() == packets),
            Err(error) => {
                assert!(!at_a_limit, "{length}: {error}");
                assert_eq!(error.to_string().lines().count(), 1);
            }
        }
        match flows(&whole[..length], &partial) {
            Ok(found) => {
                assert_eq!(found.flows.monitor.packets(), packets, "{length}");
                assert_eq!(found.damage.is_empty(), at_a_limit);
            }
            Err(Error::NotACapture { .. }) => assert!(length < 24),
            Err(error) => panic!("{length}: {error}"),
        }
    }
}

#[test]
fn packets_out_of_time_order_are_counted_and_no_loss() {
    let mut packets = call(50);
    packets.swap(20, 21);
    packets.swap(30, 35);
    let mut found = flows(&pcap(&packets), &FileOptions::default()).unwrap();
    assert_eq!(found.flows.out_of_order, 1 + 5);
    let [flow] = &found.flows.monitor.flows().collect::<Vec<_>>()[..] else { panic!("one flow") };
    assert_eq!((flow.packets, flow.lost), (50, Some(0)));
    assert_eq!(flow.interarrival_ns.map(|it| it.min), Some(-80_000_000));
}

#[test]
fn empty_packets_and_what_is_no_ip_are_counted_apart() {
    let mut packets = call(10);
    packets.insert(3, (60, Vec::new()));
    packets.insert(7, (120, vec![0; 40]));
    packets.insert(8, (120, voice(9)[..19].to_vec()));
    let found = flows(&pcap(&packets), &FileOptions::default()).unwrap();
    assert_eq!((found.flows.not_ip, found.flows.monitor.packets()), (3, 10));
}

#[test]
fn a_filter_and_a_count_choose_packets() {
    let filter = |text: &str| Some(Filter::compile(text).unwrap());
    let packets = |filter, count| {
        let options = FileOptions { filter, count, ..FileOptions::default() };
        flows(&pcap(&call(10)), &options).unwrap().flows.monitor.packets()
    };
    assert_eq!(packets(filter("udp port 5004"), None), 10);
    assert_eq!(packets(filter("udp port 5005"), None), 0);
    assert_eq!((packets(None, Some(4)), packets(filter("udp"), Some(4))), (4, 4));
}

#[test]
fn error_is_unknown_without_packets() {
    let filter = Some(Filter::compile("tcp").unwrap());
    for options in [FileOptions::default(), FileOptions { filter, ..FileOptions::default() }] {
        let packets = if options.filter.is_some() { 3 } else { 0 };
        assert_eq!(flows(&pcap(&call(packets)), &options).unwrap().error, None);
    }
}
