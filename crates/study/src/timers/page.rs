//! The experiment as a page.

use super::figures;
use super::paper::{Published, Timer};
use super::{DEVIATIONS, Elsewhere, Findings, Measured};
use crate::report::figures::FIRST_SERIES;
use crate::report::format::{Escaped, count, duration};
use crate::report::sheet::{Heading, document, key, on_every_screen, pairs, section, terms};

/// The page.
pub(super) fn html(findings: &Findings) -> String {
    let generated_at = format!("{} UTC", findings.circumstances.date);
    let heading = Heading {
        title: "What it costs to read the time",
        generated_at: &generated_at,
        summary: &summary(findings),
    };
    let mut sections =
        section("tables", "Tables 1 and 2, here and in the paper", &beside_the_paper(findings));
    sections += &section("course", "Figures 2 and 3, measured here", &course(findings));
    sections += &section("ways", "Every way to read a source", &ways(findings));
    sections += &pairs("sources", "The sources of this machine", &sources(findings), "");
    let deviations = DEVIATIONS.map(|(subject, text)| (subject, "", text));
    sections += &terms("deviations", "Where this departs from the paper", &deviations);
    sections += &pairs("machine", "Machine and run", &machine(findings), "");
    document(&heading, "", &sections)
}

/// What was found, in sentences.
fn summary(findings: &Findings) -> Vec<String> {
    let mut summary = vec![format!("The experiment of {}, made again.", findings.paper)];
    summary.extend(
        findings
            .cost(Timer::Tsc)
            .map(|cost| format!("A read of the TSC takes {} on average.", duration(cost.mean))),
    );
    for timer in [Timer::Os, Timer::Hpet] {
        let name = timer.name();
        let [here, there @ ..] = findings.ratios(timer);
        let [via, athlon] = there.map(times);
        summary.push(match findings.cost(timer) {
            Some(cost) => format!(
                "One of the {name} takes {}, {} as long; in the paper it takes {via} (VIA Nano) and \
                 {athlon} (AMD Athlon) as long.",
                duration(cost.mean),
                times(here)
            ),
            None => format!(
                "The {name} {}; in the paper its read takes {via} (VIA Nano) \
                 and {athlon} (AMD Athlon) as long as one of the TSC.",
                if is_available(findings, timer) { "was not read" } else { "is not available here" }
            ),
        });
    }
    summary.extend(situation(findings));
    summary.extend(findings.beside.as_ref().map(Elsewhere::origin));
    if findings.interrupted {
        summary.push("The experiment was interrupted; this is the part that was done.".into());
    }
    summary
}

fn is_available(findings: &Findings, timer: Timer) -> bool {
    findings.ways.iter().any(|way| way.timer == Some(timer) && way.is_available())
}

fn times(ratio: Option<f64>) -> String {
    ratio.map_or("an unknown number of times".to_owned(), |ratio| format!("{ratio:.1} times"))
}

/// Which of the paper's figures shows a machine like this one.
fn situation(findings: &Findings) -> Option<String> {
    let kernel = &findings.circumstances.clocksource;
    let like = findings.published.iter().find(|published| published.clocksource == kernel)?;
    let Published { figure, processor, .. } = like;
    Some(format!("The kernel keeps time by {kernel}, as in {figure} ({processor})."))
}

/// The means and deviations beside the paper's, in figures and drawn.
fn beside_the_paper(findings: &Findings) -> String {
    let places = ["here", "Table 1: VIA Nano", "Table 2: AMD Athlon"];
    let draw = |size, id: &str| Some(figures::beside_the_paper(findings, size, id));
    let key = key(places.into_iter(), FIRST_SERIES);
    let drawn = on_every_screen("Mean and deviation", &key, "beside", draw).unwrap_or_default();
    format!("{}{}{drawn}", findings.beside_the_paper().html(), missing(findings))
}

/// Why timers of the paper have no numbers.
fn missing(findings: &Findings) -> String {
    let without = findings.ways.iter().filter(|way| way.timer.is_some() && !way.is_available());
    let line = |way: &Measured| {
        let name = way.timer.map_or("", Timer::name);
        format!("<p class=\"pattern\">{name}: not available here, {}.</p>\n", Escaped(&way.reason))
    };
    without.map(line).collect()
}

fn course(findings: &Findings) -> String {
    let names = figures::shown(findings).filter_map(|way| way.timer).map(Timer::name);
    let key = key(names, FIRST_SERIES);
    let draw = |size, id: &str| figures::course(findings, size, id);
    on_every_screen("Cost in the course of the experiment", &key, "course", draw)
        .unwrap_or_else(|| "<p class=\"empty\">Nothing was measured.</p>\n".to_owned())
}

/// Every way with and without its peaks.
fn ways(findings: &Findings) -> String {
    let note = "<p class=\"pattern\">A clock that moves in steps shows each cost as a whole number \
                of steps: the mean is right all the same, the deviation is that of the steps where \
                they are no smaller than the cost.</p>\n";
    findings.every_way().html() + note
}

fn sources(findings: &Findings) -> Vec<(String, String)> {
    let mut sources: Vec<_> = findings
        .ways
        .iter()
        .map(|way| {
            let mark = if way.source == findings.selected { " (chosen)" } else { "" };
            let by = way.emulated_by.as_ref().filter(|_| way.is_available());
            let emulated = by.map_or(String::new(), |by| format!("; emulated by {by}"));
            (format!("{}{mark}", way.source), format!("{}{emulated}", way.reason))
        })
        .collect();
    sources.dedup();
    sources
}

fn machine(findings: &Findings) -> Vec<(String, String)> {
    let here = &findings.circumstances;
    let reads = u64::from(findings.rounds) * u64::from(findings.reads_per_round);
    let mut rows = vec![
        ("Command".to_owned(), here.command.clone()),
        ("Kernel".to_owned(), format!("{}, keeps time by {}", here.kernel, here.clocksource)),
        ("Processor".to_owned(), here.processor.clone()),
        (
            "Reads".to_owned(),
            format!("{} in each way, {} in a row", count(reads), findings.reads_per_round),
        ),
    ];
    rows.extend(findings.published.map(|published| {
        let Published { table, figure, machine, .. } = published;
        (format!("The paper's {table} and {figure}"), machine.to_owned())
    }));
    rows
}
