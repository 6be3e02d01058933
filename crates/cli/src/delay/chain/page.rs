//! The result of `delay` with more than two points as an HTML report.

use std::path::Path;

use wirestamp_metrics::Quality;
use wirestamp_report::{Circumstances, DelayReport, Subject};

use super::super::arguments::Arguments;
use super::super::page::{machine, save};
use super::subpaths::{Chain, Subpath};

/// Writes the report to `path`: a section for the complete path, and one for each sub-path.
pub(super) fn write(path: &Path, chain: &Chain<'_>, arguments: &Arguments) -> anyhow::Result<()> {
    let subpaths: Vec<_> =
        chain.all().map(|subpath| (subpath, subpath.result.flows.total())).collect();
    let mut subjects: Vec<_> =
        subpaths.iter().map(|(subpath, total)| subject(subpath, total)).collect();
    // The complete path, which is the last of all, comes first.
    subjects.rotate_right(1);
    let here = Circumstances::here();
    let report = DelayReport {
        title: format!("From {} to {}", chain.complete.from, chain.complete.to),
        generated_at: format!("{} UTC", here.date),
        summary: chain.conclusions(),
        sections: subjects.len(),
        subjects,
        relative: chain.all().any(|subpath| subpath.result.clocks.aligned),
        sampled: chain.all().any(|subpath| subpath.result.sampling.is_some()),
        layers: None,
        trust: subpaths.iter().flat_map(|(subpath, total)| trust(subpath, total)).collect(),
        ledgers: Vec::new(),
        machine: machine(here, arguments),
    };
    save(path, &report)
}

fn subject<'a>(subpath: &Subpath<'_>, total: &'a Quality) -> Subject<'a> {
    Subject {
        name: subpath.name(),
        quality: total,
        is_loss_unknown: subpath.result.is_loss_unknown(None, total),
        clock_error_ns: subpath.result.clocks.max_error(total),
        call: None,
        more: Vec::new(),
    }
}

/// The error bounds and caveats of a sub-path, with its name.
fn trust(subpath: &Subpath<'_>, total: &Quality) -> Vec<(String, String)> {
    let own = subpath.not_captured_note().map(|text| ("Note".to_owned(), text));
    let of = subpath.result.trust(total).into_iter().chain(own);
    of.map(|(what, text)| (format!("{what}, {}", subpath.lettered()), text)).collect()
}
