//! More than two points in a row: between which of them packets are lost or delayed.

use std::process::ExitCode;

use wirestamp_packet::MatchRule;

use super::arguments::Arguments;
use super::document::{ChainDocument, Document, SubpathDocument};
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
    let compare = |from, to, rule: Option<MatchRule>| -> anyhow::Result<Subpath<'_>> {
        let [a, b] = [from, to].map(Point::named);
        let result = match rule {
            Some(rule) => matching::compare_by(arguments, [&a, &b], rule, false)?,
            None => matching::compare(arguments, [&a, &b])?,
        };
        Ok(Subpath { from, to, result })
    };
    let complete = compare(names[0], names[names.len() - 1], None)?;
    // One rule for all, so that their counts are comparable.
    let rule = complete.result.unknown_loss.is_none().then(|| complete.result.rule());
    let subpaths: Result<Vec<_>, _> =
        names.windows(2).map(|pair| compare(pair[0], pair[1], rule)).collect();
    let chain = Chain { subpaths: subpaths?, complete };
    for it in chain.all() {
        let remarks = it.result.remarks.iter();
        remarks.for_each(|remark| output.remark(format!("{}: {remark}", it.name())));
    }
    let document = serde_json::to_value(Document::Chain(chain.document()?))?;
    output.result(&document, |_| chain.text())?;
    let is_known = chain.all().all(|it| it.result.unknown_loss.is_none());
    Ok(if is_known { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Rejects points and options that only two points support.
fn check(arguments: &Arguments, names: &[&str]) -> anyhow::Result<()> {
    arguments.live.refuse()?;
    for name in names {
        let reason = match Point::named(name) {
            Point::File(_) => continue,
            Point::Pipe(_) => "can be read only once",
            Point::Interface => "is not a file",
        };
        return Err(usage(format!(
            "cannot compare more than two points: {name} {reason}; give capture files only"
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

    fn document(&self) -> anyhow::Result<SubpathDocument<'_>> {
        Ok(SubpathDocument { from: self.from, to: self.to, result: self.result.document()? })
    }

    /// Packets lost while the second point captured.
    fn lost(&self) -> u64 {
        let lost = self.result.flows.total().counts().lost;
        lost.saturating_sub(self.result.lost_outside_capture)
    }

    /// The median delay; none if the error of the clocks is unknown, because their difference may be larger.
    fn median(&self) -> Option<Figure> {
        let (total, clocks) = (self.result.flows.total(), &self.result.clocks);
        let error = clocks.max_error(&total).filter(|_| clocks.relative().is_none())?;
        let value = total.delay().summary()?.p50;
        Some(Figure { value, error: error.saturating_add(value.abs() / RESOLUTION) })
    }

    /// The delay variation, PDV p99.
    fn variation(&self) -> Option<Figure> {
        let delay = self.result.flows.total().delay().summary()?;
        let largest = delay.min.abs().max(delay.max.abs());
        Some(Figure { value: delay.above_minimum().p99, error: largest / RESOLUTION })
    }
}

/// A figure in nanoseconds with its max error.
#[derive(Clone, Copy)]
struct Figure {
    value: i64,
    error: i64,
}

/// Relative resolution of percentiles: one part in this many.
const RESOLUTION: i64 = 2048;

/// The index of the largest figure; none if its difference from another one may be an error, or if one is unknown.
fn largest(figures: &[Option<Figure>]) -> Option<usize> {
    let figures: Option<Vec<_>> = figures.iter().copied().collect();
    let mut figures: Vec<_> = figures?.into_iter().enumerate().collect();
    figures.sort_by_key(|(_, figure)| std::cmp::Reverse(figure.value));
    let [(place, first), (_, second), ..] = figures[..] else { return None };
    (first.value - second.value > first.error + second.error).then_some(place)
}

impl<'a> Chain<'a> {
    fn all(&self) -> impl Iterator<Item = &Subpath<'a>> {
        self.subpaths.iter().chain([&self.complete])
    }

    fn document(&self) -> anyhow::Result<ChainDocument<'_>> {
        let subpaths: anyhow::Result<Vec<_>> =
            self.subpaths.iter().map(Subpath::document).collect();
        Ok(ChainDocument { subpaths: subpaths?, complete_path: self.complete.document()? })
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

    /// The sub-path with the most losses, and those that add the most delay and variation; nothing where they are unknown
    /// or not distinguishable.
    fn conclusions(&self) -> Vec<String> {
        // A sub-path does not lose more than the complete path, unless its points observed different packets.
        let is_known = |it: &Subpath<'_>| {
            it.result.unknown_loss.is_none() && it.lost() <= self.complete.lost()
        };
        let worst = self.subpaths.iter().max_by_key(|it| it.lost());
        let worst = worst.filter(|it| self.subpaths.iter().all(is_known) && it.lost() > 0);
        let of = |figure: fn(&Subpath<'_>) -> Option<Figure>| {
            let figures: Vec<_> = self.subpaths.iter().map(figure).collect();
            largest(&figures).map(|place| self.subpaths[place].name())
        };
        let delay = of(|it| it.median());
        let variation = of(|it| it.variation());
        let lines = [
            worst.map(|it| format!("Most packets are lost in {}.", it.name())),
            delay.map(|name| format!("{name} adds the most delay (p50).")),
            variation.map(|name| format!("{name} adds the most delay variation (PDV p99).")),
        ];
        lines.into_iter().flatten().collect()
    }
}
