//! The page around the sections of the streams: its beginning and its end.

use maud::{Markup, html};

use super::format::{NOTHING, approximate, count, duration, length, nanos, percent, plural};
use super::sheet::{Heading, absent, document, list, pairs, section, table, terms};
use super::stream;
use wirestamp_metrics::Summary;

use super::report::{Check, Ledger, Report, Stream};

/// Terms and their meaning, with where they are defined.
const DEFINITIONS: [(&str, &str, &str); 6] = [
    (
        "One-way delay",
        "RFC 7679",
        "The time from a packet's passing the first observation point to its passing the second.",
    ),
    (
        "Delay variation (IPDV)",
        "RFC 3393",
        "The one-way delay of a packet less that of the packet sent before it; negative where the \
         later one was faster.",
    ),
    (
        "Loss",
        "RFC 7680",
        "A packet that passed the first point and was not seen at the second within the time \
         allowed.",
    ),
    (
        "Reordering",
        "RFC 4737",
        "A packet that arrives after one that was sent later. The early packet is in order, the \
         late one is counted.",
    ),
    (
        "Duplication",
        "RFC 5560",
        "A further copy of a packet at the second point that passed the first point once.",
    ),
    (
        "Clock error",
        "this report",
        "The true delay is no farther from the measured one than this. It covers reading the \
         clock and converting its counter to time.",
    ),
];

/// The report as a complete HTML document.
///
/// Any text in the report may be hostile; it is escaped. The section of an empty list is left out or contains a note.
#[must_use]
pub fn html(report: &Report) -> String {
    let Report { title, generated_at, summary, streams, checks, ledgers: all, .. } = report;
    let main = html! {
        (glance(streams))
        @for (index, stream) in (1..).zip(streams) { (stream::section(stream, index)) }
        (checked(checks))
        (ledgers(all))
        (pairs("machine", "Machine and clock", &report.machine))
        (files(report))
        (terms("definitions", "Definitions", &DEFINITIONS))
    };
    document(&Heading { title, generated_at, summary }, outcome(checks), main)
}

/// Number of checks that hold, in a line; empty if there are no checks.
fn outcome(checks: &[Check]) -> Markup {
    let all = length(checks);
    let failed = all - length(&checks.iter().filter(|check| check.holds).collect::<Vec<_>>());
    let (class, text) = match failed {
        0 => ("pass", format!("{} against the truth: all hold.", plural(all, "check", "checks"))),
        failed => (
            "fail",
            format!(
                "{} of {} against the truth {} not hold.",
                count(failed),
                plural(all, "check", "checks"),
                if failed == 1 { "does" } else { "do" }
            ),
        ),
    };
    html! {
        @if all > 0 { p class={ "outcome " (class) } { (text) " " a href="#checks" { "See which" } } }
    }
}

/// Table with a row for each stream.
fn glance(streams: &[Stream]) -> Markup {
    let heads = [
        "Stream",
        "Sent",
        "Lost",
        "Reordered",
        "Duplicated",
        "Mean delay",
        "99\u{202f}% delay",
        "99\u{202f}% IPDV",
        "Clock error",
    ];
    let rows: Vec<_> = (1..).zip(streams).map(|(index, stream)| row(stream, index)).collect();
    let body = html! {
        @if rows.is_empty() { (absent("No stream was measured.")) }
        @else { (table("glance", "Each stream", &heads, &rows)) }
    };
    section("glance", "Overview", body)
}

fn row(stream: &Stream, index: usize) -> Vec<Markup> {
    let p99 = |numbers: Option<Summary>| {
        numbers.map_or(NOTHING.to_owned(), |numbers| duration(approximate(numbers.p99)))
    };
    let mean = stream.delay.map_or(NOTHING.to_owned(), |numbers| duration(numbers.mean));
    let error = stream.clock_error_ns.map_or("unknown".to_owned(), |ns| format!("± {}", nanos(ns)));
    let name = html! { a href={ "#stream-" (index) } { (stream.name) } };
    let cells = [
        count(stream.sent),
        lost(stream.lost, stream.sent),
        count(stream.reordered),
        count(stream.duplicated),
        mean,
        p99(stream.delay),
        p99(stream.variation),
        error,
    ];
    std::iter::once(name).chain(cells.map(|cell| html! { (cell) })).collect()
}

/// Lost packets, and their share if there are some.
pub(super) fn lost(lost: u64, sent: u64) -> String {
    match lost {
        0 => "0".to_owned(),
        lost => format!("{} ({})", count(lost), percent(lost, sent)),
    }
}

/// Every check with its two values and whether they agree.
fn checked(checks: &[Check]) -> Markup {
    let cells = |check: &Check| {
        let Check { what, truth, measured, within_percent, holds, how } = check;
        let mark = html! {
            @if *holds { span."mark pass" { "✓ holds" (within(*within_percent)) } }
            @else { span."mark fail" { "✗ does not hold" (within(*within_percent)) } }
        };
        let [what, measured, truth, how] =
            [what, measured, truth, how].map(|text| html! { (text) });
        vec![what, measured, truth, mark, how]
    };
    let rows: Vec<_> = checks.iter().map(cells).collect();
    let heads = ["What", "Measured", "Known", "Result", "How it is known"];
    let body = html! {
        @if rows.is_empty() { (absent("Nothing was checked.")) }
        @else { (table("checks", "Measured against known values", &heads, &rows)) }
    };
    section("checks", "Comparison with the truth", body)
}

fn within(percent: Option<f64>) -> String {
    percent.map_or(String::new(), |percent| format!(" within {percent} %"))
}

/// Every ledger; empty if there are none.
pub(super) fn ledgers(ledgers: &[Ledger]) -> Markup {
    let all = html! {
        div.columns {
            @for Ledger { point, rows, balanced } in ledgers {
                div.ledger {
                    table.ledger {
                        caption { (point) }
                        tbody {
                            @for (what, packets) in rows {
                                tr { th scope="row" { (what) } td { (count(*packets)) } }
                            }
                        }
                    }
                    @if *balanced { p."mark pass" { "✓ balances: every packet is accounted for" } }
                    @else { p."mark fail" { "✗ does not balance: packets are unaccounted for" } }
                }
            }
        }
    };
    html! { @if !ledgers.is_empty() { (section("ledgers", "Packets by outcome", all)) } }
}

/// The files, and the commands to read them.
fn files(report: &Report) -> Markup {
    let body = html! {
        (list(&report.files))
        @if !report.commands.is_empty() {
            p { "To read them:" }
            pre { code { @for line in &report.commands { (line) "\n" } } }
        }
    };
    html! { @if !body.0.is_empty() { (section("files", "Files", body)) } }
}
