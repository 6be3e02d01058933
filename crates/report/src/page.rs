//! The page around the streams: what it opens with, and what it ends with.

use super::format::{
    Escaped, NOTHING, approximate, count, duration, length, nanos, percent, plural,
};
use super::sheet::{Heading, document, pairs, table, terms};
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
/// Any text in the report may be hostile: it is shown, never interpreted. Any list may be empty:
/// its section is left out or says so.
#[must_use]
pub fn html(report: &Report) -> String {
    let mut main = glance(&report.streams);
    for (index, stream) in (1..).zip(&report.streams) {
        main += &stream::section(stream, index);
    }
    main += &checks(&report.checks);
    main += &ledgers(&report.ledgers);
    main += &pairs("machine", "Machine and clock", &report.machine, "");
    main += &files(report);
    main += &terms("definitions", "What the words mean", &DEFINITIONS);
    let Report { title, generated_at, summary, checks, .. } = report;
    document(&Heading { title, generated_at, summary }, &outcome(checks), &main)
}

/// One line that says how many checks hold; nothing if there are none.
fn outcome(checks: &[Check]) -> String {
    let all = length(checks);
    let failed: Vec<_> = checks.iter().filter(|check| !check.holds).collect();
    let (class, text) = match length(&failed) {
        _ if all == 0 => return String::new(),
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
    format!("<p class=\"outcome {class}\">{text} <a href=\"#checks\">See which</a></p>\n")
}

/// One row for each stream.
fn glance(streams: &[Stream]) -> String {
    let rows: Vec<_> =
        (1..).zip(streams).map(|(index, stream)| glance_row(stream, index)).collect();
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
    let body = if rows.is_empty() {
        "<p class=\"empty\">No stream was measured.</p>\n".to_owned()
    } else {
        table("glance", "What each stream met", &heads, &rows)
    };
    format!("<section id=\"glance\">\n<h2>At a glance</h2>\n{body}</section>\n")
}

fn glance_row(stream: &Stream, index: usize) -> Vec<String> {
    let most = |numbers: Option<Summary>| {
        numbers.map_or(NOTHING.to_owned(), |numbers| duration(approximate(numbers.p99)))
    };
    let mean = stream.delay.map_or(NOTHING.to_owned(), |numbers| duration(numbers.mean));
    let lost = match stream.lost {
        0 => "0".to_owned(),
        lost => format!("{} ({})", count(lost), percent(lost, stream.sent)),
    };
    let error = stream.clock_error_ns.map_or("unknown".to_owned(), |ns| format!("± {}", nanos(ns)));
    vec![
        format!("<a href=\"#stream-{index}\">{}</a>", Escaped(&stream.name)),
        count(stream.sent),
        lost,
        count(stream.reordered),
        count(stream.duplicated),
        mean,
        most(stream.delay),
        most(stream.variation),
        error,
    ]
}

/// Every check with its two values and whether they agree.
fn checks(checks: &[Check]) -> String {
    let cells = |check: &Check| {
        let Check { what, truth, measured, within_percent, holds, how } = check;
        let (class, word) =
            if *holds { ("pass", "✓ holds") } else { ("fail", "✗ does not hold") };
        let within = within_percent.map_or(String::new(), |most| format!(" within {most} %"));
        let mut cells: Vec<_> =
            [what, measured, truth].into_iter().map(|text| Escaped(text).to_string()).collect();
        cells.push(format!("<span class=\"mark {class}\">{word}{within}</span>"));
        cells.push(Escaped(how).to_string());
        cells
    };
    let rows: Vec<_> = checks.iter().map(cells).collect();
    let heads = ["What", "Measured", "Known", "Result", "How it is known"];
    let body = if rows.is_empty() {
        "<p class=\"empty\">Nothing was checked.</p>\n".to_owned()
    } else {
        table("checks", "Measured against known values", &heads, &rows)
    };
    format!("<section id=\"checks\">\n<h2>Is this true?</h2>\n{body}</section>\n")
}

/// Every ledger; nothing if there are none.
pub(super) fn ledgers(ledgers: &[Ledger]) -> String {
    let one = |ledger: &Ledger| {
        let row = |(what, packets): &(String, u64)| {
            format!(
                "<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n",
                Escaped(what),
                count(*packets)
            )
        };
        let rows: String = ledger.rows.iter().map(row).collect();
        let (class, word) = if ledger.balanced {
            ("pass", "✓ balances: every packet is accounted for")
        } else {
            ("fail", "✗ does not balance: packets are unaccounted for")
        };
        format!(
            "<div class=\"ledger\">\n<table class=\"ledger\">\n<caption>{}</caption>\n<tbody>\n\
             {rows}</tbody>\n</table>\n<p class=\"mark {class}\">{word}</p>\n</div>\n",
            Escaped(&ledger.point)
        )
    };
    if ledgers.is_empty() {
        return String::new();
    }
    let all: String = ledgers.iter().map(one).collect();
    format!(
        "<section id=\"ledgers\">\n<h2>Where every packet went</h2>\n<div class=\"columns\">\n\
         {all}</div>\n</section>\n"
    )
}

/// The files, and the commands to look at them.
fn files(report: &Report) -> String {
    let commands: String =
        report.commands.iter().map(|line| format!("{}\n", Escaped(line))).collect();
    let commands = if commands.is_empty() {
        String::new()
    } else {
        format!("<p>To look at them:</p>\n<pre><code>{commands}</code></pre>\n")
    };
    pairs("files", "Files", &report.files, &commands)
}
