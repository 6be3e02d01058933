//! Restamped captures: better times, and nothing else changed.

mod refused;
mod samples;

use std::fs;
use std::time::Duration;

use pcap_file::pcapng::Block;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use wirestamp_capture::file::{AnchorLog, Provenance, Reader, Restamped, Writer, read_anchors};
use wirestamp_capture::{CapturedPacket, Facts, Ledger, Sink};
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};

use samples::{
    BOOT, SECOND, START_UTC, anchors, anchors_at, blocks, comment_within, packet, read, restamp,
    write,
};

#[test]
fn only_times_and_their_comments_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture");
    let mut expected = blocks();
    write(&path, &expected);
    let (output, counts, conversions) = restamp(&path, &anchors("tsc", BOOT)).unwrap();
    let counted = Restamped {
        packets: 7,
        restamped: 3,
        without_raw: 1,
        other_clock: 2,
        outside: 1,
        by_name: 0,
    };
    assert_eq!(counts, counted);
    let moved: Vec<i64> = conversions.iter().map(|c| (c.after - c.before).as_nanos()).collect();
    assert_eq!(moved, [5_000, 7_000, 9_000], "the last one lies a little beyond all anchors");
    for packet in &conversions {
        assert_eq!(packet.error_before, Span::from_nanos(900));
        assert_eq!(packet.error_after, Span::from_nanos(42), "next to an anchor");
    }

    for block in &mut expected {
        if let Block::SectionHeader(section) = block {
            section.section_length = -1;
        }
    }
    let corrected = |block: &mut Block<'static>, error: i64| {
        let Block::InterfaceDescription(block) = block else { panic!("no interface") };
        let said = format!(
            r#"wirestamp {{"method":"ring","stamp":"raw","clock":"tsc","boot_id":"{BOOT}","error_ns":{error},"restamped":true}}"#
        );
        block.options[3] = InterfaceDescriptionOption::Common(CommonOption::Comment(said.into()));
    };
    corrected(&mut expected[2], 42);
    corrected(&mut expected[8], 900);
    for (index, later) in [(3, 5_000), (9, 7_000), (12, 9_000)] {
        let Block::EnhancedPacket(packet) = &mut expected[index] else { panic!("no packet") };
        packet.timestamp += Duration::from_nanos(later);
        let Some(EnhancedPacketOption::Common(CommonOption::Comment(text))) =
            packet.options.last_mut()
        else {
            panic!("no comment")
        };
        *text = text.replace(":900}", ":42}").into();
    }
    assert_eq!(read(&output), expected);
}

fn facts(stamp: &'static str, clock: &str) -> Facts {
    Facts {
        link: wirestamp_packet::LinkType::Ethernet,
        interface: "tap-a".into(),
        method: "ring",
        stamp,
        taken: "on the way",
        clock: clock.into(),
        granularity_ns: 10,
        snaplen: 262_144,
        cores: Vec::new(),
        filter: None,
        notes: Vec::new(),
    }
}

#[test]
fn restamped_capture_can_be_restamped_again() {
    let folder = tempfile::tempdir().unwrap();
    let [path, log] = ["capture", "anchors.csv"].map(|name| folder.path().join(name));
    let facts = facts("raw", "tsc");
    let provenance = Provenance { boot_id: BOOT.into(), ..Provenance::of(&facts, 900) };
    let known = anchors("tsc", BOOT);
    let mut anchor_log = AnchorLog::create(&log, "tsc", &provenance).unwrap();
    anchor_log.update(known.timeline()).unwrap();
    assert_eq!((anchor_log.written(), anchor_log.gaps()), (20, 0));
    let mut writer =
        Writer::create(&path, &facts, provenance).unwrap().keep_raw(Domain::Counter, "tsc");
    for tenth in 0..200 {
        let value = (tenth * SECOND / 10).unsigned_abs();
        let utc = Time::from_nanos(START_UTC + tenth * SECOND / 10);
        let raw = RawStamp { domain: Domain::Counter, value };
        let stamp = Stamp { raw, utc, error: Span::from_nanos(2_000) };
        writer
            .packet(&CapturedPacket { stamp, kernel: None, bytes: &[7; 60], length: 60 })
            .unwrap();
    }
    writer.finish(&Ledger::default()).unwrap();

    let read_back = read_anchors(&log).unwrap();
    let (once, counts, conversions) = restamp(&path, &read_back).unwrap();
    assert_eq!((counts.packets, counts.restamped), (200, 200));
    let mut reader = Reader::open(&once).unwrap();
    for conversion in &conversions {
        assert_eq!(reader.next_packet().unwrap().unwrap().time, conversion.after);
    }
    assert!(reader.next_packet().unwrap().is_none());
    let said = reader.interfaces()[0].provenance.as_ref().unwrap();
    let worst = conversions.iter().map(|packet| packet.error_after.as_nanos()).max().unwrap();
    assert_eq!((said.restamped, said.error_ns), (true, worst));
    let (twice, _, unmoved) = restamp(&once, &read_back).unwrap();
    assert!(unmoved.iter().all(|packet| packet.before == packet.after));
    assert_eq!(fs::read(once).unwrap(), fs::read(twice).unwrap());
}

#[test]
fn packets_not_stamped_by_card_keep_their_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture");
    let facts = facts("hardware", "phc0");
    let provenance = Provenance { boot_id: BOOT.into(), ..Provenance::of(&facts, 3_000) };
    let mut writer =
        Writer::create(&path, &facts, provenance).unwrap().keep_raw(Domain::Nic, "phc0");
    for tenth in 1..100 {
        let since_start = tenth * SECOND / 10;
        let utc = START_UTC + since_start;
        // As outgoing packets, or packets stamped by an XDP program instead of the card, between packets stamped by
        // the card.
        let (domain, value, error) = match tenth % 6 {
            0 => (Domain::Realtime, utc, 1),
            3 => (Domain::Monotonic, since_start, 100),
            _ => (Domain::Nic, since_start, 3_000),
        };
        let raw = RawStamp { domain, value: value.unsigned_abs() };
        let stamp = Stamp { raw, utc: Time::from_nanos(utc), error: Span::from_nanos(error) };
        writer
            .packet(&CapturedPacket { stamp, kernel: None, bytes: &[7; 60], length: 60 })
            .unwrap();
    }
    writer.finish(&Ledger::default()).unwrap();
    let (_, counts, _) = restamp(&path, &anchors("phc0", BOOT)).unwrap();
    assert_eq!((counts.restamped, counts.without_raw, counts.other_clock), (66, 33, 0));
}

#[test]
fn packets_of_unknown_boot_match_by_clock_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture");
    write(&path, &blocks());
    let (_, counts, _) = restamp(&path, &anchors("tsc", "")).unwrap();
    assert_eq!((counts.restamped, counts.by_name, counts.other_clock), (4, 4, 1));
}

#[test]
fn time_without_max_error_is_not_better() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("capture");
    let unbounded = |second: i64| {
        packet(0, second * SECOND, vec![comment_within(i64::MAX, second * SECOND, "tsc")])
    };
    let section = blocks()[7..9].to_vec();
    write(&path, &[section, vec![unbounded(10), unbounded(40)]].concat());
    let gap = anchors_at((0..20).chain(60..80), "tsc", BOOT);
    let (_, counts, conversions) = restamp(&path, &gap).unwrap();
    assert_eq!((counts.restamped, counts.outside), (1, 1), "{conversions:?}");
}
