//! Packets of a capture file as lines of text, and in another file (`-r`).

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use wirestamp_capture::file::{FilteredCopy, Reader};
use wirestamp_capture::{Error, Stop};

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
    destination.check_copy(file, reader.is_classic())?;
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
    let Outputs { printer, copy, .. } = outputs;
    printer.map_or(Ok(()), |mut printer| printer.flush())?;
    copy.map_or(Ok(()), |copy| copy.finish(&mut reader))?;
    read?;
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
    let Outputs { printer, copy, stop } = outputs;
    let is_stopped = || stop.as_ref().is_some_and(Stop::is_requested);
    while limit.is_none_or(|limit| counts.passed < limit) && !is_stopped() {
        let Some(packet) = reader.next_packet()? else {
            let Some(printer) = printer else { return Ok(()) };
            return reader.take_missed().iter().try_for_each(|missed| printer.missed(missed, None));
        };
        counts.read += 1;
        if let Some(printer) = printer {
            packet.missed.iter().try_for_each(|missed| printer.missed(missed, None))?;
        }
        let passes = filter.passes(packet.link, &packet.bytes, packet.length)?;
        counts.passed += u64::from(passes);
        if passes && let Some(printer) = printer {
            let printed = PrintedPacket {
                time: packet.time,
                error: packet.error,
                link: packet.link,
                bytes: &packet.bytes,
                length: packet.length,
            };
            let (line, number) = (printed.line(printer.style()), packet.interface);
            printer.packet(&line, interface(reader, number).as_deref())?;
        }
        if let Some(copy) = copy {
            copy.packet(reader, passes)?;
        }
    }
    Ok(())
}

/// Name or number of a packet's interface, if the file has several.
fn interface(reader: &Reader, number: usize) -> Option<String> {
    let [_, _, ..] = reader.interfaces() else { return None };
    let interface = reader.interfaces().get(number)?;
    Some(interface.name.clone().unwrap_or_else(|| number.to_string()))
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
