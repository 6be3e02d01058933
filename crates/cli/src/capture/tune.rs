//! `capture --tune`: the machine as the capture wants it.

use std::process::ExitCode;

use clap::ValueEnum;
use serde::Serialize;
use wirestamp_capture::Config;
use wirestamp_capture::tune::{self, Change, Report, Setting, Tuned};

use crate::output::Output;
use crate::target::Target;

/// What is done about the machine's settings.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tune {
    /// Show what would be changed, and capture nothing
    Show,
    /// Change it, and put it back at the end of the capture
    Apply,
    /// Put back what a capture that was killed had changed, and capture nothing
    Restore,
}

/// A setting in the list of `--json`.
#[derive(Serialize)]
struct Row<'a> {
    #[serde(flatten)]
    setting: &'a Setting,
    changes: bool,
}

/// Changes what the capture wants changed, if that is asked for.
pub(super) fn apply(
    tune: Option<Tune>,
    target: &Target,
    config: &Config,
    output: Output,
) -> anyhow::Result<Option<Tuned>> {
    if tune != Some(Tune::Apply) {
        return Ok(None);
    }
    let tuned = target.ask(|| Tuned::apply(config))?;
    for refusal in &tuned.report().refused {
        let (place, wanted, reason) = (&refusal.place, &refusal.wanted, &refusal.reason);
        output.remark(format_args!("not tuned: {place} stays, {wanted} was refused: {reason}"));
    }
    Ok(Some(tuned))
}

/// `--tune=show`.
pub(super) fn show(target: &Target, config: &Config, output: Output) -> anyhow::Result<ExitCode> {
    let settings = target.ask(|| tune::survey(config))?;
    let rows: Vec<_> =
        settings.iter().map(|setting| Row { setting, changes: setting.changes() }).collect();
    output.result(&rows, |_| table(&settings))?;
    Ok(ExitCode::SUCCESS)
}

/// `--tune=restore`.
pub(super) fn restore(target: &Target, output: Output) -> anyhow::Result<ExitCode> {
    let report = target.ask(|| tune::restore(&target.interface))?;
    output.result(&report, |report| match report.changed.len() {
        0 => "nothing was left changed\n".to_owned(),
        _ => report.changed.iter().map(put_back).collect(),
    })?;
    Ok(if report.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How much was changed, and what of it could not be put back.
pub(super) fn text(report: &Report) -> String {
    let (back, left): (Vec<&Change>, Vec<_>) = report.changed.iter().partition(|c| c.restored);
    let back = match back.len() {
        1 => "1 setting of the machine was changed and put back\n".to_owned(),
        number => format!("{number} settings of the machine were changed and put back\n"),
    };
    back + &left.into_iter().map(put_back).collect::<String>()
}

/// What became of one setting in the end.
fn put_back(change: &Change) -> String {
    let Change { place, before, restored, .. } = change;
    if *restored {
        format!("{place} is {before} again\n")
    } else {
        format!("{place} could NOT be put back to {before}: try capture --tune=restore again\n")
    }
}

/// The settings in three groups. What is right needs no reason.
fn table(settings: &[Setting]) -> String {
    let group = |title: &str, wanted: &dyn Fn(&Setting) -> Option<String>| {
        let rows: String = settings.iter().filter_map(wanted).collect();
        if rows.is_empty() { rows } else { format!("{title}\n{rows}") }
    };
    let change = |setting: &Setting| {
        let wanted = setting.wanted.as_deref().filter(|_| setting.changes())?;
        Some(format!("{} -> {wanted}\n      {}\n", now(setting), setting.why))
    };
    let fits = |setting: &Setting| {
        let fits = setting.obstacle.is_none() && !setting.changes();
        fits.then(|| format!("{}\n", now(setting)))
    };
    let stays = |setting: &Setting| {
        let reason = setting.obstacle.as_deref()?;
        Some(format!("{}\n      {reason}\n", now(setting)))
    };
    group("--tune=apply would change", &change)
        + &group("as it should be", &fits)
        + &group("left as it is", &stays)
}

fn now(setting: &Setting) -> String {
    let Setting { name, place, now, .. } = setting;
    format!("  {name} ({place}): {}", now.as_deref().unwrap_or("not there"))
}

#[cfg(test)]
mod tests {
    use wirestamp_capture::tune::Place;

    use super::*;

    fn setting(now: Option<&str>, wanted: &str, obstacle: Option<&str>) -> Setting {
        Setting {
            name: "threaded NAPI".into(),
            place: Place::Sys("class/net/eth0/threaded".into()),
            now: now.map(str::to_owned),
            wanted: Some(wanted.into()),
            why: "it can be pinned",
            obstacle: obstacle.map(str::to_owned),
        }
    }

    #[test]
    fn the_table_says_what_would_change_what_is_right_and_what_cannot_be_helped() {
        let settings = [
            setting(Some("1"), "1", None),
            setting(None, "1", Some("there is none")),
            setting(Some("0"), "1", None),
        ];
        let row = "  threaded NAPI (/sys/class/net/eth0/threaded):";
        let expected = format!(
            "--tune=apply would change\n{row} 0 -> 1\n      it can be pinned\n\
             as it should be\n{row} 1\n\
             left as it is\n{row} not there\n      there is none\n"
        );
        assert_eq!(table(&settings), expected);
    }
}
