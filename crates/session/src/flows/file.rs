//! The flows of a capture file, or of several.

use std::path::{Path, PathBuf};

use wirestamp_capture::file::{MergedFiles, Packets, Reader, read_ahead};
use wirestamp_capture::{Error, Filter};
use wirestamp_clock::Span;
use wirestamp_metrics::flow::FlowConfig;

use super::table::Flows;
use crate::compare::passes;

/// Selection of packets of a file.
#[derive(Default)]
pub struct FileOptions {
    /// Filter for packets.
    pub filter: Option<Filter>,
    /// Max packets to read, from the start.
    pub count: Option<u64>,
    /// Accepts a damaged file and reads the packets before the damage. Otherwise damage is an error. A file of which no
    /// packet can be read, because of its link type or missing times, is always an error.
    pub partial: bool,
    /// Whether packets in tunnels belong to the flow inside.
    pub inner: bool,
}

/// Flows of a file, or of several.
#[derive(Clone, Debug)]
pub struct FileReport {
    /// The flows.
    pub flows: Flows,
    /// Max error of a stamp against the capturing machine's clock, if the files have it for all
    /// packets; none without packets.
    pub error: Option<Span>,
    /// Packets lost by the capture; none if a file does not say it.
    pub capture_lost: Option<u64>,
    /// Positions of damage, if only the parts before it were used.
    pub damage: Vec<String>,
    /// The first two of several files that overlap in time. A packet that both captured counts twice.
    pub overlap: Option<[PathBuf; 2]>,
}

/// Reads a file into flows. A second thread reads the file, unless the options have a count.
///
/// # Errors
/// When the file is damaged and `partial` is not set, or when it has packets and none can be read.
pub fn of_file(
    mut reader: Reader,
    config: FlowConfig,
    options: &FileOptions,
) -> Result<FileReport, Error> {
    let path = reader.path().to_owned();
    let mut report = FileReport::of(&mut reader, &path, config, options)?;
    reader.take_missed().iter().for_each(|missed| report.flows.missed(missed));
    Ok(FileReport { capture_lost: reader.capture_lost(), ..report })
}

/// Reads several files into the same flows, in the order of the stamps.
///
/// # Errors
/// As [`of_file`], and as [`MergedFiles::open`].
pub fn of_files(
    paths: &[PathBuf],
    config: FlowConfig,
    options: &FileOptions,
) -> Result<FileReport, Error> {
    let mut files = MergedFiles::open(paths, options.partial)?;
    let name = files.name().to_owned();
    let mut report = FileReport::of(&mut files, &name, config, options)?;
    files.take_missed().iter().for_each(|missed| report.flows.missed(missed));
    Ok(FileReport {
        capture_lost: files.capture_lost(),
        damage: files.damage().to_vec(),
        overlap: files.overlap().cloned(),
        ..report
    })
}

impl FileReport {
    fn of(
        packets: &mut (impl Packets + Send),
        path: &Path,
        config: FlowConfig,
        options: &FileOptions,
    ) -> Result<Self, Error> {
        let mut report = Self {
            flows: Flows::new(config).inside_tunnels(options.inner),
            error: None,
            capture_lost: None,
            damage: Vec::new(),
            overlap: None,
        };
        if options.count.is_some() {
            // What a thread reads ahead would count as read.
            report.take(packets, options)?;
        } else {
            read_ahead(packets, |packets| report.take(packets, options))
                .map_err(|cause| Error::Read { path: path.to_owned(), cause })??;
        }
        Ok(report)
    }

    fn take(&mut self, packets: &mut impl Packets, options: &FileOptions) -> Result<(), Error> {
        let mut left = options.count.unwrap_or(u64::MAX);
        let mut is_any_read = false;
        while left > 0 {
            let packet = match packets.next_packet() {
                Ok(Some(packet)) => packet,
                Ok(None) => break,
                Err(reason) if options.partial && is_partial(&reason, is_any_read) => {
                    self.damage.push(reason.to_string());
                    break;
                }
                Err(reason) => return Err(reason),
            };
            is_any_read = true;
            packet.missed.iter().for_each(|missed| self.flows.missed(missed));
            let filter = options.filter.as_ref();
            if filter.is_none_or(|filter| passes(filter, &packet)) {
                self.error = if self.flows.is_empty() {
                    packet.error
                } else {
                    self.error.zip(packet.error).map(|(one, other)| one.max(other))
                };
                self.flows.observe(packet.link, &packet.bytes, packet.length, packet.time);
                left -= 1;
            }
        }
        Ok(())
    }
}

/// Whether the packets before this error are a part of the file that can be used.
const fn is_partial(error: &Error, is_any_read: bool) -> bool {
    match error {
        Error::Damaged { .. } => true,
        Error::LinkType { .. } | Error::WithoutTimes { .. } => is_any_read,
        _ => false,
    }
}
