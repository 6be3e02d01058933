//! The section of one stream: its verdict, its distributions, its three figures.

use super::figures;
use super::format::{Escaped, NOTHING, approximate, count, micros, percent};
use super::sheet::{figure, key, on_every_screen, table};
use wirestamp_metrics::Summary;

use super::report::Stream;

/// The size of a figure in pixels that takes half of the page.
const HALF: (u32, u32) = (490, 290);

/// The section of the stream that is `index`th in the report.
pub(super) fn section(stream: &Stream, index: usize) -> String {
    let description = match stream.description.as_str() {
        "" => String::new(),
        text => format!("<p class=\"pattern\">{}</p>\n", Escaped(text)),
    };
    let verdict = match stream.verdict.as_str() {
        "" => String::new(),
        text => format!("<p class=\"verdict\">{}</p>\n", Escaped(text)),
    };
    format!(
        "<section id=\"stream-{index}\" class=\"stream\">\n<h2>{}</h2>\n{description}{verdict}\
         {}{}<div class=\"columns\">\n{}{}</div>\n{}</section>\n",
        Escaped(&stream.name),
        counts(stream),
        over_time(stream, index),
        delay_histogram(stream, index),
        interarrival(stream, index),
        distributions(stream),
    )
}

/// Packet counts in one line.
fn counts(stream: &Stream) -> String {
    let Stream { sent, received, lost, duplicated, reordered, .. } = *stream;
    let rest = [
        ("received", received),
        ("lost", lost),
        ("duplicated", duplicated),
        ("reordered", reordered),
    ];
    shares(sent, &rest)
}

/// Packets sent, and the count and share of each outcome, in one line.
pub(super) fn shares(sent: u64, rest: &[(&str, u64)]) -> String {
    let share = |part| match part {
        0 => String::new(),
        _ => format!(" <small>{}</small>", percent(part, sent)),
    };
    let entry = |name: &str, value: u64, share: &str| {
        format!("<div><dt>{name}</dt><dd>{}{share}</dd></div>", count(value))
    };
    let entries: String =
        rest.iter().map(|(name, value)| entry(name, *value, &share(*value))).collect();
    format!("<dl class=\"counts\">{}{entries}</dl>\n", entry("sent", sent, ""))
}

fn over_time(stream: &Stream, index: usize) -> String {
    let drawn = |size, id: &str| figures::delay_over_time(stream, id, size);
    on_every_screen("Delay over time", "", &format!("stream-{index}-time"), drawn)
        .unwrap_or_else(|| absent("No packet was received, so there is no delay to show."))
}

fn delay_histogram(stream: &Stream, index: usize) -> String {
    figures::delay_histogram(stream, &format!("stream-{index}-delays"), HALF).map_or_else(
        || absent("No packet was received, so there is no histogram of delays."),
        |drawn| figure("How often each delay occurred", "", &drawn),
    )
}

fn interarrival(stream: &Stream, index: usize) -> String {
    let Some(drawn) = figures::interarrival(stream, &format!("stream-{index}-gaps"), HALF) else {
        return absent("Fewer than two packets arrived, so there is no time between arrivals.");
    };
    let names = stream.interarrival.iter().map(|(name, _)| name.as_str());
    figure("Time between one arrival and the next", &key(names, 0), &drawn)
}

fn absent(why: &str) -> String {
    format!("<p class=\"empty\">{why}</p>\n")
}

/// The distributions of delay and its variation in figures; nothing if there is neither.
fn distributions(stream: &Stream) -> String {
    if stream.delay.is_none() && stream.variation.is_none() {
        return String::new();
    }
    summaries(&[
        ("One-way delay (µs)", stream.delay.as_ref()),
        ("Delay variation, IPDV (µs)", stream.variation.as_ref()),
    ])
}

/// Distributions in figures, all in one unit so that they compare.
pub(super) fn summaries(rows: &[(&str, Option<&Summary>)]) -> String {
    let heads = [
        "",
        "Count",
        "Least",
        "Mean",
        "Deviation",
        "Median",
        "90\u{202f}%",
        "99\u{202f}%",
        "99.9\u{202f}%",
        "Most",
    ];
    let row = |(name, numbers): &(&str, Option<&Summary>)| {
        let values = numbers.map_or_else(
            || vec![NOTHING.to_owned(); heads.len() - 1],
            |&Summary { count: n, min, mean, stddev, p50, p90, p99, p999, max }| {
                let [min, p50, p90, p99, p999, max] =
                    [min, p50, p90, p99, p999, max].map(approximate);
                let values = [min, mean, stddev, p50, p90, p99, p999, max].map(micros);
                [vec![count(n)], values.to_vec()].concat()
            },
        );
        [vec![(*name).to_owned()], values].concat()
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    table("distribution", "The distributions in figures", &heads, &rows)
}
