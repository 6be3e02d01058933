//! What a file says of an interface and its packets.

use std::mem;

use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::blocks::interface_statistics::{
    InterfaceStatisticsBlock, InterfaceStatisticsOption,
};
use pcap_file::pcapng::blocks::opt_common::CommonOption;
use wirestamp_clock::{Span, Time, Utc};

use super::times::from_epoch;
use super::{Provenance, account, raw};
use crate::{CaptureLoss, Ledger};

/// An interface of a capture file, as far as the file has been read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Its name, if the file says it.
    pub name: Option<String>,
    /// Which clock stamped its packets, with a bound of the error of those that have been read.
    /// None in files of other programs.
    pub provenance: Option<Provenance>,
    /// Where the packets of the whole capture went, if the file has got to that.
    pub ledger: Option<Ledger>,
    /// Its packets that have been read.
    pub packets: u64,
    /// The error of packets that do not state their own.
    stated: Option<Span>,
    /// Packets that the file says the operating system dropped, and by when.
    dropped: u64,
    dropped_by: Option<Time<Utc>>,
    /// Whether the file has had its say on the largest error.
    concluded: bool,
}

impl Interface {
    /// Packets that should have been in the file and, as it says so far, are not.
    #[must_use]
    pub fn capture_lost(&self) -> u64 {
        self.ledger.map_or(self.dropped, |ledger| ledger.lost())
    }

    pub(super) fn described(block: &InterfaceDescriptionBlock<'_>) -> Self {
        let name = block.options.iter().find_map(|option| match option {
            InterfaceDescriptionOption::IfName(name) => Some(name.clone().into_owned()),
            _ => None,
        });
        let provenance = description_comments(block).find_map(Provenance::from_comment);
        let stated = provenance.as_ref().map(|said| Span::from_nanos(said.error_ns));
        Self { name, provenance, stated, ..Self::default() }
    }

    /// Takes note of a packet, and says how far off its time can be, if that is known.
    pub(super) fn count(&mut self, packet: &EnhancedPacketBlock<'_>) -> Option<Span> {
        self.packets += 1;
        let own = packet_comments(packet).find_map(raw::error_of);
        if let (Some(own), Some(of_all)) = (own, &mut self.provenance) {
            of_all.error_ns = of_all.error_ns.max(own);
        }
        own.map(Span::from_nanos).or(self.stated)
    }

    /// Takes note of statistics. They count from the beginning of the capture, so of several the
    /// last has the right counts; of their errors the largest holds for all packets. Returns what was
    /// dropped since the statistics before these.
    pub(super) fn note(&mut self, block: &InterfaceStatisticsBlock<'_>) -> Option<CaptureLoss> {
        let mut missed = None;
        for option in &block.options {
            match option {
                InterfaceStatisticsOption::IsbOsDrop(dropped) => {
                    missed = self.note_dropped(*dropped, from_epoch(block.timestamp).ok());
                }
                InterfaceStatisticsOption::Common(CommonOption::Comment(text)) => {
                    self.note_comment(text);
                }
                _ => {}
            }
        }
        missed
    }

    fn note_dropped(&mut self, dropped: u64, by: Option<Time<Utc>>) -> Option<CaptureLoss> {
        let packets = dropped.saturating_sub(mem::replace(&mut self.dropped, dropped));
        let (from, until) = (mem::replace(&mut self.dropped_by, by)?, by?);
        (packets > 0).then(|| CaptureLoss {
            from: from.min(until),
            until: until.max(from),
            packets,
        })
    }

    fn note_comment(&mut self, text: &str) {
        if let Some(ledger) = account::read(text) {
            self.ledger = Some(ledger);
        } else if let Some(mut last) = Provenance::from_comment(text) {
            if let Some(before) = self.provenance.take().filter(|_| self.concluded) {
                last.error_ns = last.error_ns.max(before.error_ns);
            }
            self.provenance = Some(last);
            self.concluded = true;
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
