//! Packets as lines of text (`--print`, `-r`).

mod dump;
mod line;
mod link_header;

use std::io::{self, BufWriter, Write};

use clap::{ArgAction, Args};
use wirestamp_capture::{CaptureLoss, CapturedPacket, Error, Sink};
use wirestamp_clock::{Time, Utc};
use wirestamp_packet::LinkType;
use wirestamp_session::Recording;

use self::dump::{Dump, DumpKind};
pub(super) use self::line::{Line, PrintedPacket};

/// Options of printed packets, with the letters of tcpdump.
#[derive(Args)]
#[command(next_help_heading = "Printed packets")]
pub(super) struct PrintOptions {
    /// Print a line for each packet: time and its max error, protocol, addresses, lengths; with
    /// --verbose also TTL, identification, flags and length of the IP header
    #[arg(long)]
    print: bool,
    /// Print the link-layer header too; implies --print
    #[arg(short = 'e')]
    link_header: bool,
    /// Print the bytes of each packet too, in hex and ASCII, without its link-layer header; with -XX
    /// including that header; implies --print
    #[arg(short = 'X', action = ArgAction::Count)]
    hex: u8,
    /// Print the bytes of each packet too, as ASCII only; otherwise as -X, which has precedence
    #[arg(short = 'A', action = ArgAction::Count)]
    ascii: u8,
    /// Write each printed line at once. This is always so for packets of an interface or a pipe, and
    /// with -l for those of a file
    #[arg(short = 'l')]
    line_buffered: bool,
    /// Accepted as by tcpdump, also as -nn: addresses and ports are never converted to names
    #[arg(short = 'n', action = ArgAction::Count)]
    numeric: u8,
}

/// Parts of a printed packet, beside its time and its content.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Style {
    /// The link-layer header.
    link_header: bool,
    /// Fields of the IP header.
    ip_header: bool,
    /// The bytes.
    dump: Option<Dump>,
}

/// Prints packets to standard output.
pub(super) struct Printer {
    style: Style,
    out: Box<dyn Write + Send>,
}

impl PrintOptions {
    /// Whether packets are printed.
    pub(super) fn are_requested(&self) -> bool {
        self.print || self.link_header || self.hex > 0 || self.ascii > 0
    }

    /// A printer whose lines are written at once, or collected if `collects` and -l does not prevent it. With `verbose`, it
    /// also prints fields of the IP header.
    pub(super) fn printer(&self, verbose: bool, collects: bool) -> Printer {
        let dump = match (self.hex, self.ascii) {
            (0, 0) => None,
            (0, count) => Some(Dump { kind: DumpKind::Ascii, with_link_header: count > 1 }),
            (count, _) => Some(Dump { kind: DumpKind::Hex, with_link_header: count > 1 }),
        };
        let style = Style { link_header: self.link_header, ip_header: verbose, dump };
        // Standard output writes at each end of a line.
        let out = io::stdout();
        let out: Box<dyn Write + Send> = if collects && !self.line_buffered {
            Box::new(BufWriter::with_capacity(1 << 16, out))
        } else {
            Box::new(out)
        };
        Printer { style, out }
    }
}

impl Printer {
    /// Parts of printed packets.
    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// Prints a packet, with the name of its interface if there is one.
    pub(super) fn packet(&mut self, line: &Line, interface: Option<&str>) -> Result<(), Error> {
        let Line { time, content } = line;
        let printed = match interface {
            Some(interface) => writeln!(self.out, "{time} {interface} {content}"),
            None => writeln!(self.out, "{time} {content}"),
        };
        printed.map_err(failed)
    }

    /// Prints a loss of the capture, with the name of its interface if there is one.
    pub(super) fn missed(
        &mut self,
        missed: &CaptureLoss,
        interface: Option<&str>,
    ) -> Result<(), Error> {
        let interface = interface.map(|interface| format!(" on {interface}")).unwrap_or_default();
        writeln!(self.out, "{}{interface}", line::of_loss(missed)).map_err(failed)
    }

    /// Writes the lines that were collected.
    pub(super) fn flush(&mut self) -> Result<(), Error> {
        self.out.flush().map_err(failed)
    }
}

fn failed(cause: io::Error) -> Error {
    Error::Write { path: "-".into(), cause }
}

/// A recording whose packets are also printed, if requested.
pub(super) struct Printing<'a> {
    recording: Recording<'a>,
    link: LinkType,
    printer: Option<Printer>,
}

impl<'a> Printing<'a> {
    /// Prints packets of this link type, if there is a printer.
    pub(super) fn new(recording: Recording<'a>, link: LinkType, printer: Option<Printer>) -> Self {
        Self { recording, link, printer }
    }

    /// The recording, when all packets are printed.
    pub(super) fn into_recording(self) -> Recording<'a> {
        self.recording
    }
}

impl Sink for Printing<'_> {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        self.recording.packet(packet)?;
        let Some(printer) = &mut self.printer else { return Ok(()) };
        let printed = PrintedPacket::of(packet, self.link);
        printer.packet(&printed.line(printer.style), None)
    }

    fn missed(&mut self, missed: &CaptureLoss) -> Result<(), Error> {
        self.recording.missed(missed)?;
        self.printer.as_mut().map_or(Ok(()), |printer| printer.missed(missed, None))
    }

    fn complete(&mut self, until: Time<Utc>) -> Result<(), Error> {
        self.recording.complete(until)
    }

    fn pause(&mut self) -> Result<(), Error> {
        self.recording.pause()
    }

    fn end(&mut self) -> Result<(), Error> {
        self.recording.end()
    }

    fn lost(&self) -> u64 {
        self.recording.lost()
    }
}
