//! The filter of a capture: words of the command line, or a file (`-F`).

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use wirestamp_capture::{Error, Filter};
use wirestamp_packet::LinkType;

use crate::usage::usage;

/// Max bytes of a file with a filter.
const MAX_FILE: u64 = 1 << 20;

#[derive(Args)]
pub(super) struct FilterArguments {
    /// A filter in pcap-filter(7) syntax; options may follow it
    #[arg(value_name = "FILTER", allow_negative_numbers = true)]
    words: Vec<String>,
    /// Read the filter from this file instead; # begins a comment
    #[arg(short = 'F', value_name = "FILE", conflicts_with = "words")]
    file: Option<PathBuf>,
}

impl FilterArguments {
    /// The filter, if there is one.
    pub(super) fn expression(&self) -> anyhow::Result<Option<String>> {
        match &self.file {
            Some(path) => read(path).map(Some),
            None => {
                let filter = self.words.join(" ");
                Ok((!filter.trim().is_empty()).then_some(filter))
            }
        }
    }

    /// The first word, if the filter is not in a file.
    pub(super) fn first_word(&self) -> Option<&str> {
        self.words.first().map(String::as_str)
    }
}

/// The filter in a file, without comments, as tcpdump reads it.
fn read(path: &Path) -> anyhow::Result<String> {
    let name = path.display();
    let mut text = String::new();
    let read = File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_string(&mut text));
    read.with_context(|| format!("-F: cannot read the filter in {name}"))?;
    if text.len() as u64 > MAX_FILE {
        return Err(usage(format!("-F: {name} has more than {MAX_FILE} bytes; is it a filter?")));
    }
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let filter = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    if filter.is_empty() {
        return Err(usage(format!(
            "-F: {name} has no filter; write one, or leave -F out to capture all packets"
        )));
    }
    Ok(filter)
}

/// A filter for the packets of a file, which may have several link types.
pub(super) struct FileFilter {
    expression: Option<String>,
    /// The filter compiled for each link type so far.
    compiled: Vec<(LinkType, Filter)>,
}

impl FileFilter {
    pub(super) fn new(expression: Option<String>) -> Self {
        Self { expression, compiled: Vec::new() }
    }

    /// Whether a frame of `length` bytes on the wire passes, of which `captured` is the start.
    ///
    /// # Errors
    /// The filter does not compile for this link type.
    pub(super) fn passes(
        &mut self,
        link: LinkType,
        captured: &[u8],
        length: u32,
    ) -> Result<bool, Error> {
        let Some(expression) = &self.expression else { return Ok(true) };
        // Filters are compiled for these link types. A frame of another one gets an Ethernet header.
        let is_native = matches!(link, LinkType::Ethernet | LinkType::Ip | LinkType::LinuxCooked2);
        let compiled_for = if is_native { link } else { LinkType::Ethernet };
        let place = self.compiled.iter().position(|(link, _)| *link == compiled_for);
        if place.is_none() {
            self.compiled.push((compiled_for, Filter::compile_for(expression, compiled_for)?));
        }
        let found = self.compiled.iter().find(|(link, _)| *link == compiled_for);
        Ok(found.is_some_and(|(_, filter)| {
            if is_native {
                filter.passes(captured, length)
            } else {
                link.as_ethernet(captured).is_some_and(|frame| filter.passes(&frame, length))
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn comments_and_ends_of_lines_are_left_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("filter");
        let read = |text: &str| {
            fs::write(&path, text).unwrap();
            read(&path).map_err(|error| format!("{error:#}"))
        };
        let text = "# calls\nudp and # not TCP\n\n  portrange 16384-32767\r\n";
        assert_eq!(read(text), Ok("udp and portrange 16384-32767".to_owned()));
        assert!(read("# nothing\n").unwrap_err().contains("has no filter"));
        let long = "udp\n".repeat(1 << 18) + "x";
        assert!(read(&long).unwrap_err().contains("more than 1048576 bytes"));
        fs::write(&path, [0xff]).unwrap();
        assert!(format!("{:#}", super::read(&path).unwrap_err()).contains("-F: cannot read"));
    }

    #[test]
    fn frames_of_every_link_type_are_filtered() {
        let mut filter = FileFilter::new(Some("udp".into()));
        let packet = [&[0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17][..], &[0; 18]].concat();
        let ethernet = [&[0; 12][..], &[8, 0], &packet].concat();
        let ppp = [&[0x00, 0x21][..], &packet].concat();
        let cooked = [&[8, 0][..], &[0; 18], &packet].concat();
        for (link, frame) in [
            (LinkType::Ethernet, &ethernet),
            (LinkType::Ip, &packet),
            (LinkType::Ppp, &ppp),
            (LinkType::LinuxCooked2, &cooked),
        ] {
            let mut passes = |frame: &[u8]| filter.passes(link, frame, 60).unwrap();
            assert!(passes(frame) && !passes(&frame[..2]), "{link:?}");
            // Of all link types, the length on the wire counts.
            for (expression, expected) in [("greater 61", false), ("less 60", true)] {
                let mut filter = FileFilter::new(Some(expression.into()));
                assert_eq!(filter.passes(link, frame, 60).unwrap(), expected, "{link:?}");
            }
        }
        let mut wrong = FileFilter::new(Some("udp prot".into()));
        assert!(wrong.passes(LinkType::Ip, &packet, 60).is_err());
        assert!(FileFilter::new(None).passes(LinkType::Ip, &[], 0).unwrap());
    }
}
