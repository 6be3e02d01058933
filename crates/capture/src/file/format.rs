//! The formats that captures are written in.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Duration;

use super::Provenance;
use super::buffer::FirstOf;
use super::pcap::{self, Precision};
use super::pcapng::{self, Section, Statistics};
use super::raw::PacketComment;
use crate::{CapturedPacket, Error, Facts};

/// A file format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// pcapng with nanoseconds: the only one with room for all that is known of the stamps.
    #[default]
    Pcapng,
    /// Classic pcap with nanoseconds. It has no room for method, clock, error and losses.
    Pcap,
    /// Classic pcap with microseconds, for readers that know no other; times are cut to them.
    PcapMicros,
}

impl Format {
    const ALL: [Self; 3] = [Self::Pcapng, Self::Pcap, Self::PcapMicros];

    /// The name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pcapng => "pcapng",
            Self::Pcap => "pcap",
            Self::PcapMicros => "pcap-us",
        }
    }

    /// Whether it carries only packets and times, and nothing of what they are worth.
    #[must_use]
    pub fn is_classic(self) -> bool {
        self != Self::Pcapng
    }

    pub(super) fn first_of(self) -> FirstOf {
        if self.is_classic() { pcap::first_of } else { pcapng::first_of }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            Error::NoSuchName { what: "file format", name: name.to_owned(), known }
        })
    }
}

/// Encodes a file.
pub(super) enum Encoder {
    Pcapng(Section),
    Pcap(Precision),
}

impl Encoder {
    /// Appends what stands before the first packet.
    pub(super) fn begin(
        format: Format,
        into: &mut Vec<u8>,
        facts: &Facts,
        provenance: &Provenance,
    ) -> io::Result<Self> {
        let precision = match format {
            Format::Pcapng => return Section::begin(into, facts, provenance).map(Self::Pcapng),
            Format::Pcap => Precision::Nano,
            Format::PcapMicros => Precision::Micro,
        };
        pcap::begin(into, precision, facts.snaplen);
        Ok(Self::Pcap(precision))
    }

    /// Appends a packet. It allocates nothing as long as there is room.
    pub(super) fn packet(
        &self,
        into: &mut Vec<u8>,
        packet: &CapturedPacket<'_>,
        said: Option<&PacketComment<'_>>,
    ) {
        match self {
            Self::Pcapng(_) => pcapng::packet(into, packet, said),
            Self::Pcap(precision) => pcap::packet(into, *precision, packet),
        }
    }

    /// Appends that the capture had lost so many packets at a time, where the format has room.
    pub(super) fn lost_by(
        &mut self,
        into: &mut Vec<u8>,
        time: Duration,
        lost: u64,
    ) -> io::Result<()> {
        match self {
            Self::Pcapng(section) => section.lost_by(into, time, lost),
            Self::Pcap(_) => Ok(()),
        }
    }

    /// Appends what stands after the last packet.
    pub(super) fn end(&mut self, into: &mut Vec<u8>, said: &Statistics<'_>) -> io::Result<()> {
        match self {
            Self::Pcapng(section) => section.end(into, said),
            Self::Pcap(_) => Ok(()),
        }
    }
}
