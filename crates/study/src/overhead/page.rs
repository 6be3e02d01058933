//! The experiment as a page.

use super::figures::{self, FIRST_SERIES};
use super::findings::Findings;
use super::paper::{MACHINE, Traffic};
use super::{Claim, DEVIATIONS};
use crate::report::figures::Figure;
use crate::report::format::{Escaped, duration};
use crate::report::sheet::{Heading, document, key, on_every_screen, pairs, section, terms};

/// The page.
pub(super) fn html(findings: &Findings) -> String {
    let generated_at = format!("{} UTC", findings.circumstances.date);
    let summary = summary(findings);
    let heading = Heading {
        title: "What it costs to stamp a packet",
        generated_at: &generated_at,
        summary: &summary,
    };
    let tables = findings.beside_the_paper().html() + &findings.distributions().html();
    let mut sections = section("tables", "Tables I and II, here and in the paper", &tables);
    for pattern in Traffic::ALL {
        sections += &of_pattern(findings, pattern);
    }
    sections += &section("softirq", "In the softIRQ", &softirq(findings));
    sections += &section("effects", "What makes the difference", &findings.effects().html());
    let deviations = DEVIATIONS.map(|(subject, text)| (subject, "", text));
    sections += &terms("deviations", "Where this departs from the paper", &deviations);
    sections += &pairs("machine", "Machine and run", &machine(findings), "");
    document(&heading, "", &sections)
}

/// What was found, in sentences.
fn summary(findings: &Findings) -> Vec<String> {
    let mut summary = vec![format!("The experiment of {}, made again.", findings.paper)];
    summary.extend(findings.claims.iter().map(|Claim { sentence, .. }| sentence.clone()));
    if findings.interrupted {
        summary.push("The experiment was interrupted; this is the part that was done.".into());
    }
    summary
}

/// Draws a figure of a size, with an identity.
type Draw<'a> = &'a dyn Fn((u32, u32), &str) -> Option<Figure>;

/// The figures of a pattern.
fn of_pattern(findings: &Findings, pattern: Traffic) -> String {
    let [_, figure, words] = pattern.place();
    let name = pattern.name();
    let key = key(figures::names(), FIRST_SERIES);
    let drawn = |heading: &str, id: String, draw: Draw<'_>| {
        on_every_screen(heading, &key, &id, draw)
            .unwrap_or_else(|| "<p class=\"empty\">Nothing was measured.</p>\n".to_owned())
    };
    let density = |size, id: &str| figures::density(findings, pattern, size, id);
    let memory = |size, id: &str| figures::autocorrelation(findings, pattern, size, id);
    let body = drawn("Density points of the overhead", format!("density-{name}"), &density)
        + &drawn("Auto-correlation of the overhead", format!("memory-{name}"), &memory);
    section(name, &format!("{figure}, measured here: {words}"), &body)
}

fn softirq(findings: &Findings) -> String {
    let line = |line: String| format!("<p class=\"pattern\">{}</p>\n", Escaped(&line));
    let missing: String = findings.not_in_the_softirq().into_iter().map(line).collect();
    let table = findings.in_the_softirq();
    if table.rows.is_empty() { missing } else { table.html() + &missing }
}

fn machine(findings: &Findings) -> Vec<(String, String)> {
    let here = &findings.circumstances;
    let runs = format!(
        "{} of every cell in a random order (seed {}), in {} sitting{}",
        findings.repetitions,
        findings.seed,
        findings.sittings,
        if findings.sittings == 1 { "" } else { "s" }
    );
    [
        ("Command", here.command.clone()),
        ("Version", here.version.clone()),
        ("Kernel", format!("{}, keeps time by {}", here.kernel, here.clocksource)),
        ("Processor", here.processor.clone()),
        ("Counter", format!("moves in steps of {}", duration(findings.step_ns))),
        ("Repetitions", runs),
        ("The paper's machine", MACHINE.to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}
