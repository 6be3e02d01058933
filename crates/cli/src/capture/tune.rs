//! `capture --tune`: machine settings that affect stamps.

use std::process::ExitCode;

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_capture::Config;
use wirestamp_capture::tune::{self, Change, Report, Setting, Tuned};

use crate::output::Output;
use crate::target::Target;

/// Value of `--tune`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tune {
    /// Show the changes that `apply` would make, without capturing
    Show,
    /// Change the settings, and restore them at the end of the capture
    Apply,
    /// Restore the settings that a killed capture has changed, without capturing
    Restore,
}

/// A setting of the machine that affects a capture's stamps.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Setting")]
pub(crate) struct SettingRow<'a> {
    #[serde(flatten)]
    setting: &'a Setting,
    /// Whether `--tune=apply` would change it.
    changes: bool,
}

/// Changes the machine's settings, with `--tune=apply`.
pub(super) fn apply(
    tune: Option<Tune>,
    target: &Target,
    config: &Config,
    output: Output,
) -> anyhow::Result<Option<Tuned>> {
    if tune != Some(Tune::Apply) {
        return Ok(None);
    }
    let tuned = target.query(|| Tuned::apply(config))?;
    for refusal in &tuned.report().refused {
        let (place, wanted, reason) = (&refusal.place, &refusal.wanted, &refusal.reason);
        output.remark(format_args!("cannot tune {place} to {wanted}: {reason}"));
    }
    Ok(Some(tuned))
}

/// `--tune=show`.
pub(super) fn show(target: &Target, config: &Config, output: Output) -> anyhow::Result<ExitCode> {
    let settings = target.query(|| tune::survey(config))?;
    let rows: Vec<_> =
        settings.iter().map(|setting| SettingRow { setting, changes: setting.changes() }).collect();
    output.result(&rows, |_| table(&settings))?;
    Ok(ExitCode::SUCCESS)
}

/// `--tune=restore`.
pub(super) fn restore(target: &Target, output: Output) -> anyhow::Result<ExitCode> {
    let report = target.query(|| tune::restore(&target.interface))?;
    output.result(&report, |report| match report.changed.len() {
        0 => "nothing to restore\n".to_owned(),
        _ => report.changed.iter().map(|change| restored_line(report, change)).collect(),
    })?;
    Ok(if report.refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The number of changed settings, and those that could not be restored.
pub(super) fn text(report: &Report) -> String {
    let (back, left): (Vec<&Change>, Vec<_>) = report.changed.iter().partition(|c| c.restored);
    let back = match back.len() {
        1 => "1 machine setting was changed and restored\n".to_owned(),
        number => format!("{number} machine settings were changed and restored\n"),
    };
    back + &left.into_iter().map(|change| restored_line(report, change)).collect::<String>()
}

/// The result of restoring one setting.
fn restored_line(report: &Report, change: &Change) -> String {
    let Change { place, before, restored, .. } = change;
    if *restored {
        return format!("{place} restored to {before}\n");
    }
    let refusals = &report.refused;
    let refusal = refusals.iter().rfind(|it| it.place == *place && it.wanted == *before);
    let reason = refusal.map_or_else(String::new, |refusal| format!(": {}", refusal.reason));
    format!("{place} could NOT be restored to {before}{reason}; try capture --tune=restore\n")
}

/// The settings in three groups; settings that are right have no reason.
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
        + &group("already right", &fits)
        + &group("cannot be changed", &stays)
}

fn now(setting: &Setting) -> String {
    let Setting { name, place, now, .. } = setting;
    format!("  {name} ({place}): {}", now.as_deref().unwrap_or("missing"))
}

#[cfg(test)]
mod tests {
    use wirestamp_capture::tune::{Place, Refusal};

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
    fn setting_that_is_not_restored_has_its_reason() {
        let place = Place::Sys("class/net/eth0/threaded".into());
        let (before, wanted, reason) = ("0".to_owned(), "0".to_owned(), "busy".to_owned());
        let change = Change { place: place.clone(), before, during: None, restored: false };
        let refused = vec![Refusal { place, wanted, reason }];
        let report = Report { changed: vec![change], refused };
        let text = text(&report);
        assert!(text.contains("could NOT be restored to 0: busy; try"), "{text}");
    }

    #[test]
    fn table_groups_settings_by_change() {
        let settings = [
            setting(Some("1"), "1", None),
            setting(None, "1", Some("there is none")),
            setting(Some("0"), "1", None),
        ];
        let row = "  threaded NAPI (/sys/class/net/eth0/threaded):";
        let expected = format!(
            "--tune=apply would change\n{row} 0 -> 1\n      it can be pinned\n\
             already right\n{row} 1\n\
             cannot be changed\n{row} missing\n      there is none\n"
        );
        assert_eq!(table(&settings), expected);
    }
}
