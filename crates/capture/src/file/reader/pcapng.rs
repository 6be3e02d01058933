//! The packets of a pcapng file.

use std::borrow::Cow;
use std::mem;
use std::time::Duration;

use pcap_file::pcapng::{Block, PcapNgReader, PcapNgState};

use super::failure::{Failure, link};
use super::interfaces::Interfaces;
use super::packet::Packet;
use crate::file::copied::Copied;
use crate::file::interface::{DropCount, Interface, obsolete_packet_comments, packet_comments};
use crate::file::source::Bytes;
use crate::file::times::from_epoch;

/// The next packet. Copies it into `bytes`, because the library's borrow cannot be returned from a loop.
pub(super) fn next_packet<'a>(
    reader: &mut PcapNgReader<Bytes>,
    interfaces: &mut Interfaces,
    bytes: &'a mut Vec<u8>,
    mut copied: Option<&mut Copied>,
) -> Result<Option<Packet<'a>>, Failure> {
    loop {
        let Some(block) = next_block(reader, copied.as_deref_mut()) else { return Ok(None) };
        let (block, state) = block?;
        let (packet, data, length) = match block {
            Block::EnhancedPacket(block) => {
                let (id, time) = (block.interface_id, block.timestamp);
                let comments = packet_comments(&block);
                let dropped = DropCount::of(&block);
                let packet = packet_of(id, time, dropped, comments, state, interfaces)?;
                (packet, block.data, block.original_len)
            }
            Block::Packet(block) => {
                let (id, time) = (block.interface_id.into(), block.timestamp);
                let comments = obsolete_packet_comments(&block);
                let dropped = DropCount::Obsolete(block.drop_count);
                let packet = packet_of(id, time, dropped, comments, state, interfaces)?;
                (packet, block.data, block.original_len)
            }
            other => {
                read_other(&other, interfaces, copied.as_deref_mut())?;
                continue;
            }
        };
        let Some(packet) = packet else {
            leave_out(copied.as_deref_mut());
            continue;
        };
        bytes.clear();
        bytes.extend_from_slice(&data);
        return Ok(Some(Packet { bytes: Cow::Borrowed(bytes), length, ..packet }));
    }
}

/// The packet of a block of interface `id`, without its bytes; none if the interface is not selected.
fn packet_of<'c>(
    id: u32,
    time: Duration,
    dropped: DropCount,
    comments: impl Iterator<Item = &'c str>,
    state: &PcapNgState,
    interfaces: &mut Interfaces,
) -> Result<Option<Packet<'static>>, Failure> {
    let index = interfaces.index(id)?;
    if !interfaces.selection.has(index) {
        return Ok(None);
    }
    let time = from_epoch(time)?;
    let interface = &mut interfaces.all[index];
    let missed = interface.read_drop_count(dropped, time);
    interfaces.missed.extend(missed);
    Ok(Some(Packet {
        interface: index,
        time,
        error: interface.count(comments),
        link: link(state.interfaces()[id as usize].linktype)?,
        missed: mem::take(&mut interfaces.missed),
        ..Packet::empty()
    }))
}

/// Reads a block that is not a packet with a time.
fn read_other(
    block: &Block<'_>,
    interfaces: &mut Interfaces,
    copied: Option<&mut Copied>,
) -> Result<(), Failure> {
    match block {
        Block::SectionHeader(_) => interfaces.section = interfaces.all.len(),
        Block::InterfaceDescription(block) => {
            interfaces.add(Interface::from_description(block));
        }
        Block::InterfaceStatistics(block) => {
            let index = interfaces.index(block.interface_id)?;
            let missed = interfaces.all[index].read_statistics(block);
            let is_selected = interfaces.selection.has(index);
            interfaces.missed.extend(missed.filter(|_| is_selected));
        }
        // They belong to the first interface of the section.
        Block::SimplePacket(_) => {
            let index = interfaces.index(0)?;
            leave_out(copied);
            if interfaces.selection.has(index) {
                return Err(Failure::WithoutTime);
            }
        }
        // Blocks without packets, such as names of hosts.
        _ => {}
    }
    Ok(())
}

fn leave_out(copied: Option<&mut Copied>) {
    if let Some(copied) = copied {
        copied.leave_out();
    }
}

/// The next block, which is also copied, if anything is.
fn next_block<'a>(
    reader: &'a mut PcapNgReader<Bytes>,
    copied: Option<&mut Copied>,
) -> Option<Result<(Block<'a>, &'a PcapNgState), Failure>> {
    let Some(copied) = copied else {
        return Some(reader.next_block()?.map_err(Failure::from));
    };
    let block = reader.next_raw_block()?.map_err(Failure::from);
    Some(block.and_then(|(raw, state)| {
        let block = raw.clone().try_into_block(state)?;
        copied.block(&raw, &block)?;
        Ok((block, state))
    }))
}
