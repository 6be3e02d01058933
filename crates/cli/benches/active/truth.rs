//! Truth of each packet, from a capture at each end of each direction.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow, ensure};
use wirestamp_capture::file::Reader;
use wirestamp_lab::{EGRESS, Netns, PathLab, SOURCE_INTERFACE, TAP_A, TAP_B};
use wirestamp_studies::tester::Tool;

use crate::contenders::{Contender, Figures};
use crate::spread::{median, real};

/// The running reference captures.
pub(crate) struct Witnesses {
    folder: tempfile::TempDir,
    captures: Vec<Tool>,
}

/// Direction: packets to the reflector's port, or from it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    There,
    Back,
}

/// Points of the captures, in the order of a packet's path. All are receiving interfaces, where the kernel stamps
/// a packet when it gets it from the driver.
const PLACES: [(&str, Way); 4] =
    [(TAP_A, Way::There), (TAP_B, Way::There), (EGRESS, Way::Back), (SOURCE_INTERFACE, Way::Back)];

/// The true delays of a test, packet by packet, in nanoseconds.
pub(crate) struct Truth {
    there: Vec<f64>,
    back: Vec<f64>,
    /// Time from a packet's arrival at the reflector's interface to the departure of its answer.
    within: Vec<f64>,
}

impl Witnesses {
    pub(crate) fn start(lab: &PathLab, contender: Contender) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let start = |at: &Netns, interface: &str| {
            let mut command = at.command(env!("CARGO_BIN_EXE_wirestamp"));
            command.args(["capture", "--method", "ring", "--stamp", "kernel", "--snaplen", "128"]);
            command.args(["-i", interface, "-w"]).arg(folder.path().join(interface));
            command.arg(format!("udp port {}", contender.port()));
            Tool::start(
                "wirestamp capture",
                &mut command,
                "capturing on",
                Duration::from_millis(60),
            )
        };
        let captures = vec![
            start(lab.router(), TAP_A)?,
            start(lab.sink(), TAP_B)?,
            start(lab.router(), EGRESS)?,
            start(lab.source(), SOURCE_INTERFACE)?,
        ];
        Ok(Self { folder, captures })
    }

    /// The reference delays of a test of this number of packets.
    pub(crate) fn end(self, contender: Contender, packets: u32) -> anyhow::Result<Truth> {
        let Self { folder, captures } = self;
        for capture in captures {
            capture.rest()?;
            capture.stop()?;
        }
        let mut all = Vec::new();
        for (interface, way) in PLACES {
            all.push(sightings(&folder.path().join(interface), contender, way)?);
        }
        let all: [_; 4] = all.try_into().map_err(|_| anyhow!("four places have four records"))?;
        let wanted = usize::try_from(packets)?;
        // Our sender sends one more packet after the test, to get the send time of the reflector's last answer.
        let all = all.map(|mut stamps: Vec<i64>| {
            stamps.truncate(wanted);
            stamps
        });
        let lengths = all.each_ref().map(Vec::len);
        // irtt sends for a given time, and sends fewer packets if it is late. The path loses none.
        let [first, ..] = lengths;
        let is_whole = first > 0 && lengths == [first; 4];
        ensure!(is_whole, "of {packets} packets, the captures saw {lengths:?}");
        let [left, reached, returned, came] = all;
        let between = |from: &[i64], to: &[i64]| -> Vec<f64> {
            let difference = |(from, to): (&i64, &i64)| -> f64 {
                let nanos = to - from;
                real(nanos.unsigned_abs()).copysign(if nanos < 0 { -1.0 } else { 1.0 })
            };
            from.iter().zip(to).map(difference).collect()
        };
        Ok(Truth {
            there: between(&left, &reached),
            back: between(&returned, &came),
            within: between(&reached, &returned),
        })
    }
}

impl Truth {
    /// How many packets there were.
    pub(crate) fn packets(&self) -> usize {
        self.there.len()
    }

    /// The round trip as this contender understands it.
    pub(crate) fn round_trip(&self, contender: Contender) -> anyhow::Result<Figures> {
        let within = if contender.counts_the_reflector() { 1.0 } else { 0.0 };
        let ways = self.there.iter().zip(&self.back).zip(&self.within);
        figures(ways.map(|((there, back), inside)| there + back + within * inside).collect())
    }

    pub(crate) fn there(&self) -> anyhow::Result<Figures> {
        figures(self.there.clone())
    }

    pub(crate) fn back(&self) -> anyhow::Result<Figures> {
        figures(self.back.clone())
    }
}

fn figures(mut values: Vec<f64>) -> anyhow::Result<Figures> {
    values.sort_by(f64::total_cmp);
    let median = median(&values).context("no packets")?;
    Ok(Figures { mean: values.iter().sum::<f64>() / real(values.len() as u64), median })
}

/// Stamps of the test's packets of one direction in a file, in order. The path neither loses nor reorders packets,
/// so the packets of all files correspond by position.
fn sightings(file: &Path, contender: Contender, way: Way) -> anyhow::Result<Vec<i64>> {
    let mut reader = Reader::open(file)?;
    let mut sightings = Vec::new();
    while let Some(packet) = reader.next_packet()? {
        let Some([from, to, payload]) = ports(&packet.bytes) else { continue };
        let port = if way == Way::There { to } else { from };
        if payload == contender.payload() && port == contender.port() {
            sightings.push(packet.time.as_nanos());
        }
    }
    ensure!(reader.capture_lost() == Some(0), "a capture lost packets; is the machine busy?");
    Ok(sightings)
}

/// Source port, destination port and payload's length of UDP over IPv4 over Ethernet.
fn ports(frame: &[u8]) -> Option<[u16; 3]> {
    let ip = frame.get(14..)?;
    let header = usize::from(ip.first()? & 0x0f) * 4;
    let word =
        |at: usize| Some(u16::from_be_bytes([*ip.get(header + at)?, *ip.get(header + at + 1)?]));
    Some([word(0)?, word(2)?, word(4)?.checked_sub(8)?])
}
