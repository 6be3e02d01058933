//! The CSV file of `--csv`: a row for each packet.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use wirestamp_capture::Error;
use wirestamp_capture::layers::{Direction, Journey, Point, Reasons};
use wirestamp_packet::{IdentityKey, LinkType, Packet};

use super::statistics::PacketOutcome;

/// The spans with a column: from each point to the next, then from the first to the last.
fn spans(direction: Direction) -> [(Point, Point); 4] {
    let [a, b, c, d] = direction.points();
    [(a, b), (b, c), (c, d), (a, d)]
}

fn header(direction: Direction) -> String {
    let spans = spans(direction).map(|(from, to)| format!("{}_{}_ns", from.name(), to.name()));
    format!(
        "monotonic_ns,source,destination,protocol,length,identity,{},end,point,reason",
        spans.join(",")
    )
}

/// The file.
pub(super) struct Csv<W = BufWriter<File>> {
    path: PathBuf,
    out: W,
}

impl Csv {
    /// Creates the file.
    pub(super) fn create(path: &Path, direction: Direction) -> Result<Self, Error> {
        let path = path.to_owned();
        let begun = File::create(&path).map(BufWriter::new).and_then(|mut out| {
            writeln!(out, "{}", header(direction))?;
            Ok(out)
        });
        match begun {
            Ok(out) => Ok(Self { path, out }),
            Err(cause) => Err(Error::Write { path, cause }),
        }
    }
}

impl<W: Write> Csv<W> {
    /// Adds a packet.
    pub(super) fn record(&mut self, journey: &Journey, reasons: &Reasons) -> Result<(), Error> {
        write(&mut self.out, journey, reasons)
            .map_err(|cause| Error::Write { path: self.path.clone(), cause })
    }

    /// Flushes the file.
    pub(super) fn finish(mut self) -> Result<(), Error> {
        self.out.flush().map_err(|cause| Error::Write { path: self.path, cause })
    }
}

/// Writes a row. Unknown values leave their column empty.
fn write(out: &mut impl Write, journey: &Journey, reasons: &Reasons) -> io::Result<()> {
    write!(out, "{},", text(journey.times.into_iter().flatten().next()))?;
    match Packet::parse(LinkType::Ethernet, &journey.head) {
        Ok(packet) => {
            let flow = packet.flow();
            let identity = packet.identity(IdentityKey::default());
            let identity = identity.map_or(String::new(), |id| format!("{:016x}", id.0));
            let (source, destination) = (flow.source, flow.destination);
            let length = journey.length;
            write!(out, "{source},{destination},{},{length},{identity}", flow.protocol)?;
        }
        Err(_) => write!(out, ",,,{},", journey.length)?,
    }
    for (from, to) in spans(journey.direction) {
        write!(out, ",{}", text(journey.between(from, to)))?;
    }
    let PacketOutcome { end, point, reason } = PacketOutcome::of(journey, reasons);
    let point = point.map_or("", Point::name);
    writeln!(out, ",{},{point},{}", end.name(), reason.unwrap_or_default())
}

fn text(value: Option<u64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use wirestamp_capture::layers::End;

    use super::*;

    #[test]
    fn unknown_value_leaves_its_column_empty() {
        let row = |times, end, head: &[u8]| {
            let mut row = Vec::new();
            let (direction, head) = (Direction::In, head.to_vec());
            let (own, card, length, reason) = ([0; 4], None, 60, 5);
            let journey = Journey { direction, times, own, card, length, end, reason, head };
            write(&mut row, &journey, &Reasons::default()).unwrap();
            String::from_utf8(row).unwrap()
        };
        assert_eq!(
            row([None, Some(7), Some(10), None], End::Dropped, &[]),
            "7,,,,60,,,3,,,dropped,socket,0x5\n"
        );
        // A UDP datagram without data (RFC 768) in IPv4.
        let mut frame = [0; 42];
        frame[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
        frame[17..24].copy_from_slice(&[28, 0, 0, 0, 0, 64, 17]);
        frame[26..42].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2, 0, 5, 0, 6, 0, 8, 0, 0]);
        let known = row([Some(1), Some(3), Some(6), Some(10)], End::Read, &frame);
        assert!(known.starts_with("1,10.0.0.1:5,10.0.0.2:6,17,60,"), "{known}");
        assert!(known.ends_with(",2,3,4,9,read,application,\n"), "{known}");
        assert_eq!(known.split(',').count(), header(Direction::In).split(',').count());
    }

    #[test]
    fn time_columns_are_named_after_points() {
        assert!(header(Direction::In).contains(",driver_stack_ns,stack_socket_ns,"));
        assert!(header(Direction::Out).contains(",driver_sent_ns,socket_sent_ns,end,"));
    }
}
