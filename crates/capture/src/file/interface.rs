//! An interface in a capture file, with its packet counts.

use std::mem;
use std::time::Duration;

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use pcap_file::pcapng::blocks::packet::{PacketBlock, PacketOption};
use wirestamp_clock::{Span, Time, Utc};

use super::times::from_epoch;
use super::{Provenance, comment, raw};
use crate::{CaptureLoss, Ledger};

/// Drop count of an obsolete Packet Block if it was not available to the writer (draft-ietf-opsawg-pcapng, appendix on
/// this block).
const UNKNOWN_DROP_COUNT: u16 = u16::MAX;

/// Packets dropped between the previous packet of the interface and this one.
#[derive(Clone, Copy, Debug)]
pub(super) enum DropCount {
    /// Field of an obsolete Packet Block.
    Obsolete(u16),
    /// Option of an Enhanced Packet Block (epb_dropcount), which most packets do not have.
    Enhanced(Option<u64>),
}

impl DropCount {
    pub(super) fn of(packet: &EnhancedPacketBlock<'_>) -> Self {
        Self::Enhanced(packet.options.iter().find_map(|option| match option {
            EnhancedPacketOption::DropCount(count) => Some(*count),
            _ => None,
        }))
    }
}

/// An interface of a capture file, as far as the file has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name, if the file has it.
    pub name: Option<String>,
    /// The clock of its stamps, with the max error of the packets read so far. None in files of other programs.
    pub provenance: Option<Provenance>,
    /// The ledger of the whole capture, if it has been read.
    pub ledger: Option<Ledger>,
    /// Packets read so far.
    pub packets: u64,
    /// The error of packets without an error of their own.
    default_error: Option<Span>,
    /// Packets dropped by the operating system, if the file has the count, and the time of that count.
    dropped: Option<u64>,
    dropped_by: Option<Time<Utc>>,
    /// Time of the last packet read.
    last_packet: Option<Time<Utc>>,
    /// Packets dropped by the interface, if the file has the count. dumpcap writes those of libpcap's buffer here.
    interface_dropped: Option<u64>,
    /// Start of the capture, if the file has it.
    started: Option<Duration>,
    /// Whether the file's final max error has been read.
    is_final: bool,
}

impl Interface {
    /// Packets missing in the file, as far as it has been read; none if the file does not say it.
    #[must_use]
    pub fn capture_lost(&self) -> Option<u64> {
        let ledger = self.ledger.map(|ledger| ledger.lost());
        ledger.or(self.dropped).or(self.interface_dropped)
    }

    /// Whether `later`, of another file, belongs to the same capture, whose counts include those of this file.
    pub(super) fn continues_in(&self, later: &Self) -> bool {
        self.started.is_some() && (&self.name, self.started) == (&later.name, later.started)
    }

    #[cfg(test)]
    pub(super) fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..Self::default() }
    }

    pub(super) fn from_description(block: &InterfaceDescriptionBlock<'_>) -> Self {
        let name = block.options.iter().find_map(|option| match option {
            InterfaceDescriptionOption::IfName(name) => Some(name.clone().into_owned()),
            _ => None,
        });
        let provenance = description_comments(block).find_map(Provenance::from_comment);
        let default_error =
            provenance.as_ref().map(|provenance| Span::from_nanos(provenance.error_ns));
        Self { name, provenance, default_error, ..Self::default() }
    }

    /// Counts a packet with these comments, and returns the max error of its time, if known.
    pub(super) fn count<'a>(
        &mut self,
        mut comments: impl Iterator<Item = &'a str>,
    ) -> Option<Span> {
        self.packets += 1;
        let packet_error = comments.find_map(raw::error_of);
        if let (Some(packet_error), Some(provenance)) = (packet_error, &mut self.provenance) {
            provenance.error_ns = provenance.error_ns.max(packet_error);
        }
        packet_error.map(Span::from_nanos).or(self.default_error)
    }

    /// Reads statistics. Counts start with the capture, so the last statistics are valid. The largest of their
    /// errors holds for all packets. Returns the packets dropped since the previous statistics.
    pub(super) fn read_statistics(
        &mut self,
        block: &InterfaceStatisticsBlock<'_>,
    ) -> Option<CaptureLoss> {
        let mut missed = None;
        for option in &block.options {
            match option {
                InterfaceStatisticsOption::IsbOsDrop(dropped) => {
                    missed = self.read_dropped(*dropped, from_epoch(block.timestamp).ok());
                }
                InterfaceStatisticsOption::IsbStartTime(time) => self.started = Some(*time),
                InterfaceStatisticsOption::IsbIfDrop(dropped) => {
                    self.interface_dropped = Some(*dropped);
                }
                InterfaceStatisticsOption::Common(CommonOption::Comment(text)) => {
                    self.read_comment(text);
                }
                _ => {}
            }
        }
        missed
    }

    /// Reads the packets dropped between the previous packet and one of `time`.
    pub(super) fn read_drop_count(
        &mut self,
        count: DropCount,
        time: Time<Utc>,
    ) -> Option<CaptureLoss> {
        let previous = self.last_packet.replace(time);
        let count = match count {
            DropCount::Obsolete(UNKNOWN_DROP_COUNT) | DropCount::Enhanced(None) => return None,
            DropCount::Obsolete(count) => u64::from(count),
            DropCount::Enhanced(Some(count)) => {
                self.dropped_by = previous;
                count
            }
        };
        let dropped = self.dropped.unwrap_or(0).saturating_add(count);
        self.read_dropped(dropped, Some(time))
    }

    fn read_dropped(&mut self, dropped: u64, by: Option<Time<Utc>>) -> Option<CaptureLoss> {
        let before = self.dropped.replace(dropped).unwrap_or(0);
        let packets = dropped.saturating_sub(before);
        let (from, until) = (mem::replace(&mut self.dropped_by, by)?, by?);
        (packets > 0).then(|| CaptureLoss {
            from: from.min(until),
            until: until.max(from),
            packets,
        })
    }

    fn read_comment(&mut self, text: &str) {
        if let Some(ledger) = comment::read_ledger(text) {
            self.ledger = Some(ledger);
        } else if let Some(mut last) = Provenance::from_comment(text) {
            if let Some(before) = self.provenance.take().filter(|_| self.is_final) {
                last.error_ns = last.error_ns.max(before.error_ns);
            }
            self.provenance = Some(last);
            self.is_final = true;
        }
    }
}

pub(super) fn description_comments<'a>(
    block: &'a InterfaceDescriptionBlock<'_>,
) -> impl Iterator<Item = &'a str> {
    block.options.iter().filter_map(|option| match option {
        InterfaceDescriptionOption::Common(CommonOption::Comment(text)) => Some(&**text),
        _ => None,
    })
}

pub(super) fn packet_comments<'a>(
    packet: &'a EnhancedPacketBlock<'_>,
) -> impl Iterator<Item = &'a str> {
    packet.options.iter().filter_map(|option| match option {
        EnhancedPacketOption::Common(CommonOption::Comment(text)) => Some(&**text),
        _ => None,
    })
}

pub(super) fn obsolete_packet_comments<'a>(
    packet: &'a PacketBlock<'_>,
) -> impl Iterator<Item = &'a str> {
    packet.options.iter().filter_map(|option| match option {
        PacketOption::Common(CommonOption::Comment(text)) => Some(&**text),
        _ => None,
    })
}
