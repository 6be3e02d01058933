//! Packets as lines of text (`--print`, `-r`).

mod dump;
mod line;
mod link_header;
mod time;

use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

use clap::{ArgAction, Args};
use wirestamp_capture::{CaptureLoss, CapturedPacket, Error, Sink};
use wirestamp_clock::{Time, Utc};
use wirestamp_packet::LinkType;
use wirestamp_session::Recording;

use self::dump::{Dump, DumpKind};
pub(super) use self::line::{Line, PrintedPacket};
use self::time::{TimeStyle, Times};
use crate::usage::usage;

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
    /// Print the bytes of each packet too, in hex only; otherwise as -X, which has precedence
    #[arg(short = 'x', action = ArgAction::Count)]
    digits: u8,
    /// Print the bytes of each packet too, as ASCII only; otherwise as -X; -X and -x have precedence
    #[arg(short = 'A', action = ArgAction::Count)]
    ascii: u8,
    /// Form of the times: -t none, -tt seconds since 1970, -ttt since the previous packet, -tttt date and time in UTC
    /// (the default), -ttttt since the first packet. The max error of a difference is the sum of both errors
    #[arg(short = 't', action = ArgAction::Count)]
    time: u8,
    /// Print the number of each packet in front of its time
    #[arg(short = '#', long)]
    number: bool,
    /// Write each printed line at once. This is always so for packets of an interface or a pipe, and
    /// with -l for those of a file
    #[arg(short = 'l')]
    line_buffered: bool,
    /// Accepted as by tcpdump, also as -nn: addresses and ports are never converted to names. -b, -f, -H, -K, -N, -O, -S and
    /// -u are accepted too, and change nothing
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
    times: Times,
    /// Number of packets printed, if it is printed too.
    number: Option<u64>,
    out: Box<dyn Write + Send>,
}

impl PrintOptions {
    /// Whether packets are printed.
    pub(super) fn are_requested(&self) -> bool {
        self.print || self.link_header || self.hex > 0 || self.digits > 0 || self.ascii > 0
    }

    /// Rejects a form of times that does not exist.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        match TimeStyle::of(self.time) {
            Some(_) => Ok(()),
            None => Err(usage("-t: the forms are -t, -tt, -ttt, -tttt and -ttttt")),
        }
    }

    /// A printer whose lines are written at once, or collected if `collects` and -l does not prevent it. With `verbose`, it
    /// also prints fields of the IP header.
    pub(super) fn printer(&self, verbose: bool, collects: bool) -> Printer {
        let kinds = [
            (DumpKind::Hex, self.hex),
            (DumpKind::Digits, self.digits),
            (DumpKind::Ascii, self.ascii),
        ];
        let dump = kinds.into_iter().find(|(_, count)| *count > 0);
        let dump = dump.map(|(kind, count)| Dump { kind, with_link_header: count > 1 });
        let style = Style { link_header: self.link_header, ip_header: verbose, dump };
        // Standard output writes at each end of a line.
        let out = io::stdout();
        let out: Box<dyn Write + Send> = if collects && !self.line_buffered {
            Box::new(BufWriter::with_capacity(1 << 16, out))
        } else {
            Box::new(out)
        };
        let times = Times::new(TimeStyle::of(self.time).unwrap_or_default());
        Printer { style, times, number: self.number.then_some(0), out }
    }
}

impl Printer {
    /// Parts of printed packets.
    pub(super) fn style(&self) -> Style {
        self.style
    }

    /// Prints a packet, with the name of its interface if there is one.
    pub(super) fn packet(&mut self, line: &Line, interface: Option<&str>) -> Result<(), Error> {
        let mut text = String::new();
        if let Some(number) = &mut self.number {
            *number += 1;
            let _ = write!(text, "{number:5}  ");
        }
        let time = self.times.next(line.time, line.error);
        for part in time.as_deref().into_iter().chain(interface) {
            let _ = write!(text, "{part} ");
        }
        writeln!(self.out, "{text}{}", line.content).map_err(failed)
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
