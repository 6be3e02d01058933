//! Changes settings, and puts them back.

use std::fs::File;
use std::io;

use serde::Serialize;

use super::host::{Host, keep_awake};
use super::place::{Attribute, Place, as_text};
use super::record::{Entry, Record};
use super::setting::Setting;
use super::threads::NapiThread;

/// The machine, tuned. What was changed is put back by [`Tuned::restore`], or when this is
/// dropped.
pub struct Tuned {
    host: Box<dyn Host + Send>,
    record: Record,
    index: i32,
    /// The threads that there were before NAPI was made threaded.
    known: Vec<NapiThread>,
    /// Places whose first value is in the record.
    recorded: Vec<Place>,
    report: Report,
    awake: Option<File>,
}

/// What was changed, and what became of it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// What was changed.
    pub changed: Vec<Change>,
    /// What should have been changed, and what the kernel said.
    pub refused: Vec<Refusal>,
}

/// A setting that was changed.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// Where it lives.
    #[serde(serialize_with = "as_text")]
    pub place: Place,
    /// What it was.
    pub before: String,
    /// What it was changed to; none where only a record tells of it.
    pub during: Option<String>,
    /// Whether it is again what it was, or has gone with what it belonged to.
    pub restored: bool,
}

/// A setting that the kernel did not let change.
#[derive(Clone, Debug, Serialize)]
pub struct Refusal {
    /// Where it lives.
    #[serde(serialize_with = "as_text")]
    pub place: Place,
    /// What it should have been.
    pub wanted: String,
    /// What the kernel said.
    pub reason: String,
}

impl Tuned {
    /// Puts back what `record` tells of, and does what `plan` then finds to do. An error is one of
    /// the record.
    pub(super) fn begin(
        host: Box<dyn Host + Send>,
        mut record: Record,
        index: i32,
        plan: impl FnOnce(&dyn Host) -> Vec<Setting>,
    ) -> io::Result<Self> {
        put_back(&*host, &mut record, index)?;
        // What could not be put back keeps its first value in the record.
        let recorded = record.entries()?.into_iter().map(|entry| entry.place).collect();
        let settings = plan(&*host);
        let known = host.napi_threads();
        let report = Report::default();
        let mut tuned = Self { host, record, index, known, recorded, report, awake: None };
        settings.iter().filter(|setting| setting.changes()).try_for_each(|s| tuned.follow(s))?;
        Ok(tuned)
    }

    /// What was changed so far.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Puts everything back, and tells of it. What cannot be put back stays in the record.
    #[must_use]
    pub fn restore(mut self) -> Report {
        self.end();
        std::mem::take(&mut self.report)
    }

    fn end(&mut self) {
        drop(self.awake.take());
        let done = put_back(&*self.host, &mut self.record, self.index).unwrap_or_default();
        for change in &mut self.report.changed {
            let held = change.place == Place::CpuLatency;
            change.restored =
                held || done.changed.iter().any(|d| d.restored && d.place == change.place);
        }
    }

    /// Does what a setting asks for.
    fn follow(&mut self, setting: &Setting) -> io::Result<()> {
        let wanted = setting.wanted.as_deref().unwrap_or_default();
        match setting.place {
            Place::CpuLatency => {
                self.awake = self.note(&setting.place, "not held", wanted, keep_awake());
                Ok(())
            }
            Place::Threads(attribute) => self.give_threads(attribute, wanted),
            ref place => self.change(place, wanted),
        }
    }

    /// Gives each of the threads that were not there before a core of the list `wanted`, or all the
    /// same priority.
    fn give_threads(&mut self, attribute: Attribute, wanted: &str) -> io::Result<()> {
        let mut threads = self.host.napi_threads();
        threads.retain(|thread| !self.known.contains(thread));
        let each: Vec<_> = match attribute {
            Attribute::Cores => wanted.split(',').collect(),
            Attribute::Scheduling => vec![wanted],
        };
        let mut pairs = threads.iter().zip(each.iter().cycle());
        pairs.try_for_each(|(thread, wanted)| self.change(&thread.place(attribute), wanted))
    }

    /// Makes the setting at `place` what it should be, once its first value is in the record.
    fn change(&mut self, place: &Place, wanted: &str) -> io::Result<()> {
        let before = match self.host.read(place) {
            Ok(before) => before,
            Err(error) => {
                self.note(place, "", wanted, Err::<(), _>(error));
                return Ok(());
            }
        };
        if !self.recorded.contains(place) {
            let (place, before) = (place.clone(), before.clone());
            self.record.add(&Entry { index: self.index, place: place.clone(), before })?;
            self.recorded.push(place);
        }
        let written = self.host.write(place, wanted);
        self.note(place, &before, wanted, written);
        Ok(())
    }

    /// Puts the outcome of a change into the report.
    fn note<T>(
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

/// Puts back what `record` tells of, the last change first, and keeps in it what could not be put
/// back. What has gone, a thread or an interface, needs no putting back.
pub(super) fn put_back(host: &dyn Host, record: &mut Record, index: i32) -> io::Result<Report> {
    let entries = record.entries()?;
    let mut report = Report::default();
    let mut kept = Vec::new();
    for entry in entries.into_iter().rev() {
        let is_there = entry.index == index || entry.place.outlives_interface();
        let done = if is_there { put_back_one(host, &entry) } else { Ok(()) };
        let (place, before) = (entry.place.clone(), entry.before.clone());
        report.changed.push(Change { place, before, during: None, restored: done.is_ok() });
        if let Err(error) = done {
            let (place, wanted) = (entry.place.clone(), entry.before.clone());
            report.refused.push(Refusal { place, wanted, reason: error.to_string() });
            kept.push(entry);
        }
    }
    kept.reverse();
    record.keep(&kept)?;
    Ok(report)
}

fn put_back_one(host: &dyn Host, entry: &Entry) -> io::Result<()> {
    let put = match host.read(&entry.place) {
        // Nothing to do, and the kernel may refuse even that.
        Ok(now) if now == entry.before => return Ok(()),
        Ok(_) => host.write(&entry.place, &entry.before),
        Err(error) => Err(error),
    };
    match put {
        Err(error) if has_gone(&error) => Ok(()),
        put => put,
    }
}

fn has_gone(error: &io::Error) -> bool {
    let gone = [libc::ENOENT, libc::ENODEV, libc::ESRCH];
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error().is_some_and(|code| gone.contains(&code))
}

#[cfg(test)]
mod tests;
