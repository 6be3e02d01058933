//! Sample captures and anchors, and the restamping of a capture.

use std::fs::File;
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
use wirestamp_capture::file::{Conversion, Restamp, Restamped};
use wirestamp_clock::AnchorFile;

pub(crate) const START_UTC: i64 = 1_795_269_909_000_000_000;
pub(crate) const SECOND: i64 = 1_000_000_000;
pub(crate) const BOOT: &str = "b-1";

/// Anchors of a clock of 1 GHz, a second apart, which runs 1 ppm slow from the tenth on.
pub(crate) fn anchors(clock: &str, boot_id: &str) -> AnchorFile {
    anchors_at(0..20, clock, boot_id)
}

pub(crate) fn anchors_at(
    seconds: impl Iterator<Item = i64>,
    clock: &str,
    boot_id: &str,
) -> AnchorFile {
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

pub(crate) fn comment_within(
    error_ns: i64,
    raw: i64,
    clock: &str,
) -> EnhancedPacketOption<'static> {
    let text = format!(r#"wirestamp {{"raw":{raw},"clock":"{clock}","error_ns":{error_ns}}}"#);
    EnhancedPacketOption::Common(CommonOption::Comment(text.into()))
}

pub(crate) fn interface(boot_id: &str, resolution: InterfaceTsResolution) -> Block<'static> {
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
pub(crate) fn packet(
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
pub(crate) fn blocks() -> Vec<Block<'static>> {
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

pub(crate) fn write(path: &Path, blocks: &[Block<'_>]) {
    let Block::SectionHeader(first) = &blocks[0] else { panic!("no section") };
    let file = File::create(path).unwrap();
    let mut writer = PcapNgWriter::with_section_header(file, first.clone()).unwrap();
    for block in &blocks[1..] {
        writer.write_block(block).unwrap();
    }
}

pub(crate) fn read(path: &Path) -> Vec<Block<'static>> {
    let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
    let mut blocks = vec![Block::SectionHeader(reader.section().clone())];
    while let Some(block) = reader.next_block() {
        blocks.push(block.unwrap().0.into_owned());
    }
    blocks
}

/// Never aborts.
pub(crate) fn on(_: f64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

pub(crate) fn restamp(
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
