//! Changes settings, and restores them.

use std::fs::File;
use std::io;

use serde::Serialize;

use super::host::{Host, keep_awake};
use super::place::{Attribute, Place, as_text};
use super::record::{Entry, Record};
use super::setting::Setting;
use super::threads::NapiThread;

/// A tuned machine. Changes are restored by [`Tuned::restore`], or on drop.
pub struct Tuned {
    host: Box<dyn Host + Send>,
    record: Record,
    index: i32,
    /// The threads that existed before NAPI was made threaded.
    previous_threads: Vec<NapiThread>,
    /// Places whose original value is in the record.
    recorded: Vec<Place>,
    report: Report,
    awake: Option<File>,
}

/// Changed and refused settings.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Tuning"))]
pub struct Report {
    /// Settings that were changed.
    pub changed: Vec<Change>,
    /// Settings that the kernel refused to change.
    pub refused: Vec<Refusal>,
}

/// A setting that was changed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// Location of the setting.
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub place: Place,
    /// Original value.
    pub before: String,
    /// Value during the capture; none if only a record has the change.
    pub during: Option<String>,
    /// Whether the original value is restored, or the setting no longer exists.
    pub restored: bool,
}

/// A setting that the kernel refused to change.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refusal {
    /// Location of the setting.
    #[serde(serialize_with = "as_text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub place: Place,
    /// Intended value.
    pub wanted: String,
    /// Error of the kernel.
    pub reason: String,
}

impl Tuned {
    /// Restores the settings in `record`, and applies the settings that `plan` returns. Fails only if the record
    /// fails.
    pub(super) fn begin(
        host: Box<dyn Host + Send>,
        mut record: Record,
        index: i32,
        plan: impl FnOnce(&dyn Host) -> Vec<Setting>,
    ) -> io::Result<Self> {
        restore_record(&*host, &mut record, index)?;
        // Settings that were not restored keep their original value in the record.
        let recorded = record.entries()?.into_iter().map(|entry| entry.place).collect();
        let settings = plan(&*host);
        let previous_threads = host.napi_threads();
        let report = Report::default();
        let mut tuned =
            Self { host, record, index, previous_threads, recorded, report, awake: None };
        settings
            .iter()
            .filter(|setting| setting.changes())
            .try_for_each(|s| tuned.apply_setting(s))?;
        Ok(tuned)
    }

    /// Settings changed so far.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Restores everything, and reports it. Settings that cannot be restored stay in the record.
    #[must_use]
    pub fn restore(mut self) -> Report {
        self.end();
        std::mem::take(&mut self.report)
    }

    fn end(&mut self) {
        drop(self.awake.take());
        let restored = restore_record(&*self.host, &mut self.record, self.index);
        let failure = restored.as_ref().err().map(ToString::to_string);
        let done = restored.unwrap_or_default();
        self.report.refused.extend(done.refused);
        for change in &mut self.report.changed {
            let held = change.place == Place::CpuLatency;
            change.restored =
                held || done.changed.iter().any(|d| d.restored && d.place == change.place);
            if let Some(reason) = failure.as_ref().filter(|_| !change.restored) {
                let (place, wanted) = (change.place.clone(), change.before.clone());
                let reason = format!("cannot use the record of the original values: {reason}");
                self.report.refused.push(Refusal { place, wanted, reason });
            }
        }
    }

    /// Applies a setting.
    fn apply_setting(&mut self, setting: &Setting) -> io::Result<()> {
        let wanted = setting.wanted.as_deref().unwrap_or_default();
        match setting.place {
            Place::CpuLatency => {
                self.awake = self.report_outcome(&setting.place, "not held", wanted, keep_awake());
                Ok(())
            }
            Place::Threads(attribute) => self.change_threads(attribute, wanted),
            ref place => self.change(place, wanted),
        }
    }

    /// Assigns each new thread a core of the list `wanted`, or the priority `wanted` to all new threads.
    fn change_threads(&mut self, attribute: Attribute, wanted: &str) -> io::Result<()> {
        let mut threads = self.host.napi_threads();
        threads.retain(|thread| !self.previous_threads.contains(thread));
        let each: Vec<_> = match attribute {
            Attribute::Cores => wanted.split(',').collect(),
            Attribute::Scheduling => vec![wanted],
        };
        let mut pairs = threads.iter().zip(each.iter().cycle());
        pairs.try_for_each(|(thread, wanted)| self.change(&thread.place(attribute), wanted))
    }

    /// Changes the setting at `place`, after its original value is recorded.
    fn change(&mut self, place: &Place, wanted: &str) -> io::Result<()> {
        let before = match self.host.read(place) {
            Ok(before) => before,
            Err(error) => {
                self.report_outcome(place, "", wanted, Err::<(), _>(error));
                return Ok(());
            }
        };
        if !self.recorded.contains(place) {
            let (place, before) = (place.clone(), before.clone());
            self.record.add(&Entry { index: self.index, place: place.clone(), before })?;
            self.recorded.push(place);
        }
        let written = self.host.write(place, wanted);
        self.report_outcome(place, &before, wanted, written);
        Ok(())
    }

    /// Adds the outcome of a change to the report.
    fn report_outcome<T>(
        &mut self,
        place: &Place,
        before: &str,
        wanted: &str,
        outcome: io::Result<T>,
    ) -> Option<T> {
        let (place, wanted) = (place.clone(), wanted.to_owned());
        match outcome {
            Ok(done) => {
                let (before, during) = (before.to_owned(), Some(wanted));
                self.report.changed.push(Change { place, before, during, restored: false });
                Some(done)
            }
            Err(error) => {
                self.report.refused.push(Refusal { place, wanted, reason: error.to_string() });
                None
            }
        }
    }
}

impl Drop for Tuned {
    fn drop(&mut self) {
        self.end();
    }
}

/// Restores the settings in `record`, the last change first. Settings that cannot be restored stay in the record.
/// Threads and interfaces that no longer exist need no restoring.
pub(super) fn restore_record(
    host: &dyn Host,
    record: &mut Record,
    index: i32,
) -> io::Result<Report> {
    let entries = record.entries()?;
    let mut report = Report::default();
    let mut remaining = Vec::new();
    for entry in entries.into_iter().rev() {
        let exists = entry.index == index || entry.place.outlives_interface();
        let done = if exists { restore_entry(host, &entry) } else { Ok(()) };
        let (place, before) = (entry.place.clone(), entry.before.clone());
        report.changed.push(Change { place, before, during: None, restored: done.is_ok() });
        if let Err(error) = done {
            let (place, wanted) = (entry.place.clone(), entry.before.clone());
            report.refused.push(Refusal { place, wanted, reason: error.to_string() });
            remaining.push(entry);
        }
    }
    remaining.reverse();
    record.replace(&remaining)?;
    Ok(report)
}

fn restore_entry(host: &dyn Host, entry: &Entry) -> io::Result<()> {
    let result = match host.read(&entry.place) {
        // Nothing to do, and the kernel may refuse even a write of the same value.
        Ok(now) if now == entry.before => return Ok(()),
        Ok(_) => host.write(&entry.place, &entry.before),
        Err(error) => Err(error),
    };
    match result {
        Err(error) if is_gone(&error) => Ok(()),
        result => result,
    }
}

fn is_gone(error: &io::Error) -> bool {
    let gone = [libc::ENOENT, libc::ENODEV, libc::ESRCH];
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error().is_some_and(|code| gone.contains(&code))
}

#[cfg(test)]
mod tests;
