//! Packets of a capture file as lines of text (`-r`).

use std::path::Path;
use std::process::ExitCode;

use wirestamp_capture::Error;
use wirestamp_capture::file::Reader;

use super::filter::FileFilter;
use super::print::{PrintedPacket, Printer};
use crate::output::{Output, plural};

/// What was read.
#[derive(Default)]
struct Counts {
    read: u64,
    printed: u64,
}

/// Prints the packets of `reader` that pass `filter`, at most `limit`.
pub(super) fn print(
    mut reader: Reader,
    filter: Option<String>,
    limit: Option<u64>,
    mut printer: Printer,
    output: Output,
) -> anyhow::Result<ExitCode> {
    let is_filtered = filter.is_some();
    let mut counts = Counts::default();
    let printed =
        print_packets(&mut reader, FileFilter::new(filter), limit, &mut printer, &mut counts);
    // The packets before a damaged one are printed.
    printer.flush()?;
    drop(printer);
    printed?;
    output.remark(summary(&counts, reader.path(), is_filtered));
    if let Some(lost) = reader.capture_lost().filter(|lost| *lost > 0) {
        output.remark(format_args!("{} lost by the capture", plural(lost, "packet", "packets")));
    }
    Ok(ExitCode::SUCCESS)
}

fn print_packets(
    reader: &mut Reader,
    mut filter: FileFilter,
    limit: Option<u64>,
    printer: &mut Printer,
    counts: &mut Counts,
) -> Result<(), Error> {
    while limit.is_none_or(|limit| counts.printed < limit) {
        let Some(packet) = reader.next_packet()? else {
            return reader.take_missed().iter().try_for_each(|missed| printer.missed(missed, None));
        };
        counts.read += 1;
        packet.missed.iter().try_for_each(|missed| printer.missed(missed, None))?;
        if !filter.passes(packet.link, &packet.bytes, packet.length)? {
            continue;
        }
        let printed = PrintedPacket {
            time: packet.time,
            error: packet.error,
            link: packet.link,
            bytes: &packet.bytes,
            length: packet.length,
        };
        let (line, number) = (printed.line(printer.style()), packet.interface);
        printer.packet(&line, interface(reader, number).as_deref())?;
        counts.printed += 1;
    }
    Ok(())
}

/// Name or number of a packet's interface, if the file has several.
fn interface(reader: &Reader, number: usize) -> Option<String> {
    let [_, _, ..] = reader.interfaces() else { return None };
    let interface = reader.interfaces().get(number)?;
    Some(interface.name.clone().unwrap_or_else(|| number.to_string()))
}

fn summary(counts: &Counts, path: &Path, is_filtered: bool) -> String {
    let read = plural(counts.read, "packet", "packets");
    let path = path.display();
    if is_filtered {
        format!("{read} read from {path}, {} printed", counts.printed)
    } else {
        format!("{read} read from {path}")
    }
}
