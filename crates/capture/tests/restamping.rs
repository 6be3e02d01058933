//! Restamped captures: better times, and nothing else changed.

use std::fs::{self, File};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption, InterfaceTsResolution,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::section_header::{SectionHeaderBlock, SectionHeaderOption};
use pcap_file::pcapng::blocks::unknown::UnknownBlock;
use pcap_file::pcapng::{Block, PcapNgReader, PcapNgWriter};
use tempfile::TempDir;
use wirestamp_capture::file::{
    AnchorLog, Conversion, Provenance, Reader, Restamp, Restamped, Writer, read_anchors,
};
use wirestamp_capture::{CapturedPacket, Facts, Ledger, Sink};
use wirestamp_clock::{AnchorFile, Domain, RawStamp, Span, Stamp, Time};

const START_UTC: i64 = 1_795_269_909_000_000_000;
const SECOND: i64 = 1_000_000_000;
const BOOT: &str = "b-1";

/// Anchors of a clock of 1 GHz, a second apart, which runs 1 ppm slow from the tenth on.
fn anchors(clock: &str, boot_id: &str) -> AnchorFile {
    anchors_at(0..20, clock, boot_id)
}

fn anchors_at(seconds: impl Iterator<Item = i64>, clock: &str, boot_id: &str) -> AnchorFile {
    let mut text = String::from(
        "raw_ticks,utc_ns,monotonic_raw_ns,error_ns,epoch,clock,boot_id,granularity_ns,\
         frequency_hz,rate_error_ppm\n",
    );
    for second in seconds {
        let ticks = second * SECOND;
        let utc = START_UTC + ticks + (second - 10).max(0) * 1_000;
        text += &format!("{ticks},{utc},{ticks},40,0,{clock},{boot_id},1,1e9,0.1\n");
    }
    AnchorFile::read(text.as_bytes()).unwrap()
}

/// A comment of a packet that was stamped with the clock at `raw`.
fn comment(raw: i64, clock: &str) -> EnhancedPacketOption<'static> {
    comment_within(900, raw, clock)
}

fn comment_within(error_ns: i64, raw: i64, clock: &str) -> EnhancedPacketOption<'static> {
    let text = format!(r#"wirestamp {{"raw":{raw},"clock":"{clock}","error_ns":{error_ns}}}"#);
    EnhancedPacketOption::Common(CommonOption::Comment(text.into()))
}

fn interface(boot_id: &str, resolution: InterfaceTsResolution) -> Block<'static> {
    let provenance = format!(
        r#"wirestamp {{"method":"ring","stamp":"raw","clock":"tsc","boot_id":"{boot_id}","error_ns":5}}"#
    );
    Block::InterfaceDescription(InterfaceDescriptionBlock {
        linktype: DataLink::ETHERNET,
        snaplen: 99,
        options: vec![
            InterfaceDescriptionOption::IfName("tap-a".into()),
            InterfaceDescriptionOption::IfTsResol(resolution),
            InterfaceDescriptionOption::Common(CommonOption::Comment("upstairs".into())),
            InterfaceDescriptionOption::Common(CommonOption::Comment(provenance.into())),
        ],
    })
}

/// A packet whose time in the file is that of the clock at 1 GHz.
fn packet(
    interface_id: u32,
    raw: i64,
    options: Vec<EnhancedPacketOption<'static>>,
) -> Block<'static> {
    Block::EnhancedPacket(EnhancedPacketBlock {
        interface_id,
        timestamp: Duration::from_nanos((START_UTC + raw).unsigned_abs()),
        original_len: 1_000,
        data: vec![7; 61].into(),
        options,
    })
}

/// A file of two sections, the first big-endian, with content of other programs too.
fn blocks() -> Vec<Block<'static>> {
    let nanos = || InterfaceTsResolution::NANO;
    let foreign = EnhancedPacketOption::Common(CommonOption::Comment("look at this".into()));
    let flags = EnhancedPacketOption::Flags(2);
    let header = |endianness| {
        Block::SectionHeader(SectionHeaderBlock {
            endianness,
            section_length: 4_444,
            options: vec![SectionHeaderOption::Hardware("a box".into())],
            ..SectionHeaderBlock::default()
        })
    };
    vec![
        header(pcap_file::Endianness::Big),
        interface("b-2", nanos()),
        interface(BOOT, nanos()),
        packet(1, 15 * SECOND, vec![foreign, flags, comment(15 * SECOND, "tsc")]),
        packet(0, 16 * SECOND, vec![comment(16 * SECOND, "tsc")]),
        Block::Unknown(UnknownBlock::new(0x0bad_cafe, 16, &[1, 2, 3, 4])),
        packet(1, 16 * SECOND, vec![]),
        header(pcap_file::Endianness::Little),
        interface(BOOT, nanos()),
        packet(0, 17 * SECOND, vec![comment(17 * SECOND, "tsc")]),
        packet(0, 18 * SECOND, vec![comment(18 * SECOND, "hpet")]),
        packet(0, 60 * SECOND, vec![comment(60 * SECOND, "tsc")]),
        packet(0, 19 * SECOND + 5, vec![comment(19 * SECOND + 5, "tsc")]),
    ]
}

fn write(path: &Path, blocks: &[Block<'_>]) {
    let Block::SectionHeader(first) = &blocks[0] else { panic!("no section") };
    let file = File::create(path).unwrap();
    let mut writer = PcapNgWriter::with_section_header(file, first.clone()).unwrap();
    for block in &blocks[1..] {
        writer.write_block(block).unwrap();
    }
}

fn read(path: &Path) -> Vec<Block<'static>> {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut blocks = vec![Block::SectionHeader(reader.section().clone())];
    while let Some(block) = reader.next_block() {
        blocks.push(block.unwrap().0.into_owned());
    }
    blocks
}

/// Never aborts.
fn on(_: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn restamp(
    input: &Path,
    anchors: &AnchorFile,
) -> Result<(PathBuf, Restamped, Vec<Conversion>), String> {
    let output = input.with_extension("again");
    let mut conversions = Vec::new();
    let mut each = |packet: &Conversion| conversions.push(*packet);
    let restamp = Restamp::survey(input, anchors, &mut on, &mut each);
    let restamp = restamp.map_err(|error| error.to_string())?;
    restamp.write(&output, &mut on).map_err(|error| error.to_string())?;
    Ok((output, restamp.counts(), conversions))
}

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
