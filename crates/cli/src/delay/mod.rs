//! `wirestamp delay`.

mod arguments;
mod caveats;
mod chain;
mod clocks;
mod direction;
mod document;
mod files;
mod identical;
mod layers;
mod live;
mod lost_rows;
mod match_option;
mod matching;
mod observed_later;
mod packet_rows;
mod page;
mod point;
mod result;
mod round_trip;
mod rtp;
mod sample;
mod seconds;
mod text;
mod unknown_loss;

use std::process::ExitCode;

use wirestamp_metrics as metrics;

pub(crate) use self::arguments::Arguments;
pub(crate) use self::document::Document;
use self::point::Point;
use crate::output::Output;
use crate::redirection;
use crate::usage::usage;

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    output.check_per_second(arguments.per_second)?;
    if !arguments.more.is_empty() {
        return chain::run(arguments, output);
    }
    let [a, b] = [&arguments.a, &arguments.b].map(|name| Point::named(name));
    if [&arguments.a, &arguments.b].into_iter().all(|name| name == "-") {
        return Err(usage(
            "only one point can be standard input; read the other from a file or FIFO",
        ));
    }
    let captures: Vec<_> = [&a, &b].into_iter().filter_map(Point::capture).collect();
    arguments.check_outputs(&captures)?;
    if [&a, &b].contains(&&Point::Interface) {
        let (method, _) = arguments.live.pair()?;
        arguments.live.direction.map_or(Ok(()), |direction| direction.check(method))?;
        let filter = arguments.filter.as_deref();
        arguments.live.consent.check(method, filter)?;
        redirection::warn(method, filter, output);
    }
    let result = match (&a, &b) {
        (Point::Interface, Point::Interface) => live::interfaces(arguments, output)?,
        (Point::Pipe(pipe), Point::Interface) => {
            live::with_pipe(arguments, metrics::Point::A, pipe, output)?
        }
        (Point::Interface, Point::Pipe(pipe)) => {
            live::with_pipe(arguments, metrics::Point::B, pipe, output)?
        }
        (Point::File(_) | Point::Captured(_), Point::Interface) => {
            live::with_file(arguments, metrics::Point::A, &a, output)?
        }
        (Point::Interface, Point::File(_) | Point::Captured(_)) => {
            live::with_file(arguments, metrics::Point::B, &b, output)?
        }
        (
            Point::File(_) | Point::Captured(_) | Point::Pipe(_),
            Point::File(_) | Point::Captured(_) | Point::Pipe(_),
        ) => {
            arguments.live.refuse()?;
            matching::compare(arguments, [&a, &b], true)?
        }
    };
    result.remarks.iter().for_each(|remark| output.remark(remark));
    let report = arguments.report.as_deref();
    let written = report.map_or(Ok(()), |path| page::write(path, &result, arguments));
    // Print the results even if the report could not be written.
    let document = serde_json::to_value(Document::Pair(result.document()?))?;
    output.result(&document, |_| result.text(output.verbose))?;
    written?;
    if let Some(error) = result.rows_error {
        return Err(error.into());
    }
    report.iter().for_each(|path| output.remark(format!("report: {}", path.display())));
    Ok(if result.unknown_loss.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
