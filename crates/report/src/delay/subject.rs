//! The section of one flow: its verdict, its figures, and the order of its packets.

use maud::{Markup, html};
use wirestamp_metrics::{Distribution, Quality, SequenceMetrics};

use super::{Call, DelayReport, Subject, words};
use crate::figures;
use crate::sheet::{absent, figure, list, on_every_screen};
use crate::stream::{shares, summaries};

/// Size in pixels of a figure of half the page width.
const HALF: (u32, u32) = (490, 290);

/// The section of the subject that is `index`th in the report.
pub(super) fn section(subject: &Subject<'_>, index: usize, report: &DelayReport<'_>) -> Markup {
    let DelayReport { relative, sampled, .. } = *report;
    let Subject { name, quality, call, more, .. } = subject;
    let counts = quality.counts();
    let outcomes = [
        ("arrived", counts.matched),
        ("lost", counts.lost),
        ("duplicated", counts.duplicated),
        ("reordered", counts.reordered),
    ];
    let is_known = |outcome: &&(&str, u64)| outcome.0 != "lost" || !subject.is_loss_unknown;
    let outcomes: Vec<_> = outcomes.iter().filter(is_known).copied().collect();
    let counts = shares(counts.sent, &outcomes);
    let verdict = if subject.is_loss_unknown {
        "Loss is unknown: see Accuracy.".to_owned()
    } else {
        words::verdict(quality, relative)
    };
    let course = quality.sequence_metrics().filter(|_| !subject.is_loss_unknown);
    let mut statements =
        course.map_or_else(Vec::new, |course| words::course(quality, course, sampled));
    if let Some(Call { codec, buffer, rating, .. }) = call {
        let text = format!(
            "R {:.1}, MOS {:.2} with {codec} and a de-jitter buffer of {buffer}{}. Of R, codec and loss cost {:.1}, delay {:.1}.",
            rating.r_factor(),
            rating.mos(),
            late(quality),
            rating.equipment,
            rating.delay
        );
        statements.push(("As a phone call".to_owned(), text));
    }
    statements.extend_from_slice(more);
    html! {
        section.stream id={ "subject-" (index) } {
            h2 { (name) }
            p.verdict { (verdict) }
            (counts)
            (over_time(quality, index, relative))
            (rating_over_time(call.as_ref(), index))
            div.columns { (histograms(quality, index, relative)) }
            (distributions(quality, relative))
            (list(&statements))
        }
    }
}

/// Packets that came too late for the de-jitter buffer, as the end of a clause.
fn late(quality: &Quality) -> String {
    match quality.sequence_metrics().map_or(0, SequenceMetrics::late) {
        0 => String::new(),
        1 => ", for which 1 packet came too late".to_owned(),
        count => format!(", for which {count} packets came too late"),
    }
}

fn over_time(quality: &Quality, index: usize, relative: bool) -> Markup {
    let floor = if relative { quality.delay().summary().map_or(0, |delay| delay.min) } else { 0 };
    let (heading, what) = if relative {
        ("Delay above the least, over time", "delay above the least")
    } else {
        ("Delay over time", "one-way delay")
    };
    let drawn = |size, id: &str| {
        figures::delay_series(&quality.sequence_metrics()?.series, what, floor, id, size)
    };
    on_every_screen(heading, &Markup::default(), &format!("subject-{index}-time"), drawn)
        .unwrap_or_else(|| absent("No packet arrived, so there is no delay to show."))
}

/// MOS over time; empty without a call, or with a short one.
fn rating_over_time(call: Option<&Call>, index: usize) -> Markup {
    let over_time = call.and_then(|call| call.over_time.as_ref());
    let drawn = |size, id: &str| figures::mos_over_time(over_time?, id, size);
    let heading = "As a phone call, over time";
    on_every_screen(heading, &Markup::default(), &format!("subject-{index}-opinion"), drawn)
        .unwrap_or_default()
}

/// How often each delay and each variation occurred.
fn histograms(quality: &Quality, index: usize, relative: bool) -> Markup {
    let delay = if relative { "delay above the least" } else { "one-way delay" };
    let figures = [
        (format!("How often each {delay} occurred"), delay, quality.delay()),
        ("How often each delay variation occurred (IPDV)".into(), "variation", quality.variation()),
    ];
    let draw = |(number, (heading, what, values)): (usize, (String, &str, &Distribution))| {
        let id = format!("subject-{index}-histogram-{number}");
        let drawn = figures::of_distribution(values, what, &id, HALF)?;
        Some(figure(&heading, &Markup::default(), &drawn))
    };
    html! { @for figure in figures.into_iter().enumerate().filter_map(draw) { (figure) } }
}

fn distributions(quality: &Quality, relative: bool) -> Markup {
    let (delay, variation) = (quality.delay().summary(), quality.variation().summary());
    let above = delay.map(|delay| delay.above_minimum());
    let mut rows = vec![
        ("One-way delay (µs)", delay.as_ref()),
        ("Above the least, PDV (µs)", above.as_ref()),
        ("Delay variation, IPDV (µs)", variation.as_ref()),
    ];
    if relative {
        rows.remove(0);
    }
    summaries(&rows)
}
