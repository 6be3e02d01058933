//! The section of one stream: its verdict, its distributions, its three figures.

use maud::{Markup, html};

use super::figures;
use super::format::{NOTHING, approximate, count, micros, percent};
use super::sheet::{absent, figure, key, on_every_screen, table};
use wirestamp_metrics::Summary;

use super::report::Stream;

/// Size in pixels of a figure of half the page width.
const HALF: (u32, u32) = (490, 290);

/// The section of the stream that is `index`th in the report.
pub(super) fn section(stream: &Stream, index: usize) -> Markup {
    let Stream { sent, received, lost, duplicated, reordered, .. } = *stream;
    let rest = [
        ("received", received),
        ("lost", lost),
        ("duplicated", duplicated),
        ("reordered", reordered),
    ];
    html! {
        section.stream id={ "stream-" (index) } {
            h2 { (stream.name) }
            @if !stream.description.is_empty() { p.pattern { (stream.description) } }
            @if !stream.verdict.is_empty() { p.verdict { (stream.verdict) } }
            (shares(sent, &rest))
            (over_time(stream, index))
            div.columns { (delay_histogram(stream, index)) (interarrival(stream, index)) }
            (distributions(stream))
        }
    }
}

/// Packets sent, and the count and share of each outcome, in one line.
pub(super) fn shares(sent: u64, rest: &[(&str, u64)]) -> Markup {
    html! {
        dl.counts {
            div { dt { "sent" } dd { (count(sent)) } }
            @for (name, value) in rest {
                div {
                    dt { (name) }
                    dd { (count(*value)) @if *value > 0 { " " small { (percent(*value, sent)) } } }
                }
            }
        }
    }
}

fn over_time(stream: &Stream, index: usize) -> Markup {
    let drawn = |size, id: &str| figures::delay_over_time(stream, id, size);
    on_every_screen("Delay over time", &Markup::default(), &format!("stream-{index}-time"), drawn)
        .unwrap_or_else(|| absent("No packet was received, so there is no delay to show."))
}

fn delay_histogram(stream: &Stream, index: usize) -> Markup {
    figures::delay_histogram(stream, &format!("stream-{index}-delays"), HALF).map_or_else(
        || absent("No packet was received, so there is no histogram of delays."),
        |drawn| figure("How often each delay occurred", &Markup::default(), &drawn),
    )
}

fn interarrival(stream: &Stream, index: usize) -> Markup {
    let Some(drawn) = figures::interarrival(stream, &format!("stream-{index}-gaps"), HALF) else {
        return absent("Fewer than two packets arrived, so there is no time between arrivals.");
    };
    let names = stream.interarrival.iter().map(|(name, _)| name.as_str());
    figure("Time between one arrival and the next", &key(names, 0), &drawn)
}

/// Table of the distributions of delay and its variation; empty if both are missing.
fn distributions(stream: &Stream) -> Markup {
    if stream.delay.is_none() && stream.variation.is_none() {
        return Markup::default();
    }
    summaries(&[
        ("One-way delay (µs)", stream.delay.as_ref()),
        ("Delay variation, IPDV (µs)", stream.variation.as_ref()),
    ])
}

/// Table of distributions, all in one unit so that they can be compared.
pub(super) fn summaries(rows: &[(&str, Option<&Summary>)]) -> Markup {
    let heads = [
        "",
        "Count",
        "Min",
        "Mean",
        "Deviation",
        "Median",
        "90\u{202f}%",
        "99\u{202f}%",
        "99.9\u{202f}%",
        "Max",
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
