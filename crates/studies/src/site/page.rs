//! The page that leads to the reports of all studies.

use maud::{Markup, html};

use super::Outcome;
use crate::account::claims;
use crate::experiment::{Claim, Claimant, Verdict};
use wirestamp_report::format::{length, plural};
use wirestamp_report::sheet::{Heading, absent, document, pairs, section};

/// The page: a card for each study. All text may be hostile. `has_report` says whether there is a report of this name.
pub(super) fn html(outcomes: &[Outcome], has_report: impl Fn(&str) -> bool) -> String {
    let here = outcomes.iter().filter_map(Outcome::account).next_back();
    let here = here.map(|account| account.making.circumstances.clone()).unwrap_or_default();
    let generated_at = format!("{} UTC", here.date);
    let heading = Heading {
        title: "Reproduced experiments of the papers",
        generated_at: &generated_at,
        summary: &summary(outcomes),
    };
    let rows = [
        ("Command", here.command),
        ("Version", here.version),
        ("Kernel", format!("{}, keeps time by {}", here.kernel, here.clocksource)),
        ("Processor", here.processor),
    ];
    let rows = rows.map(|(name, value)| (name.to_owned(), value));
    let sections = html! {
        @for outcome in outcomes { (card(outcome, &has_report)) }
        (pairs("machine", "Machine and last run", &rows))
    };
    document(&heading, Markup::default(), sections)
}

/// Number of studies, and how many claims of the papers and of this project have each verdict.
fn summary(outcomes: &[Outcome]) -> Vec<String> {
    let accounts = outcomes.iter().filter_map(Outcome::account);
    let claims: Vec<_> = accounts.flat_map(|account| &account.claims).collect();
    let studies = plural(length(outcomes), "study", "studies");
    let of = |by| claims.iter().copied().filter(|claim| claim.by == by).collect::<Vec<_>>();
    let (papers, ours) = (of(Claimant::Paper), of(Claimant::Project));
    let findings = plural(length(&papers), "finding", "findings");
    let mut summary = vec![
        format!("{studies} on this machine."),
        format!("Of {findings} of the papers {}.", verdicts(&papers)),
    ];
    if !ours.is_empty() {
        let claims = plural(length(&ours), "claim", "claims");
        summary.push(format!("Of {claims} of this project {}.", verdicts(&ours)));
    }
    summary
}

/// Number of claims with each verdict, in words.
fn verdicts(claims: &[&Claim]) -> String {
    let count = |verdict: Verdict| claims.iter().filter(|claim| claim.verdict == verdict).count();
    let confirmed = count(Verdict::Confirmed);
    let mut words = format!(
        "{confirmed} {} confirmed by the data here, {} contradicted, and {} not decided",
        if confirmed == 1 { "is" } else { "are" },
        count(Verdict::Contradicted),
        count(Verdict::Open),
    );
    match count(Verdict::NotTheSameQuestion) {
        0 => {}
        others => words += &format!("; {others} cannot be asked on this test bed"),
    }
    words
}

fn card(outcome: &Outcome, has_report: impl Fn(&str) -> bool) -> Markup {
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
        @let of_mesh = format!("{study}-mesh.html");
        @if has_report(&of_mesh) {
            p { a href=(of_mesh) { "The same with probes of a mesh" } }
        }
    };
    section(study, html! { a href={ (study) ".html" } { (account.title) } }, body)
}
