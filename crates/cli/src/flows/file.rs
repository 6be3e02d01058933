//! Flows of a capture file.

use std::path::Path;

use wirestamp_capture::Filter;
use wirestamp_capture::file::Reader;
use wirestamp_session::flows::{FileOptions, of_file};

use super::arguments::Arguments;
use super::document::Document;
use super::screen::{self, Data};
use crate::interrupt::stop_on_signal;

pub(super) fn run(path: &Path, arguments: &Arguments) -> anyhow::Result<Document> {
    let options = FileOptions {
        filter: arguments.filter().as_deref().map(Filter::compile).transpose()?,
        count: arguments.count,
        partial: arguments.partial,
        inner: arguments.inner,
    };
    let stop = arguments.browses()?.then(stop_on_signal).transpose()?;
    let mut found = of_file(Reader::open(path)?, arguments.config(), &options)?;
    let document = Document {
        file: Some(path.display().to_string()),
        clock_error_ns: found.error.map(|error| error.as_nanos()),
        remarks: found.damage.into_iter().collect(),
        ..Document::of(&mut found.flows, found.capture_lost)
    };
    if let Some(stop) = stop {
        let data = Data {
            from: path.display().to_string(),
            filter: arguments.filter(),
            packets: document.packets,
            bytes: document.bytes,
            capture_lost: document.capture_dropped.unwrap_or(0),
            reports: document.flows.clone(),
            calls: document.calls.clone(),
            ..Data::default()
        };
        screen::show(data, |_| (), &stop)?;
    }
    Ok(document)
}
