//! A report that is written again from its document, without raw results and without a measurement.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use maud::PreEscaped;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::account::{self, Account, Making, Part};
use crate::experiment::{Claim, Estimate};
use crate::presentation::Texts;
use crate::{interarrival, overhead, timers};

/// Computes the claims from those of a document and its values.
type Judge = fn(&[Claim], &Value) -> anyhow::Result<Vec<Claim>>;

/// Members of a document that are not values of its study.
const NO_VALUES: [&str; 18] = [
    "date",
    "version",
    "kernel",
    "processor",
    "hypervisor",
    "clocksource",
    "counter_hz",
    "counter_step_ns",
    "command",
    "sittings",
    "interrupted",
    "seed",
    "repetitions",
    "designs",
    "claims",
    "paper",
    "published",
    "report",
];

/// Writes the report `NAME.html` again from its document `NAME.json`, with the texts and verdicts of this version, and the
/// document with these claims. Figures that need raw results are those of the earlier report beside the document. For `timers`
/// all values are computed again from the raw results in the folder `timers` beside the document.
///
/// # Errors
/// When the document cannot be read or lacks a value, or a file cannot be written, or the study's raw results are archived as a
/// whole: its report is written again with `wirestamp study NAME --output FOLDER`.
pub fn write_again(document: &Path) -> anyhow::Result<PathBuf> {
    let shown = document.display();
    let text = fs::read(document).with_context(|| format!("cannot read {shown}"))?;
    let values: Value = serde_json::from_slice(&text)
        .with_context(|| format!("{shown} is not the document of a study"))?;
    let name = document.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let report = document.with_extension("html");
    // Without it the report has no figures that need raw results.
    let earlier = fs::read_to_string(&report).unwrap_or_default();
    let account = match name {
        "timers" => timers::again(&values, document.parent().unwrap_or(Path::new("."))),
        _ => account_of(name, &values, &earlier),
    };
    let mut account =
        account.with_context(|| format!("cannot write the report of {shown} again"))?;
    // The report is beside the document; the folder in which it was written does not matter.
    let stored = values.get("report").and_then(Value::as_str);
    account.report = stored.and_then(|path| Path::new(path).file_name()).map(PathBuf::from);
    let write = |file: &Path, text: String| {
        fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
    };
    write(&report, account::html(&account))?;
    write(document, serde_json::to_string_pretty(&account)? + "\n")?;
    Ok(report)
}

/// The account of a document. `earlier` is the page of the earlier report.
fn account_of(name: &str, document: &Value, earlier: &str) -> anyhow::Result<Account> {
    let (texts, judge): (Texts, Judge) = match name {
        "overhead" => (overhead::TEXTS, overhead::claims_again),
        "interarrival" => (interarrival::TEXTS, interarrival::claims_again),
        _ => bail!(
            "only those of overhead, interarrival and timers, named so, are written from a document; run \
             \"wirestamp study NAME --output FOLDER\" with all raw results in FOLDER"
        ),
    };
    let making = Making::deserialize(document).context("cannot read how the runs were made")?;
    let claims = judge(&claims(document)?, document)?;
    let members = document.as_object().context("the document is no structure")?;
    let is_value = |(member, _): &(&String, &Value)| {
        member.as_str() == "published" || !NO_VALUES.contains(&member.as_str())
    };
    let values: Map<_, _> = members
        .iter()
        .filter(is_value)
        .map(|(member, value)| (member.clone(), value.clone()))
        .collect();
    texts.account(making, claims, &values, &|id, _| Some(figure(id, earlier)))
}

/// The claims of a document, with their leads.
fn claims(document: &Value) -> anyhow::Result<Vec<Claim>> {
    let stored = document.get("claims").and_then(Value::as_array).context("there are no claims")?;
    let claim = |stored: &Value| {
        let mut claim = Claim::deserialize(stored).context("cannot read a claim")?;
        let leads = stored.get("lead").and_then(Value::as_array);
        let lead = |lead: &Value| Estimate::deserialize(lead).ok();
        claim.lead = leads.into_iter().flatten().map(lead).collect();
        Ok(claim.with_reason())
    };
    stored.iter().map(claim).collect()
}

/// The figure of an identity from the earlier page, for all sizes of screen; a remark if the page does not have it.
fn figure(id: &str, earlier: &str) -> Part {
    found(id, earlier).map_or_else(
        || Part::Remark("A figure needs raw results, which the document does not have.".to_owned()),
        |figure| Part::Figure(PreEscaped(figure.to_owned())),
    )
}

fn found<'a>(id: &str, earlier: &'a str) -> Option<&'a str> {
    const WIDE: &str = "<div class=\"wide\">";
    const END: &str = "</div>";
    let at = earlier.find(&format!("id=\"{id}-title\""))?;
    let begin = earlier.get(..at)?.rfind(WIDE)?;
    let narrow = at + earlier.get(at..)?.find(END)? + END.len();
    let end = narrow + earlier.get(narrow..)?.find(END)? + END.len();
    earlier.get(begin..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_is_written_again_from_its_document() {
        let folder = tempfile::tempdir().unwrap();
        let document = folder.path().join("interarrival.json");
        let lead = serde_json::json!([{ "mean": 1.0, "ci95": 2.0 }]);
        let values = serde_json::json!({
            "date": "2026-11-27 13:05:09", "version": "0.0.9", "kernel": "6", "processor": "P",
            "clocksource": "tsc", "command": "wirestamp study interarrival", "sittings": 1,
            "interrupted": false, "seed": 1, "repetitions": 2, "paper": "P", "report": "/tmp/again/interarrival.html",
            "claims": [{ "claim": "it rains", "verdict": "open", "lead": lead,
                "sentence": "The paper finds that it rains: not decided here, the data are too few or too noisy; 1." }],
            "captures": [], "user_space": [], "correlation": [], "raw_after_ktime": [], "refused": [],
            "effects_on_log_deviation": [], "step_ns": 10.0,
        });
        fs::write(&document, values.to_string()).unwrap();
        let read = claims(&values).unwrap();
        assert!(
            read[0].sentence.contains("because the 95 % interval includes the limit"),
            "{read:?}"
        );
        let old = "<div class=\"wide\"><svg><title id=\"gaps-captures-call-title\"></title></svg></div>\
                   <div class=\"narrow\">small</div><p>no part</p>";
        fs::write(folder.path().join("interarrival.html"), old).unwrap();
        let report = write_again(&document).unwrap();
        let page = fs::read_to_string(report).unwrap();
        assert!(page.contains("small</div>") && !page.contains("no part"));
        assert!(
            page.contains("A figure needs raw results")
                && page.contains("nothing was measured again")
        );
        let again: Value = serde_json::from_slice(&fs::read(&document).unwrap()).unwrap();
        assert_eq!((&again["date"], &again["version"]), (&values["date"], &values["version"]));
        assert_eq!(again["report"], "interarrival.html");
        assert_eq!(again["claims"][1]["verdict"], "not_the_same_question");
        let other = folder.path().join("step.json");
        fs::write(&other, values.to_string()).unwrap();
        assert!(
            format!("{:#}", write_again(&other).unwrap_err()).contains("only those of overhead")
        );
    }
}
