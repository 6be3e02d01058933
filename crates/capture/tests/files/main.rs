//! Capture files: other tools can read written files, and the reader accepts any input.

#[path = "../captured/mod.rs"]
mod captured;
mod classic;
mod damaged;
mod other_parser;

use std::fs;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;

use captured::{FIRST_NS, facts, give, read, stamp, writer};
use tempfile::TempDir;
use wirestamp_capture::file::{Destination, Format, Provenance, Reader, Writer};
use wirestamp_capture::{CaptureLoss, CapturedPacket, Facts, Ledger, Sink as _};

const FORMATS: [Format; 3] = [Format::Pcapng, Format::Pcap, Format::PcapMicros];

const LEDGER: Ledger = Ledger {
    interface_dropped: 3,
    seen: 12,
    kernel_dropped: 4,
    left_behind: 1,
    filtered: 2,
    surplus: 0,
    consumer_dropped: 0,
    delivered: 5,
    fill_ring_empty: 9,
    out_of_order: 10,
    stamped_late: 6,
};

fn destination(folder: &TempDir, format: Format, zstd: bool) -> Destination {
    Destination { format, zstd, ..Destination::new(&folder.path().join("out")) }
}

/// Writes `packets`: time after the first, error, and bytes.
fn write(to: &Destination, packets: &[(i64, i64, Vec<u8>)]) -> PathBuf {
    let mut writer = writer(to).unwrap();
    for (after, error, bytes) in packets {
        give(&mut writer, stamp(*after, *error), bytes).unwrap();
    }
    writer.finish(&LEDGER).unwrap();
    to.path.clone()
}

/// Writes `count` packets, one nanosecond apart and each one byte longer than the previous one.
fn write_some(to: &Destination, count: i64) -> PathBuf {
    let length = |number| 60 + usize::try_from(number).unwrap();
    let packets = (0..count).map(|number| (number, 60 + number, vec![7; length(number)]));
    write(to, &packets.collect::<Vec<_>>())
}

#[test]
fn times_and_errors_survive_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let content = read(&write_some(&destination(&folder, Format::Pcapng, false), 8));
    content.end.unwrap();
    let times: Vec<_> = content.packets.iter().map(|&(time, ..)| time).collect();
    assert_eq!(times, (FIRST_NS..FIRST_NS + 8).collect::<Vec<_>>());
    // The interface has 64 ns: twice the initial 20, rounded up. Packets have an error only if it is larger.
    let errors: Vec<_> = content.packets.iter().map(|&(_, error, _)| error.unwrap()).collect();
    assert_eq!(errors, [64, 64, 64, 64, 64, 65, 66, 67]);
    let [interface] = &content.interfaces[..] else { panic!("{:?}", content.interfaces) };
    let provenance = interface.provenance.as_ref().unwrap();
    assert_eq!((provenance.error_ns, provenance.granularity_ns), (67, Some(10)));
    assert_eq!(interface.name.as_deref(), Some("tap-a"));
    assert_eq!((interface.ledger, interface.capture_lost()), (Some(LEDGER), Some(5)));
}

#[test]
fn flushed_packets_are_in_the_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for format in FORMATS {
        let to = destination(&folder, format, false);
        let mut writer = writer(&to).unwrap().flush_packets(true);
        for number in 1..4 {
            give(&mut writer, stamp(number, 20), &[7; 60]).unwrap();
            let written = i64::try_from(read(&to.path).packets.len()).unwrap();
            assert_eq!(written, number, "{format}");
        }
    }
}

#[test]
fn flushed_packet_that_cannot_be_written_is_lost_once() {
    let (reader, pipe) = std::io::pipe().unwrap();
    let path = PathBuf::from(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
    let mut writer = writer(&Destination::new(&path)).unwrap().flush_packets(true);
    give(&mut writer, stamp(1, 20), &[7; 60]).unwrap();
    drop(reader);
    give(&mut writer, stamp(2, 20), &[7; 60]).unwrap();
    assert_eq!(writer.lost(), 1);
    assert!(give(&mut writer, stamp(3, 20), &[7; 60]).unwrap_err().is_broken_pipe());
    writer.end().unwrap();
    assert_eq!(writer.lost(), 1, "the third packet was not accepted");
}

#[test]
fn packets_of_several_interfaces_keep_their_interface() {
    let folder = tempfile::tempdir().unwrap();
    let interfaces = ["tap-a", "tap-b"].map(|name| {
        let facts = Facts { interface: name.into(), ..facts() };
        let provenance = Provenance::of(&facts, 20);
        (facts, provenance)
    });
    let to = destination(&folder, Format::Pcapng, false);
    let mut writer = Writer::for_interfaces(&to, interfaces.to_vec()).unwrap();
    let packet = |number| {
        let (stamp, bytes) = (stamp(number, 20), &[7; 60][..]);
        CapturedPacket { stamp, kernel: None, bytes, length: 60 }
    };
    for (number, interface) in (1..).zip([0, 1, 1, 0, 1]) {
        writer.packet_of(interface, &packet(number)).unwrap();
    }
    let [from, until] = [2, 3].map(|number| stamp(number, 20).utc);
    writer.missed_of(1, &CaptureLoss { from, until, packets: 3 }).unwrap();
    assert!(writer.packet_of(2, &packet(6)).is_err(), "there is no such interface");
    let [a, b] = [2, 3].map(|delivered| Ledger { delivered, kernel_dropped: 3, ..LEDGER });
    writer.finish_all(&[a, b]).unwrap();
    let mut reader = Reader::open(&to.path).unwrap();
    let mut numbers = Vec::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        numbers.push(packet.interface);
    }
    assert_eq!(numbers, [0, 1, 1, 0, 1]);
    assert_eq!(reader.take_missed(), [CaptureLoss { from, until, packets: 3 }]);
    let found = reader.interfaces().iter().map(|it| (it.name.as_deref(), it.packets, it.ledger));
    assert!(found.eq([(Some("tap-a"), 2, Some(a)), (Some("tap-b"), 3, Some(b))]));

    let classic = destination(&folder, Format::Pcap, false);
    let refused = Writer::for_interfaces(&classic, interfaces.to_vec()).err().unwrap();
    assert!(refused.to_string().contains("pcap files have one interface"), "{refused}");
}

#[test]
fn interfaces_of_two_sections_are_separate() {
    let folder = tempfile::tempdir().unwrap();
    let to = destination(&folder, Format::Pcapng, false);
    let sections = [2, 8].map(|count| fs::read(write_some(&to, count)).unwrap());
    fs::write(&to.path, sections.concat()).unwrap();
    let content = read(&to.path);
    content.end.unwrap();
    let found: Vec<_> = content
        .interfaces
        .iter()
        .map(|of| (of.packets, of.provenance.as_ref().unwrap().error_ns, of.capture_lost()))
        .collect();
    assert_eq!(found, [(2, 61, Some(5)), (8, 67, Some(5))]);
}
