//! A study's account as a page.

use super::{Account, Making, Part, Section};
use crate::experiment::{Claim, Verdict};
use wirestamp_report::format::{Escaped, count, plural};
use wirestamp_report::sheet::{Heading, document, pairs, section, terms};

/// The page. All of its text may be hostile but what is said to be HTML.
pub(crate) fn html(account: &Account) -> String {
    let generated_at = format!("{} UTC", account.making.circumstances.date);
    let summary = summary(account);
    let heading = Heading { title: account.title, generated_at: &generated_at, summary: &summary };
    let claims = claims(&account.claims);
    let mut sections = section("findings", "What the paper finds, and the data here", &claims);
    sections.extend(account.sections.iter().map(of_section));
    let deviations: Vec<_> =
        account.deviations.iter().map(|(subject, text)| (*subject, "", *text)).collect();
    sections += &terms("deviations", "Where this departs from the paper", &deviations);
    sections += &pairs("machine", "Machine and run", &machine(account), "");
    document(&heading, "", &sections)
}

/// What became of each claim of a paper, in a sentence.
pub(crate) fn claims(claims: &[Claim]) -> String {
    let of_claim = |Claim { verdict, sentence, .. }: &Claim| {
        let (class, mark) = match verdict {
            Verdict::Confirmed => ("pass", "✓"),
            Verdict::Contradicted => ("fail", "✗"),
            Verdict::Open => ("open", "?"),
        };
        format!("<li><span class=\"mark {class}\">{mark}</span> {}</li>\n", Escaped(sentence))
    };
    let claims: String = claims.iter().map(of_claim).collect();
    format!("<ul class=\"claims\">\n{claims}</ul>\n")
}

/// What this is, in sentences.
fn summary(account: &Account) -> Vec<String> {
    let mut summary = vec![format!("The experiment of {}, made again.", account.paper)];
    if account.making.interrupted {
        summary.push("The experiment was interrupted; this is the part that was done.".into());
    }
    summary
}

fn of_section(Section { id, heading, parts }: &Section) -> String {
    let body: String = parts.iter().map(of_part).collect();
    section(id, &Escaped(heading).to_string(), &body)
}

fn of_part(part: &Part) -> String {
    match part {
        Part::Table(table) if table.rows.is_empty() => String::new(),
        Part::Table(table) => table.html(),
        Part::Remark(text) => format!("<p class=\"pattern\">{}</p>\n", Escaped(text)),
        Part::Figure(html) => html.clone(),
    }
}

fn machine(account: &Account) -> Vec<(String, String)> {
    let Making { circumstances: here, sittings, seed, repetitions, .. } = &account.making;
    let sittings = plural(u64::try_from(*sittings).unwrap_or(u64::MAX), "sitting", "sittings");
    let runs = format!(
        "{} of every cell in a random order (seed {seed}), in {sittings}",
        count(u64::from(*repetitions))
    );
    let rows = [
        ("Command", here.command.clone()),
        ("Version", here.version.clone()),
        ("Kernel", format!("{}, keeps time by {}", here.kernel, here.clocksource)),
        ("Processor", here.processor.clone()),
        ("Repetitions", runs),
    ];
    let rows = rows.map(|(name, value)| (name.to_owned(), value));
    rows.into_iter().chain(account.machine.iter().cloned()).collect()
}
