//! More than two points in a row: between which of them packets are lost or delayed.

mod packet_rows;
mod packets;
mod page;
mod subpaths;

use std::path::Path;
use std::process::ExitCode;

use wirestamp_packet::MatchRule;

use self::subpaths::{Chain, Subpath};
use super::arguments::Arguments;
use super::document::Document;
use super::files::compare_captures;
use super::matching;
use super::observed_later::ObservedLater;
use super::point::Point;
use crate::output::Output;
use crate::usage::usage;

/// Compares each file with the next, and the first with the last.
pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let names: Vec<&str> = arguments.points().collect();
    check(arguments, &names)?;
    let inputs: Vec<_> = names.iter().map(Path::new).collect();
    arguments.check_outputs(&inputs)?;
    let compare = |from, to, rule: Option<MatchRule>| -> anyhow::Result<Subpath<'_>> {
        let [a, b] = [from, to].map(Point::named);
        let result = match rule {
            Some(rule) => {
                let none = &mut ObservedLater::default();
                compare_captures(arguments, [&a, &b], rule, false, none)?
            }
            // The rows of all points are written at the end.
            None => matching::compare(arguments, [&a, &b], false)?,
        };
        Ok(Subpath { from, to, result, not_captured: 0 })
    };
    let complete = compare(names[0], names[names.len() - 1], None)?;
    // One rule for all, so that their counts are comparable.
    let rule = complete.result.unknown_loss.is_none().then(|| complete.result.rule());
    let subpaths: Result<Vec<_>, _> =
        names.windows(2).map(|pair| compare(pair[0], pair[1], rule)).collect();
    let mut chain = Chain { subpaths: subpaths?, complete };
    if let Some(rule) = rule {
        packets::exclude_observed_later(arguments, &mut chain, rule)?;
    }
    for it in chain.all() {
        let remarks = it.result.remarks.iter();
        remarks.for_each(|remark| output.remark(format!("{}: {remark}", it.name())));
    }
    let report = arguments.report.as_deref();
    let written = report.map_or(Ok(()), |path| page::write(path, &chain, arguments));
    let rows = packet_rows::write(arguments, &chain);
    // Print the results even if a file could not be written.
    let document = serde_json::to_value(Document::Chain(chain.document()?))?;
    output.result(&document, |_| chain.text())?;
    written?;
    rows?;
    report.iter().for_each(|path| output.remark(format!("report: {}", path.display())));
    let is_known = chain.all().all(|it| it.result.unknown_loss.is_none());
    Ok(if is_known { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Rejects points and options that only two points support.
fn check(arguments: &Arguments, names: &[&str]) -> anyhow::Result<()> {
    arguments.live.refuse()?;
    for name in names {
        let reason = match Point::named(name) {
            Point::File(_) | Point::Captured(_) => continue,
            Point::Pipe(_) => "can be read only once",
            Point::Interface => "is not a file",
        };
        return Err(usage(format!(
            "cannot compare more than two points: {name} {reason}; give capture files only"
        )));
    }
    if arguments.offset.is_some() {
        return Err(usage("cannot use --offset with more than two points; leave it out"));
    }
    Ok(())
}
