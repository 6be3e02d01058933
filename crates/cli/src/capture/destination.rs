//! Where the packets of a capture are written to.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use wirestamp_capture::Facts;
use wirestamp_capture::file::{self, AnchorLog, Format, Provenance, Rotation, Writer};
use wirestamp_clock::{ClockService, Domain};
use wirestamp_session::Recording;

use crate::files::are_one;
use crate::numbers::at_least_one;
use crate::usage::usage;

/// The unit of -C, which is tcpdump's.
const MILLION: u64 = 1_000_000;

#[derive(Args)]
#[command(next_help_heading = "Files")]
pub(super) struct Destination {
    /// Write the packets to this file, or FIFO; - is standard output
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// pcapng, pcap (with nanoseconds) or pcap-us (with microseconds)
    #[arg(long, value_name = "FORMAT", default_value_t, requires = "write")]
    format: Format,
    /// Compress the file; what was written before a crash can be read
    #[arg(long, requires = "write")]
    zstd: bool,
    /// Go on in another file when one has more than so many million bytes, before compression; the
    /// names of those after the first end in a number, with -W above 1 that of the first too
    #[arg(short = 'C', long, value_name = "MILLIONS", requires = "write",
          allow_negative_numbers = true, value_parser = at_least_one::<u32>)]
    file_size: Option<u32>,
    /// Go on in another file after so many seconds; the name may have strftime(3) conversions in it,
    /// such as %H%M%S, and a file whose name comes again is overwritten
    #[arg(short = 'G', long, value_name = "SECONDS", requires = "write",
          allow_negative_numbers = true, value_parser = at_least_one::<u32>)]
    rotate_seconds: Option<u32>,
    /// With -C, overwrite the oldest file when there are so many; with -G alone, end after so many
    #[arg(short = 'W', long, value_name = "FILES",
          allow_negative_numbers = true, value_parser = at_least_one::<u32>)]
    file_count: Option<u32>,
    /// Keep what the stamps were converted with in this CSV file, and the raw values beside the
    /// packets, for `wirestamp restamp`; the packets of the last quarter of a second have no anchor
    /// after them and are as good as they were
    #[arg(long, value_name = "FILE", requires = "write")]
    anchors: Option<PathBuf>,
}

impl Destination {
    /// The file as it was asked for.
    pub(super) fn path(&self) -> Option<&Path> {
        self.write.as_deref()
    }

    /// Whether the packets go where results are printed otherwise.
    pub(super) fn is_stdout(&self) -> bool {
        self.path() == Some(Path::new("-"))
    }

    /// When the capture ends because no further file may be begun.
    pub(super) fn limit(&self) -> Option<Duration> {
        match (self.file_size, self.rotate_seconds, self.file_count) {
            (None, Some(seconds), Some(files)) => {
                Some(Duration::from_secs(u64::from(seconds) * u64::from(files)))
            }
            _ => None,
        }
    }

    /// What the format leaves out, in words.
    pub(super) fn remark(&self) -> Option<String> {
        (self.path().is_some() && self.format.is_classic()).then(|| {
            format!(
                "{} files have no room for the method, the clock, its error and the account of \
                 losses; --format pcapng has",
                self.format
            )
        })
    }

    /// Refuses what makes no sense together, for stamps of `domain`.
    pub(super) fn check(&self, domain: Domain, json: bool) -> anyhow::Result<()> {
        let rotates = self.file_size.is_some() || self.rotate_seconds.is_some();
        let named_zst = self.path().and_then(Path::extension) == Some(OsStr::new("zst"));
        let wrong = [
            (
                self.is_stdout() && json,
                "-w - puts the packets where --json would print: write to a file",
            ),
            (
                self.is_stdout() && rotates,
                "-C and -G make files, and -w - is none: write to a file",
            ),
            (
                self.file_count.is_some() && !rotates,
                "-W counts the files that -C or -G make: give one of them",
            ),
            (
                named_zst && !self.zstd,
                "a file named .zst is compressed: add --zstd, or name it otherwise",
            ),
        ];
        match wrong.into_iter().find(|&(wrong, _)| wrong) {
            Some((_, why)) => Err(usage(why)),
            None => self.check_anchors(domain),
        }
    }

    fn check_anchors(&self, domain: Domain) -> anyhow::Result<()> {
        let Some(path) = &self.anchors else { return Ok(()) };
        if self.format.is_classic() {
            return Err(usage(format!(
                "--anchors: {} files have no room for raw values beside the packets; take --format \
                 pcapng",
                self.format
            )));
        }
        if domain == Domain::Realtime {
            return Err(usage(
                "--anchors: stamps of the kernel are system time already, so that there is nothing \
                 to convert again: take --stamp raw, --method xdp-pass or tc-pass, or no anchors",
            ));
        }
        if path == Path::new("-") { Err(shared()) } else { self.check_apart() }
    }

    /// Refuses anchors that would take the place of the packets, or the other way round.
    fn check_apart(&self) -> anyhow::Result<()> {
        let (Some(packets), Some(anchors)) = (&self.write, &self.anchors) else { return Ok(()) };
        let number = anchors.as_os_str().as_encoded_bytes();
        let number = number.strip_prefix(packets.as_os_str().as_encoded_bytes());
        // The names of a set are that of its first file and a number.
        let in_set = number.is_some_and(|number| number.iter().all(u8::is_ascii_digit));
        if in_set || are_one(packets, anchors) { Err(shared()) } else { Ok(()) }
    }

    /// Creates the files that were asked for.
    pub(super) fn recording<'a>(
        &self,
        facts: &Facts,
        clock: &'a ClockService,
        domain: Domain,
    ) -> anyhow::Result<Recording<'a>> {
        let Some(path) = &self.write else { return Ok(Recording::new(clock, domain, None)) };
        let provenance = Provenance::now(facts, clock, domain);
        let destination = file::Destination {
            path: path.clone(),
            format: self.format,
            zstd: self.zstd,
            rotation: Rotation {
                bytes: self.file_size.map(|millions| u64::from(millions) * MILLION),
                seconds: self.rotate_seconds,
                files: self.file_count,
            },
        };
        let writer = Writer::to(&destination, facts, provenance.clone())?;
        let Some(anchors) = &self.anchors else {
            return Ok(Recording::new(clock, domain, Some(writer)));
        };
        // Only now that there is one file can other names be seen to lead to it.
        self.check_apart()?;
        let anchors = AnchorLog::create(anchors, &provenance)?;
        Ok(Recording::new(clock, domain, Some(writer.keep_raw(domain))).keep_anchors(anchors))
    }
}

fn shared() -> anyhow::Error {
    usage("--anchors needs a file of its own")
}
