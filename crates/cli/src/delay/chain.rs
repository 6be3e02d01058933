//! More than two points in a row: between which of them packets are lost or delayed.

use std::process::ExitCode;

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::matching;
use super::point::Point;
use super::result::DelayResult;
use crate::output::Output;
use crate::table::table;
use crate::usage::usage;

/// A sub-path (RFC 6049): the measurement between two points.
struct Subpath<'a> {
    from: &'a str,
    to: &'a str,
    result: DelayResult,
}

/// The sub-paths between neighbours, and the complete path from the first point to the last.
struct Chain<'a> {
    subpaths: Vec<Subpath<'a>>,
    complete: Subpath<'a>,
}

/// Compares each file with the next, and the first with the last.
pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let names: Vec<&str> = arguments.points().collect();
    check(arguments, &names)?;
    let compare = |from, to| -> anyhow::Result<Subpath<'_>> {
        let [a, b] = [from, to].map(Point::named);
        Ok(Subpath { from, to, result: matching::compare(arguments, [&a, &b])? })
    };
    let subpaths: Result<Vec<_>, _> =
        names.windows(2).map(|pair| compare(pair[0], pair[1])).collect();
    let complete = compare(names[0], names[names.len() - 1])?;
    let chain = Chain { subpaths: subpaths?, complete };
    for it in chain.all() {
        let remarks = it.result.remarks.iter();
        remarks.for_each(|remark| output.remark(format!("{}: {remark}", it.name())));
    }
    output.result(&chain.document()?, |_| chain.text())?;
    let is_known = chain.all().all(|it| it.result.unknown_loss.is_none());
    Ok(if is_known { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Rejects points and options that only two points support.
fn check(arguments: &Arguments, names: &[&str]) -> anyhow::Result<()> {
    arguments.live.refuse()?;
    let other = names.iter().find(|name| !matches!(Point::named(name), Point::File(_)));
    if let Some(other) = other {
        return Err(usage(format!(
            "cannot compare more than two points: {other} is not a capture file; give capture files only"
        )));
    }
    let given = [
        ("--report", arguments.report.is_some()),
        ("--csv", arguments.csv.is_some()),
        ("--parquet", arguments.parquet.is_some()),
        ("--offset", arguments.offset.is_some()),
    ];
    match given.into_iter().find(|&(_, given)| given) {
        Some((option, _)) => {
            Err(usage(format!("cannot use {option} with more than two points; leave it out")))
        }
        None => Ok(()),
    }
}

impl Subpath<'_> {
    fn name(&self) -> String {
        format!("{} > {}", self.from, self.to)
    }

    fn document(&self) -> anyhow::Result<Value> {
        let mut document = json!({"from": self.from, "to": self.to});
        if let (Value::Object(all), Value::Object(result)) =
            (&mut document, self.result.document()?)
        {
            all.extend(result);
        }
        Ok(document)
    }

    /// Packets lost while the second point captured.
    fn lost(&self) -> u64 {
        let lost = self.result.flows.total().counts().lost;
        lost.saturating_sub(self.result.lost_outside_capture)
    }

    /// The median delay; none if the error of the clocks is unknown, because their difference may be larger.
    fn median(&self) -> Option<i64> {
        let (total, clocks) = (self.result.flows.total(), &self.result.clocks);
        let is_known = clocks.relative().is_none() && clocks.max_error(&total).is_some();
        total.delay().summary().filter(|_| is_known).map(|delay| delay.p50)
    }

    /// The delay variation, PDV p99.
    fn variation(&self) -> Option<i64> {
        let total = self.result.flows.total();
        total.delay().summary().map(|delay| delay.above_minimum().p99)
    }
}

impl<'a> Chain<'a> {
    fn all(&self) -> impl Iterator<Item = &Subpath<'a>> {
        self.subpaths.iter().chain([&self.complete])
    }

    fn document(&self) -> anyhow::Result<Value> {
        let subpaths: anyhow::Result<Vec<_>> =
            self.subpaths.iter().map(Subpath::document).collect();
        Ok(json!({"subpaths": subpaths?, "complete_path": self.complete.document()?}))
    }

    fn text(&self) -> String {
        let rows: Vec<_> = self.all().map(|it| it.result.total_row(it.name())).collect();
        let mut lines = self.conclusions();
        let notes: Vec<_> =
            self.all().map(|it| it.result.caveats(&it.result.flows.total())).collect();
        // Common notes are printed once.
        let is_common = |note: &String| notes.iter().all(|all| all.contains(note));
        for (subpath, its_notes) in self.all().zip(&notes) {
            let own = its_notes.iter().filter(|note| !is_common(note));
            lines.extend(own.map(|note| format!("{}: {note}", subpath.name())));
        }
        lines.extend(notes[0].iter().filter(|note| is_common(note)).cloned());
        table(&self.complete.result.quality_header(), &rows) + &lines.join("\n") + "\n"
    }

    /// The sub-path with the most losses, and those that add the most delay and variation; nothing where they are unknown.
    fn conclusions(&self) -> Vec<String> {
        let is_known = self.subpaths.iter().all(|it| it.result.unknown_loss.is_none());
        let worst = self.subpaths.iter().max_by_key(|it| it.lost());
        let worst = worst.filter(|it| is_known && it.lost() > 0);
        let largest = |value: fn(&Subpath<'_>) -> Option<i64>| {
            let values: Option<Vec<_>> =
                self.subpaths.iter().map(|it| Some((value(it)?, it))).collect();
            values?.into_iter().max_by_key(|(value, _)| *value).map(|(_, it)| it.name())
        };
        let most_lost = worst.map(|it| format!("Most packets are lost in {}.", it.name()));
        let delay = largest(|it| it.median());
        let variation = largest(|it| it.variation());
        let lines = [
            most_lost,
            delay.map(|name| format!("{name} adds the most delay (p50).")),
            variation.map(|name| format!("{name} adds the most delay variation (PDV p99).")),
        ];
        lines.into_iter().flatten().collect()
    }
}
