//! Bed, clock, programs and results that all parts share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGINT, SIGTERM};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_studies::tester::Bed;

use crate::arguments::Arguments;
use crate::contenders::Programs;
use crate::results::Results;

/// Programs, test bed and results of all parts.
pub(crate) struct Bench {
    pub(crate) bed: Bed,
    pub(crate) clock: ClockService,
    pub(crate) programs: Programs,
    pub(crate) results: Results,
    /// Set by SIGINT and SIGTERM.
    pub(crate) stop: Arc<AtomicBool>,
}

impl Bench {
    pub(crate) fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        wirestamp_lab::check_privilege()?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register(signal, Arc::clone(&stop))?;
        }
        Ok(Self {
            bed: Bed::build()?,
            clock: ClockService::start(Counter::select())
                .context("cannot calibrate the counter")?,
            programs: Programs::find(&arguments.output)?,
            results: Results::begin(&arguments.output)?,
            stop,
        })
    }

    /// Whether a stop is requested: the run then ends after the current measurement, with the results so far.
    pub(crate) fn interrupted(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
