//! Results of another machine, shown beside those of this one.

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// Sources of an emulated processor of another kind.
    #[serde(default)]
    pub(super) emulated: Option<EmulatedSources>,
}

/// Sources of an emulated processor, from the document that `tools/test-aarch64` writes. Their costs are those of the
/// emulation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct EmulatedSources {
    /// The emulator.
    emulated_by: String,
    sources: Vec<EmulatedSource>,
}

/// A source in the survey of the clock library ([`wirestamp_clock::CounterSource`]).
#[derive(Clone, Debug, Serialize, Deserialize)]
struct EmulatedSource {
    name: String,
    reason: String,
    /// Smallest usual step in nanoseconds.
    granularity_ns: Option<f64>,
    /// Nanoseconds of one relaxed read; none if the source cannot be used.
    cost_ns: Option<f64>,
    /// Nanoseconds of one ordered read.
    ordered_cost_ns: Option<f64>,
}

impl Elsewhere {
    /// Reads the document, and that of `tools/test-aarch64` if it follows in the same file.
    ///
    /// # Errors
    /// When the file cannot be read, or is not such a document.
    pub fn read(file: &Path) -> anyhow::Result<Self> {
        let text =
            fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        Self::parse(&text).with_context(|| {
            let file = file.display();
            format!("{file} is no document of `wirestamp study timers --json`")
        })
    }

    fn parse(text: &str) -> serde_json::Result<Self> {
        let mut documents = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let mut elsewhere = Self::deserialize(documents.next().transpose()?.unwrap_or_default())?;
        if let Some(emulated) = documents.next().transpose()? {
            elsewhere.emulated = Some(EmulatedSources::deserialize(emulated)?);
        }
        Ok(elsewhere)
    }

    /// The measurement of a timer of the paper.
    pub(super) fn timer(&self, timer: Timer) -> Option<&Measured> {
        self.ways.iter().find(|way| way.timer == Some(timer))
    }

    /// The measurements of those sources that could not be read here, whose kernel keeps time by `clocksource`. If the
    /// other kernel does not, also those of the paper's timers: a read of the OS timer is then another one.
    pub(super) fn of_what_lacks(&self, here: &[Measured], clocksource: &str) -> Self {
        let is_here =
            |source: &str| here.iter().any(|way| way.source == source && way.is_available());
        let is_other = clocksource != self.circumstances.clocksource;
        let is_shown = |way: &&Measured| {
            way.is_available() && (!is_here(&way.source) || (is_other && way.timer.is_some()))
        };
        let ways = self.ways.iter().filter(is_shown);
        Self { ways: ways.cloned().collect(), ..self.clone() }
    }
}
