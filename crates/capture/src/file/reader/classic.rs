//! The packets of a classic pcap.

use std::time::Duration;

use pcap_file::pcap::{
    PcapHeader, PcapReader, PcapTsResolution, PcapValidationError, RawPcapPacket,
};

use super::failure::{Failure, link, reason};
use super::interfaces::Interfaces;
use super::packet::Packet;
use crate::file::copied::Copied;
use crate::file::source::Bytes;
use crate::file::times::from_epoch;

/// The next packet. Tolerates what tcpdump and tshark tolerate: a fraction of a second or more, which is added, and a
/// length on the wire below the captured one, which is at least that long.
pub(super) fn next_packet<'a>(
    reader: &'a mut PcapReader<Bytes>,
    interfaces: &mut Interfaces,
    copied: Option<&mut Copied>,
) -> Result<Option<Packet<'a>>, Failure> {
    let PcapHeader { datalink, snaplen, ts_resolution, .. } = reader.header();
    let link = link(datalink)?;
    let is_selected = interfaces.selection.has(0);
    let Some(packet) = reader.next_raw_packet().filter(|_| is_selected) else { return Ok(None) };
    let packet = packet.map_err(|e| reason(&e))?;
    if packet.incl_len > snaplen {
        let error = PcapValidationError::IncludedLenTooBig(packet.incl_len, snaplen);
        return Err(reason(&error).into());
    }
    if let Some(copied) = copied {
        copied.record(&packet);
    }
    let RawPcapPacket { ts_sec, ts_frac, incl_len, orig_len, data } = packet;
    let fraction = match ts_resolution {
        PcapTsResolution::MicroSecond => Duration::from_micros(ts_frac.into()),
        PcapTsResolution::NanoSecond => Duration::from_nanos(ts_frac.into()),
    };
    interfaces.all[0].packets += 1;
    Ok(Some(Packet {
        interface: 0,
        time: from_epoch(Duration::from_secs(ts_sec.into()) + fraction)?,
        error: None,
        link,
        length: orig_len.max(incl_len),
        bytes: data,
        missed: Vec::new(),
    }))
}
