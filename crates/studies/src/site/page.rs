//! The page that leads to the reports of all studies.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::card::{Card, Results};
use crate::account::{claims, mark};
use crate::experiment::{Claim, Claimant, Verdict};
use crate::making::{kernel, processor, version};
use wirestamp_report::Circumstances;
use wirestamp_report::format::{length, plural};
use wirestamp_report::sheet::{Heading, absent, document, section};

/// The page: a card for each study. All text may be hostile.
pub(super) fn html(cards: &[Card]) -> String {
    let newest = results(cards).map(|it| it.making.circumstances.date.as_str()).max();
    let heading = Heading {
        title: "Reproduced experiments of the papers",
        generated_at: &newest.map(|date| format!("{date} UTC")).unwrap_or_default(),
        summary: &summary(cards),
    };
    let sections = html! {
        (section("legend", "Legend", legend()))
        @for card in cards { (section(&card.name, &card.name, html_of(card))) }
    };
    document(&heading, Markup::default(), sections)
}

fn results<'a>(cards: impl IntoIterator<Item = &'a Card>) -> impl Iterator<Item = &'a Results> {
    cards.into_iter().filter_map(|card| card.result.as_ref().ok())
}

/// Number of studies, and how many claims of the papers and of this project have each verdict. Studies with a mesh repeat
/// claims, and are counted apart.
fn summary(cards: &[Card]) -> Vec<String> {
    let (with_mesh, without): (Vec<_>, Vec<_>) = cards.iter().partition(|card| card.has_mesh);
    let mut summary = vec![format!("{}.", plural(length(&without), "study", "studies"))];
    summary.extend(counts(&without));
    if !with_mesh.is_empty() {
        let studies = plural(length(&with_mesh), "study", "studies");
        summary.push(format!("{studies} also with probes of a mesh."));
        summary.extend(counts(&with_mesh));
    }
    let processors: BTreeSet<_> =
        results(cards).flat_map(|it| it.making.distinct(processor)).collect();
    if !processors.is_empty() {
        let processors = processors.into_iter().collect::<Vec<_>>().join("; ");
        summary.push(format!("Processors: {processors}."));
    }
    summary
}

/// Number of claims with each verdict, a sentence for those of the papers and one for those of this project.
fn counts(cards: &[&Card]) -> Vec<String> {
    let claims: Vec<_> = results(cards.iter().copied()).flat_map(|it| &it.claims).collect();
    let sentence = |by, one, many, of| {
        let claims: Vec<_> = claims.iter().copied().filter(|claim| claim.by == by).collect();
        let number = plural(length(&claims), one, many);
        (!claims.is_empty()).then(|| format!("Of {number} of {of}, {}.", verdicts(&claims)))
    };
    let papers = sentence(Claimant::Paper, "finding", "findings", "the papers");
    let ours = sentence(Claimant::Project, "claim", "claims", "this project");
    papers.into_iter().chain(ours).collect()
}

/// Number of claims with each verdict, in words.
fn verdicts(claims: &[&Claim]) -> String {
    let count = |verdict: Verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let mut words = format!(
        "{} confirmed, {} contradicted, {} not decided",
        count(Verdict::Confirmed),
        count(Verdict::Contradicted),
        count(Verdict::Open),
    );
    match count(Verdict::NotTheSameQuestion) {
        0 => {}
        others => words += &format!(", {others} not the same question on this test bed"),
    }
    words
}

/// Signs and notations of the cards.
fn legend() -> Markup {
    html! {
        ul.claims {
            li {
                (mark(Verdict::Confirmed))
                " confirmed: the claim holds under each condition, with 95 % confidence for each."
            }
            li {
                (mark(Verdict::Contradicted))
                " contradicted: the contrary holds under one condition, with 95 % confidence for all conditions together; \
                or the difference is below the margin that the sentence states, with 95 % confidence under each condition."
            }
            li {
                (mark(Verdict::Open))
                " not decided: neither of the two; the sentence has the reason."
            }
            li {
                (mark(Verdict::NotTheSameQuestion))
                " not the same question: this test bed cannot answer it."
            }
            li {
                "ring/kernel, ring:kernel or ring-kernel: capture method ring with the stamp kernel, which the kernel \
                takes. The stamp raw is the processor's counter; xdp is the kernel's clock, read by an XDP program."
            }
        }
    }
}

/// The content of a card.
fn html_of(card: &Card) -> Markup {
    let Card { name, title, paper, result, .. } = card;
    let results = match result {
        Ok(results) => results,
        Err(error) => {
            return html! {
                p.pattern { (title) ". " (paper) }
                p."mark fail" { "Cannot be run: " (error) }
            };
        }
    };
    let making = &results.making;
    let once = |fact: fn(&Circumstances) -> String| making.distinct(fact).join(", ");
    let processors = making.distinct(processor).join("; ");
    html! {
        h3 { a href={ (name) ".html" } { (title) } }
        p.pattern { (paper) }
        @if making.interrupted {
            (absent("The study was interrupted; these are the results of the completed part."))
        }
        (claims(&results.claims))
        p.pattern { (making.when()) "; " (processors) "; Linux " (once(kernel)) "; version " (once(version)) }
    }
}
