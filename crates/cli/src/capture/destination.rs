//! The output files of a capture.

use std::ffi::OsStr;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use wirestamp_capture::Facts;
use wirestamp_capture::file::{
    self, AnchorLog, FilteredCopy, Format, Provenance, Reader, Rotation, Writer,
};
use wirestamp_clock::{ClockService, Domain};
use wirestamp_session::Recording;

use crate::files::{are_one, folder, standard_input};
use crate::parse::at_least_one;
use crate::usage::usage;

/// The unit of -C, which is tcpdump's.
const MILLION: u64 = 1_000_000;

#[derive(Args)]
#[command(next_help_heading = "Files")]
pub(super) struct Destination {
    /// Write the packets to this file, or FIFO; - is standard output
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// File format: pcapng, pcap (nanoseconds) or pcap-us (microseconds)
    /// [default: pcap for a name that ends in .pcap or .pcap.zst, and pcapng for others]
    #[arg(long, value_name = "FORMAT", requires = "write")]
    format: Option<Format>,
    /// Precision of the times in the file: nano, or micro for pcap files, as with --format pcap-us
    #[arg(long, value_name = "PRECISION", value_enum)]
    time_stamp_precision: Option<Precision>,
    /// Short for --time-stamp-precision micro
    #[arg(long, conflicts_with_all = ["time_stamp_precision", "nano"])]
    micro: bool,
    /// Short for --time-stamp-precision nano
    #[arg(long, conflicts_with = "time_stamp_precision")]
    nano: bool,
    /// Write each packet to the file at once, instead of together with the packets that arrived with
    /// it. Printed lines are always written at once
    #[arg(short = 'U', long)]
    packet_buffered: bool,
    /// Compress the file with zstd; data written before a crash stays readable
    #[arg(long, requires = "write")]
    zstd: bool,
    /// Start a new file after this many million bytes, before compression; the names of further
    /// files end in a number, with -W above 1 that of the first file too
    #[arg(short = 'C', long, value_name = "MILLIONS", requires = "write",
          allow_negative_numbers = true, value_parser = at_least_one::<u32>)]
    file_size: Option<u32>,
    /// Start a new file after this many seconds; the name may contain strftime(3) conversions, such
    /// as %H%M%S; without one, the names of further files end in a number
    #[arg(short = 'G', long, value_name = "SECONDS", requires = "write",
          allow_negative_numbers = true, value_parser = at_least_one::<u32>)]
    rotate_seconds: Option<u32>,
    /// Max number of files: with -C, overwrite the oldest; with -G alone, end the capture
    #[arg(short = 'W', long, value_name = "FILES",
          allow_negative_numbers = true, value_parser = at_least_one::<u32>)]
    file_count: Option<u32>,
    /// Save the anchors of the stamp conversion in this CSV file, and raw values with the packets,
    /// for `wirestamp restamp`. If stamps are converted by the kernel's own conversion (`wirestamp clock`
    /// shows it), its parameters are saved too, and restamping reproduces the times; otherwise it
    /// improves all times but those of the last 250 ms
    #[arg(long, value_name = "FILE", requires = "write")]
    anchors: Option<PathBuf>,
}

/// Value of `--time-stamp-precision`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Precision {
    /// Microseconds.
    Micro,
    /// Nanoseconds.
    Nano,
}

impl Destination {
    /// The requested file.
    pub(super) fn path(&self) -> Option<&Path> {
        self.write.as_deref()
    }

    /// The file format: the requested one, or that of the name, with the requested precision if it can have that.
    fn format(&self) -> Format {
        let format = self.format.unwrap_or_else(|| {
            let name = self.path().and_then(Path::file_name).unwrap_or_default();
            let name = name.as_encoded_bytes();
            let is_classic = name.ends_with(b".pcap") || name.ends_with(b".pcap.zst");
            if is_classic { Format::Pcap } else { Format::default() }
        });
        match (format, self.precision()) {
            (Format::Pcap, Some(Precision::Micro)) => Format::PcapMicros,
            _ => format,
        }
    }

    /// The requested precision.
    fn precision(&self) -> Option<Precision> {
        let short = [(self.micro, Precision::Micro), (self.nano, Precision::Nano)];
        let short = short.into_iter().find_map(|(is_given, it)| is_given.then_some(it));
        self.time_stamp_precision.or(short)
    }

    /// The requested files, as pairs of option and file.
    pub(super) fn files(&self) -> [(&'static str, Option<&Path>); 2] {
        [("-w", self.path()), ("--anchors", self.anchors.as_deref())]
    }

    /// Whether the packets go to standard output.
    pub(super) fn is_stdout(&self) -> bool {
        self.path() == Some(Path::new("-"))
    }

    /// The capture time limit given by -G and -W.
    pub(super) fn limit(&self) -> Option<Duration> {
        match (self.file_size, self.rotate_seconds, self.file_count) {
            (None, Some(seconds), Some(files)) => {
                Some(Duration::from_secs(u64::from(seconds) * u64::from(files)))
            }
            _ => None,
        }
    }

    /// Whether the format has room for one interface only.
    pub(super) fn is_classic(&self) -> bool {
        self.path().is_some() && self.format().is_classic()
    }

    /// Whether anchors are saved.
    pub(super) fn keeps_anchors(&self) -> bool {
        self.anchors.is_some()
    }

    /// A remark on information that the format cannot store.
    pub(super) fn remark(&self) -> Option<String> {
        self.is_classic().then(|| {
            format!(
                "{} files cannot store the method, the clock, its error and the losses; use --format \
                 pcapng to keep them",
                self.format()
            )
        })
    }

    /// Rejects a precision that the times cannot have.
    pub(super) fn check_precision(&self) -> anyhow::Result<()> {
        match (self.precision(), self.path().map(|_| self.format())) {
            (Some(Precision::Micro), format) if format != Some(Format::PcapMicros) => Err(usage(
                "--time-stamp-precision micro: only pcap files can have microseconds; write one with -w and \
                 --format pcap-us, or leave the option out for nanoseconds",
            )),
            (Some(Precision::Nano), Some(Format::PcapMicros)) => Err(usage(
                "--time-stamp-precision nano: pcap-us files have microseconds; use --format pcap",
            )),
            _ => Ok(()),
        }
    }

    /// Whether the capture continues in further files.
    pub(super) fn rotates(&self) -> bool {
        self.file_size.is_some() || self.rotate_seconds.is_some()
    }

    /// Rejects options that do not fit together, for stamps of `domain`.
    pub(super) fn check(&self, domain: Domain, json: bool) -> anyhow::Result<()> {
        let rotates = self.rotates();
        let named_zst = self.path().and_then(Path::extension) == Some(OsStr::new("zst"));
        let wrong = [
            (
                self.is_stdout() && io::stdout().is_terminal(),
                "-w - would print packets to the terminal; redirect the output, or write to a file",
            ),
            (
                self.is_stdout() && json,
                "-w - and --json both use standard output; write the packets to a file",
            ),
            (
                self.is_stdout() && rotates,
                "-C and -G start new files, which -w - does not allow; write to a file",
            ),
            (
                self.file_count.is_some() && !rotates,
                "-W limits the files of -C or -G; add one of them",
            ),
            (
                self.zstd && self.packet_buffered,
                "-U and --zstd: each packet would be compressed alone, which makes the file larger; leave one out",
            ),
            (
                named_zst && !self.zstd,
                "a file named .zst must be compressed; add --zstd, or use another name",
            ),
        ];
        match wrong.into_iter().find(|&(wrong, _)| wrong) {
            Some((_, why)) => Err(usage(why)),
            None => self.check_anchors(domain),
        }
    }

    /// Rejects a copy of `input`, a file that `is_classic` or not, that is not possible, such as one that `cuts` packets.
    pub(super) fn check_copy(
        &self,
        input: &Path,
        is_classic: bool,
        cuts: bool,
    ) -> anyhow::Result<()> {
        let Some(path) = self.path() else { return Ok(()) };
        let extension = path.extension().unwrap_or_default();
        let file = standard_input(input);
        let is_in_folder = path.exists() && are_one(&file, &folder(path));
        let wrong = [
            (
                self.is_stdout() && io::stdout().is_terminal(),
                "-w - would print packets to the terminal; redirect the output, or write to a file",
            ),
            (
                are_one(&file, path) || is_in_folder,
                "-w would overwrite the file of -r; write to another file",
            ),
            (cuts, "-r with -w copies whole packets; cut them with `editcap -s BYTES IN OUT`"),
            (
                extension == "zst",
                "-r with -w does not compress; use another name, and `zstd FILE` afterwards",
            ),
            (
                !is_classic && extension == "pcap",
                "-r with -w keeps the format pcapng; name the file .pcapng, and convert it with \
                 `editcap -F nsecpcap IN OUT`",
            ),
            (
                is_classic && extension == "pcapng",
                "-r with -w keeps the format pcap; name the file .pcap, and convert it with \
                 `editcap -F pcapng IN OUT`",
            ),
            (
                self.precision().is_some(),
                "-r with -w keeps the precision of the file; leave --time-stamp-precision out",
            ),
        ];
        match wrong.into_iter().find(|&(wrong, _)| wrong) {
            Some((_, why)) => Err(usage(why)),
            None => Ok(()),
        }
    }

    /// Begins a copy of what `reader` reads, if a file is requested.
    pub(super) fn copy(&self, reader: &mut Reader) -> anyhow::Result<Option<FilteredCopy>> {
        let Some(path) = self.path() else { return Ok(None) };
        Ok(Some(FilteredCopy::create(path, reader, self.packet_buffered)?))
    }

    fn check_anchors(&self, domain: Domain) -> anyhow::Result<()> {
        let Some(path) = &self.anchors else { return Ok(()) };
        if self.format().is_classic() {
            return Err(usage(format!(
                "--anchors: {} files cannot store raw values with the packets; use --format pcapng",
                self.format()
            )));
        }
        if domain == Domain::Realtime {
            return Err(usage(
                "--anchors: kernel stamps are already system time and cannot be converted again; use \
                 --stamp raw, --method xdp-pass, tc-pass or trace-pass, or leave --anchors out",
            ));
        }
        if path == Path::new("-") { Err(shared()) } else { self.check_apart() }
    }

    /// Rejects an anchor file that is also a packet file.
    fn check_apart(&self) -> anyhow::Result<()> {
        let (Some(packets), Some(anchors)) = (&self.write, &self.anchors) else { return Ok(()) };
        let number = anchors.as_os_str().as_encoded_bytes();
        let number = number.strip_prefix(packets.as_os_str().as_encoded_bytes());
        // File names of a set: the first file's name and a number.
        let in_set = number.is_some_and(|number| number.iter().all(u8::is_ascii_digit));
        if in_set || are_one(packets, anchors) { Err(shared()) } else { Ok(()) }
    }

    /// Creates the requested files.
    pub(super) fn recording<'a>(
        &self,
        facts: &Facts,
        clock: &'a ClockService,
        domain: Domain,
    ) -> anyhow::Result<Recording<'a>> {
        let provenance = Provenance::now(facts, clock, domain);
        let writer = self.writer(vec![(facts.clone(), provenance.clone())])?;
        let Some(anchors) = &self.anchors else {
            return Ok(Recording::new(clock, domain, writer));
        };
        // Aliases (links) can be detected only now that the file exists.
        self.check_apart()?;
        let raw = clock.raw_domain(domain);
        let name = if raw == Domain::Counter { clock.counter().name() } else { &facts.clock };
        let anchors = AnchorLog::create(anchors, name, &provenance)?;
        let writer = writer.map(|writer| writer.keep_raw(raw, name));
        Ok(Recording::new(clock, domain, writer).keep_anchors(anchors))
    }

    /// Creates the first file for these interfaces, if a file is requested.
    pub(super) fn writer(
        &self,
        interfaces: Vec<(Facts, Provenance)>,
    ) -> anyhow::Result<Option<Writer>> {
        let Some(path) = &self.write else { return Ok(None) };
        let destination = file::Destination {
            path: path.clone(),
            format: self.format(),
            zstd: self.zstd,
            rotation: Rotation {
                bytes: self.file_size.map(|millions| u64::from(millions) * MILLION),
                seconds: self.rotate_seconds,
                files: self.file_count,
            },
        };
        let writer = Writer::for_interfaces(&destination, interfaces)?;
        Ok(Some(writer.flush_packets(self.packet_buffered)))
    }
}

fn shared() -> anyhow::Error {
    usage("--anchors and -w name the same file; use two files")
}
