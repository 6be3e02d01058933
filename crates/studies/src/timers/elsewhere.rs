//! Results of another machine, shown beside those of this one.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::measured::Measured;
use super::paper::Timer;
use wirestamp_report::Circumstances;

/// Measurements of another machine, from the document that `wirestamp study timers --json` printed
/// there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Elsewhere {
    /// When, on what, and by what command.
    #[serde(flatten)]
    pub(super) circumstances: Circumstances,
    /// Each way to read each source.
    pub(super) ways: Vec<Measured>,
}

impl Elsewhere {
    /// Reads the document.
    ///
    /// # Errors
    /// When the file cannot be read, or is not such a document.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let text =
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_str(&text).with_context(|| {
            let file = file.display();
            format!("{file} is no document of `wirestamp study timers --json`")
        })
    }

    /// The measurement of a timer of the paper.
    pub(super) fn timer(&self, timer: Timer) -> Option<&Measured> {
        self.ways.iter().find(|way| way.timer == Some(timer))
    }

    /// The measurements of those sources that could not be read here.
    pub(super) fn of_what_lacks(&self, here: &[Measured]) -> Self {
        let is_here =
            |source: &str| here.iter().any(|way| way.source == source && way.is_available());
        let ways = self.ways.iter().filter(|way| way.is_available() && !is_here(&way.source));
        Self { circumstances: self.circumstances.clone(), ways: ways.cloned().collect() }
    }
}
