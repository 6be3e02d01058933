//! The page that leads to the reports of all studies.

use super::Outcome;
use crate::account::{Account, claims};
use crate::experiment::Verdict;
use wirestamp_report::format::{Escaped, length, plural};
use wirestamp_report::sheet::{Heading, document, pairs, section};

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
    let mut cards: String = outcomes.iter().map(card).collect();
    let rows = [
        ("Command", here.command),
        ("Version", here.version),
        ("Kernel", format!("{}, keeps time by {}", here.kernel, here.clocksource)),
        ("Processor", here.processor),
    ];
    let rows = rows.map(|(name, value)| (name.to_owned(), value));
    cards += &pairs("machine", "Machine and last run", &rows, "");
    document(&heading, "", &cards)
}

/// How many findings of the papers are so here.
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

fn card(outcome: &Outcome) -> String {
    let Outcome { study, paper, .. } = outcome;
    let paper = format!("<p class=\"pattern\">{}</p>\n", Escaped(paper));
    match (outcome.account(), outcome.error()) {
        (Some(account), _) => {
            let heading = format!("<a href=\"{study}.html\">{}</a>", Escaped(account.title));
            section(study, &heading, &(paper + &findings(account)))
        }
        (None, error) => {
            let error = Escaped(error.unwrap_or_default());
            let why = format!("<p class=\"mark fail\">Could not be run: {error}</p>\n");
            section(study, &Escaped(study).to_string(), &(paper + &why))
        }
    }
}

/// A sentence for each claim of the paper.
fn findings(account: &Account) -> String {
    let interrupted = if account.making.interrupted {
        "<p class=\"empty\">It was interrupted; this is of the part that was done.</p>\n"
    } else {
        ""
    };
    format!("{interrupted}{}", claims(&account.claims))
}
