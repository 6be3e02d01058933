//! Formats of capture files.

use std::io;
use std::str::FromStr;
use std::time::Duration;

use strum::{Display, IntoStaticStr};

use super::Provenance;
use super::buffer::RecordParser;
use super::pcap::{self, Precision};
use super::pcapng::{self, Section, Statistics};
use super::raw::PacketComment;
use crate::{CapturedPacket, Error, Facts};

/// A file format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Display, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Format {
    /// pcapng with nanoseconds: the only format with room for the properties of the stamps.
    #[default]
    Pcapng,
    /// Classic pcap with nanoseconds. It has no room for method, clock, error and losses.
    Pcap,
    /// Classic pcap with microseconds, for readers without nanosecond support; times are truncated.
    #[strum(serialize = "pcap-us")]
    PcapMicros,
}

impl Format {
    const ALL: [Self; 3] = [Self::Pcapng, Self::Pcap, Self::PcapMicros];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Whether the format has only packets and times, without the properties of the stamps.
    #[must_use]
    pub fn is_classic(self) -> bool {
        self != Self::Pcapng
    }

    pub(super) fn parse_record(self) -> RecordParser {
        if self.is_classic() { pcap::parse_record } else { pcapng::parse_record }
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::NoSuchName { what: "file format", name: name.to_owned(), known: names }
        })
    }
}

/// Encodes a file.
pub(super) enum Encoder {
    Pcapng(Section),
    Pcap(Precision),
}

impl Encoder {
    /// Appends the header before the first packet. Classic formats have room for one interface.
    pub(super) fn begin<'a>(
        format: Format,
        into: &mut Vec<u8>,
        mut interfaces: impl Iterator<Item = (&'a Facts, &'a Provenance)>,
    ) -> io::Result<Self> {
        let precision = match format {
            Format::Pcapng => return Section::begin(into, interfaces).map(Self::Pcapng),
            Format::Pcap => Precision::Nano,
            Format::PcapMicros => Precision::Micro,
        };
        let (Some((facts, _)), None) = (interfaces.next(), interfaces.next()) else {
            return Err(io::Error::other(format!("{format} files have one interface; use pcapng")));
        };
        pcap::begin(into, precision, facts.snaplen, facts.link);
        Ok(Self::Pcap(precision))
    }

    /// Appends a packet of an interface. Allocates nothing while there is room.
    pub(super) fn packet(
        &self,
        into: &mut Vec<u8>,
        interface: u32,
        packet: &CapturedPacket<'_>,
        comment: Option<&PacketComment<'_>>,
    ) {
        match self {
            Self::Pcapng(_) => pcapng::packet(into, interface, packet, comment),
            Self::Pcap(precision) => pcap::packet(into, *precision, packet),
        }
    }

    /// Appends the number of an interface's packets that the capture had lost up to a time, if the format can store it.
    pub(super) fn lost_by(
        &mut self,
        into: &mut Vec<u8>,
        interface: u32,
        time: Duration,
        lost: u64,
    ) -> io::Result<()> {
        match self {
            Self::Pcapng(section) => section.lost_by(into, interface, time, lost),
            Self::Pcap(_) => Ok(()),
        }
    }

    /// Appends the statistics of an interface after the last packet.
    pub(super) fn end(
        &mut self,
        into: &mut Vec<u8>,
        interface: u32,
        statistics: &Statistics<'_>,
    ) -> io::Result<()> {
        match self {
            Self::Pcapng(section) => section.end(into, interface, statistics),
            Self::Pcap(_) => Ok(()),
        }
    }
}
