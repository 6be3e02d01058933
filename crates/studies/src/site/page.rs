//! The page that leads to the reports of all studies.

use maud::{Markup, html};

use super::Outcome;
use crate::account::claims;
use crate::experiment::Verdict;
use wirestamp_report::format::{length, plural};
use wirestamp_report::sheet::{Heading, absent, document, pairs, section};

/// The page: a card for each study. All text may be hostile.
pub(super) fn html(outcomes: &[Outcome]) -> String {
    let here = outcomes.iter().filter_map(Outcome::account).next_back();
    let here = here.map(|account| account.making.circumstances.clone()).unwrap_or_default();
    let generated_at = format!("{} UTC", here.date);
    let heading = Heading {
        title: "Reproduced experiments of the papers",
        generated_at: &generated_at,
        summary: &[summary(outcomes)],
    };
    let rows = [
        ("Command", here.command),
        ("Version", here.version),
        ("Kernel", format!("{}, keeps time by {}", here.kernel, here.clocksource)),
        ("Processor", here.processor),
    ];
    let rows = rows.map(|(name, value)| (name.to_owned(), value));
    let sections = html! {
        @for outcome in outcomes { (card(outcome)) }
        (pairs("machine", "Machine and last run", &rows))
    };
    document(&heading, Markup::default(), sections)
}

/// Number of the papers' findings that are confirmed here.
fn summary(outcomes: &[Outcome]) -> String {
    let claims: Vec<_> =
        outcomes.iter().filter_map(Outcome::account).flat_map(|account| &account.claims).collect();
    let count = |verdict: Verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let [confirmed, contradicted, open] =
        [Verdict::Confirmed, Verdict::Contradicted, Verdict::Open].map(count);
    format!(
        "{} on this machine. Of {} of the papers {confirmed} {} confirmed by the data here, \
         {contradicted} contradicted, and {open} not decided.",
        plural(length(outcomes), "study", "studies"),
        plural(length(&claims), "finding", "findings"),
        if confirmed == 1 { "is" } else { "are" },
    )
}

fn card(outcome: &Outcome) -> Markup {
    let Outcome { study, paper, .. } = outcome;
    let Some(account) = outcome.account() else {
        let body = html! {
            p.pattern { (paper) }
            p."mark fail" { "Cannot be run: " (outcome.error().unwrap_or_default()) }
        };
        return section(study, study, body);
    };
    let body = html! {
        p.pattern { (paper) }
        @if account.making.interrupted {
            (absent("The study was interrupted; these are the results of the completed part."))
        }
        (claims(&account.claims))
    };
    section(study, html! { a href={ (study) ".html" } { (account.title) } }, body)
}
