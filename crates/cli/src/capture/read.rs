//! Packets of a capture file as lines of text, and in another file (`-r`).

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use wirestamp_capture::file::{FilteredCopy, Reader};
use wirestamp_capture::{CaptureLoss, Error, Stop};

use super::Arguments;
use super::filter::FileFilter;
use super::print::{PrintedPacket, Printer};
use crate::files::is_pipe;
use crate::interrupt::stop_on_signal;
use crate::output::{Output, plural};

/// Where the packets go.
struct Outputs {
    printer: Option<Printer>,
    copy: Option<FilteredCopy>,
    /// Ends the copy before the end of the file.
    stop: Option<Stop>,
}

impl Outputs {
    /// Prints, if packets are printed. A closed standard output ends only the printing if there is a copy.
    fn print(
        &mut self,
        print: impl FnOnce(&mut Printer) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(printer) = &mut self.printer else { return Ok(()) };
        match print(printer) {
            Err(error) if self.copy.is_some() && error.is_broken_pipe() => {
                self.printer = None;
                Ok(())
            }
            printed => printed,
        }
    }
}

/// What was read.
#[derive(Default)]
struct Counts {
    read: u64,
    /// Packets that passed the filter.
    passed: u64,
}

/// Prints the packets of `file` that pass `filter`, or writes them to the file of `-w`.
pub(super) fn run(
    arguments: &Arguments,
    file: &Path,
    filter: Option<String>,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let mut reader = Reader::open(file).context("-r")?;
    let (destination, print) = (&arguments.destination, &arguments.print);
    destination.check_copy(file, reader.is_classic(), arguments.cuts_packets())?;
    arguments.privileges.drop_now(None, false)?;
    let copy = destination.copy(&mut reader)?;
    let prints = copy.is_none() || print.are_requested();
    let mut outputs = Outputs {
        printer: prints.then(|| print.printer(output.verbose, !is_pipe(file))),
        stop: copy.is_some().then(stop_on_signal).transpose()?,
        copy,
    };
    let is_filtered = filter.is_some();
    let mut counts = Counts::default();
    let (filter, limit) = (FileFilter::new(filter), arguments.count);
    let read = read_packets(&mut reader, filter, limit, &mut outputs, &mut counts);
    // The packets before a damaged one are printed and written.
    let printed = outputs.print(Printer::flush);
    outputs.copy.map_or(Ok(()), |copy| copy.finish(&mut reader))?;
    printed.and(read)?;
    output.remark(summary(&counts, reader.path(), is_filtered, destination.path()));
    if let Some(lost) = reader.capture_lost().filter(|lost| *lost > 0) {
        output.remark(format_args!("{} lost by the capture", plural(lost, "packet", "packets")));
    }
    Ok(ExitCode::SUCCESS)
}

fn read_packets(
    reader: &mut Reader,
    mut filter: FileFilter,
    limit: Option<u64>,
    outputs: &mut Outputs,
    counts: &mut Counts,
) -> Result<(), Error> {
    let stop = outputs.stop.clone();
    let is_stopped = || stop.as_ref().is_some_and(Stop::is_requested);
    while limit.is_none_or(|limit| counts.passed < limit) && !is_stopped() {
        let Some(packet) = reader.next_packet()? else {
            return outputs.print(|printer| missed(printer, &reader.take_missed()));
        };
        counts.read += 1;
        outputs.print(|printer| missed(printer, &packet.missed))?;
        let passes = filter.passes(packet.link, &packet.bytes, packet.length)?;
        counts.passed += u64::from(passes);
        if passes && let Some(printer) = &outputs.printer {
            let printed = PrintedPacket {
                time: packet.time,
                error: packet.error,
                link: packet.link,
                bytes: &packet.bytes,
                length: packet.length,
            };
            let (line, number) = (printed.line(printer.style()), packet.interface);
            let name = interface(reader, number);
            outputs.print(|printer| printer.packet(&line, name.as_deref()))?;
        }
        if let Some(copy) = &mut outputs.copy {
            copy.packet(reader, passes)?;
        }
    }
    Ok(())
}

fn missed(printer: &mut Printer, missed: &[CaptureLoss]) -> Result<(), Error> {
    missed.iter().try_for_each(|missed| printer.missed(missed, None))
}

/// Name or number of a packet's interface, if the file has several. The file may contain any name.
fn interface(reader: &Reader, number: usize) -> Option<String> {
    let [_, _, ..] = reader.interfaces() else { return None };
    let interface = reader.interfaces().get(number)?;
    let name = interface.name.as_ref().map(|name| name.escape_debug().to_string());
    Some(name.unwrap_or_else(|| number.to_string()))
}

fn summary(counts: &Counts, path: &Path, is_filtered: bool, copy: Option<&Path>) -> String {
    let read = plural(counts.read, "packet", "packets");
    let path = path.display();
    match copy {
        Some(copy) => {
            format!("{read} read from {path}, {} written to {}", counts.passed, copy.display())
        }
        None if is_filtered => format!("{read} read from {path}, {} printed", counts.passed),
        None => format!("{read} read from {path}"),
    }
}
