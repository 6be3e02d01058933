//! Flows of a capture file, or of several.

use std::path::{Path, PathBuf};

use wirestamp_capture::Filter;
use wirestamp_capture::file::Reader;
use wirestamp_session::flows::{FileOptions, FileReport, of_file, of_files};

use super::arguments::Arguments;
use super::document::Document;
use super::screen::{self, Data};
use crate::interrupt::stop_on_signal;

pub(super) fn run(paths: &[&Path], arguments: &Arguments) -> anyhow::Result<Document> {
    let options = FileOptions {
        filter: arguments.filter().as_deref().map(Filter::compile).transpose()?,
        count: arguments.count,
        partial: arguments.partial,
        inner: arguments.inner,
    };
    let stop = arguments.browses()?.then(stop_on_signal).transpose()?;
    let names: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
    let mut found = match paths {
        [path] => of_file(Reader::open(path)?, arguments.config(), &options)?,
        _ => {
            let paths: Vec<PathBuf> = paths.iter().map(Into::into).collect();
            of_files(&paths, arguments.config(), &options)?
        }
    };
    let from = names.join(", ");
    let document = Document {
        file: (paths.len() == 1).then(|| from.clone()),
        files: (paths.len() > 1).then_some(names),
        clock_error_ns: found.error.map(|error| error.as_nanos()),
        remarks: remarks(&found),
        ..Document::of(&mut found.flows, found.capture_lost)
    };
    if let Some(stop) = stop {
        let mut data = Data {
            from,
            filter: arguments.filter(),
            packets: document.packets,
            bytes: document.bytes,
            capture_lost: document.capture_dropped,
            reports: document.flows.clone(),
            calls: document.calls.clone(),
            ..Data::default()
        };
        arguments.parties.keep(&mut data.calls, &mut data.reports);
        screen::show(data, |_| (), &stop)?;
    }
    Ok(document)
}

fn remarks(found: &FileReport) -> Vec<String> {
    let mut remarks = found.damage.clone();
    if let Some([one, other]) = &found.overlap {
        remarks.push(format!(
            "{} and {} overlap in time; a packet that is in both counts twice",
            one.display(),
            other.display()
        ));
    }
    remarks
}
