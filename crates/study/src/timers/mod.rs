//! What it costs to read each time source: the experiment of Fedotova and Siemens, "HighPerTimer",
//! section 5 (Tables 1 and 2, Figures 2 and 3), made again on this machine.
//!
//! As in the paper, a source is read over and over, and the cost of a read is what passes between
//! two reads in a row, in the source's own ticks. Mean and standard deviation are given with the
//! peaks filtered out, and also with them. [`DEVIATIONS`] tells where the experiment departs from
//! the paper's, and why.

mod contender;
mod elsewhere;
mod figures;
mod page;
mod paper;
mod tables;
mod tally;

use std::borrow::Cow;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context;
use serde::{Deserialize, Serialize};
use wirestamp_capture::Stop;
use wirestamp_clock::{ClockService, Counter, Source, Survey, survey};

use crate::Circumstances;
use contender::{Contender, contenders};
use tally::Tally;

pub use contender::READS_PER_ROUND;
pub use elsewhere::Elsewhere;
pub use paper::{PAPER, PUBLISHED, Published, PublishedCost, Timer};
pub use tally::Cost;

/// Where this experiment departs from the paper's: the subject, and what is done and why.
pub const DEVIATIONS: [(&str, &str); 6] = [
    (
        "Number of reads",
        "The paper takes 100 million in one loop for each source, without saying how they were \
         kept. Here the sources take turns of 10 000 reads, so that whatever disturbs the machine \
         meets all of them alike; --rounds 10000 makes it 100 million.",
    ),
    (
        "Peaks",
        "The paper filters them and does not say how. Here a read is a peak if it costs more than \
         the upper quartile by over three times the distance between the quartiles (Tukey's outer \
         fence), or by over three steps of the clock where that is more. The figures with the \
         peaks are given as well.",
    ),
    (
        "Which OS clock",
        "The paper says clock_gettime, not of which clock. The OS Timer here is \
         CLOCK_MONOTONIC_RAW; CLOCK_MONOTONIC and CLOCK_REALTIME are measured beside it through \
         the standard library.",
    ),
    (
        "Its path",
        "The paper takes clock_gettime for a system call. On Linux the vDSO answers it without \
         one, if the kernel keeps time by a counter that programs can read (vdso(7)).",
    ),
    (
        "Untrusted counters",
        "The paper measures a TSC that it calls unstable (Table 2). The library refuses to read \
         such a counter, so its row is empty, with the reason.",
    ),
    (
        "Figures",
        "The paper draws what was measured, peaks and all. Here each turn is drawn by its mean \
         without peaks and by its longest read: a line of millions of points hides both.",
    ),
];

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many turns of [`READS_PER_ROUND`] reads each way to read a source takes; at least one.
    pub rounds: u32,
    /// What another machine measured, for the sources that this one cannot read.
    pub beside: Option<Elsewhere>,
    /// Where the report goes, if one is wanted. Made if it does not exist.
    pub folder: Option<PathBuf>,
}

/// What came of it. Serialises as the document of `wirestamp study timers --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Findings {
    /// When, on what, and by what command.
    #[serde(flatten)]
    pub circumstances: Circumstances,
    /// Whether it was stopped before all rounds were done.
    pub interrupted: bool,
    /// Rounds that were done.
    pub rounds: u32,
    /// Reads in each round of each way.
    pub reads_per_round: u32,
    /// The source that the clock library chooses on this machine.
    pub selected: &'static str,
    /// Each way to read each source, and each source that cannot be used.
    pub ways: Vec<Measured>,
    /// What another machine measured of the sources that this one cannot read.
    pub beside: Option<Elsewhere>,
    /// The paper that this is compared with.
    pub paper: &'static str,
    /// Its numbers.
    pub published: [Published; 2],
    /// The report, if one was wanted.
    pub report: Option<PathBuf>,
}

/// What one way to read a source costs; or, without costs, why the source cannot be used.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// The source by its name in the clock library; `os` for all clocks of the kernel.
    pub source: Cow<'static, str>,
    /// What a program calls.
    pub call: Cow<'static, str>,
    /// The paper's timer that this is compared with, if it is.
    pub timer: Option<Timer>,
    /// Why the source may or may not be used.
    pub reason: String,
    /// What emulates the source, if anything is known to: its cost is not that of hardware then.
    pub emulated_by: Option<String>,
    /// The smallest usual step of the clock in nanoseconds; none if the source cannot be used.
    pub step_ns: Option<f64>,
    /// A read that costs more than so many nanoseconds is a peak.
    pub peak_above_ns: Option<f64>,
    /// How many reads are peaks.
    pub peaks: u64,
    /// The cost without the peaks.
    pub filtered: Option<Cost>,
    /// The cost with them.
    pub unfiltered: Option<Cost>,
    /// The cost in the course of the experiment.
    #[serde(skip)]
    pub course: Vec<Moment>,
}

/// One turn of reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// When it began, in seconds since the start of the experiment.
    pub at: f64,
    /// The mean cost in nanoseconds, without the peaks of this turn.
    pub usual: f64,
    /// The longest read in nanoseconds.
    pub longest: f64,
}

impl Measured {
    /// Whether the source can be read on this machine. If so and there are still no costs, the
    /// experiment was stopped before.
    #[must_use]
    pub fn is_available(&self) -> bool {
        self.step_ns.is_some()
    }
}

impl Findings {
    /// What was measured of a timer of the paper; none if it cannot be used here.
    #[must_use]
    pub fn cost(&self, timer: Timer) -> Option<Cost> {
        self.ways.iter().find(|way| way.timer == Some(timer))?.filtered
    }

    /// The means of the paper's timers as multiples of that of the TSC: here, and in the tables.
    #[must_use]
    pub fn ratios(&self, timer: Timer) -> [Option<f64>; 3] {
        let mean = |timer| self.cost(timer).map(|cost| cost.mean);
        let ratio = |of: Option<f64>, to: Option<f64>| Some(of? / to?);
        let of_table = |published: &Published| {
            let mean = |timer| published.cost(timer).map(|cost| cost.mean);
            ratio(mean(timer), mean(Timer::Tsc))
        };
        let [via, athlon] = &self.published;
        [ratio(mean(timer), mean(Timer::Tsc)), of_table(via), of_table(athlon)]
    }
}

/// Measures until all rounds are done or `stop` is requested, tells `progress` the share that is
/// done (0 to 1), and writes the report if one is wanted.
///
/// # Errors
/// When the report cannot be written.
pub fn run(
    options: &Options,
    stop: &Stop,
    progress: &mut dyn FnMut(f64),
) -> anyhow::Result<Findings> {
    if let Some(folder) = &options.folder {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    let survey = survey();
    let service = ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
    let contenders = contenders(&survey, &service.wall_clock());
    let mut courses: Vec<_> = contenders.into_iter().map(Course::new).collect();
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < options.rounds && !stop.is_requested() {
        for course in &mut courses {
            course.turn(start);
        }
        rounds += 1;
        progress(f64::from(rounds) / f64::from(options.rounds));
    }
    let ways = ways(courses, &survey);
    let findings = Findings {
        circumstances: Circumstances::here(),
        interrupted: rounds < options.rounds,
        rounds,
        reads_per_round: READS_PER_ROUND,
        selected: survey.selected,
        beside: options.beside.as_ref().map(|beside| beside.of_what_lacks(&ways)),
        ways,
        paper: PAPER,
        published: PUBLISHED,
        report: options.folder.as_ref().map(|folder| folder.join("timers.html")),
    };
    if let Some(report) = &findings.report {
        fs::write(report, page::html(&findings))
            .with_context(|| format!("cannot write {}", report.display()))?;
    }
    Ok(findings)
}

/// A contender, and what its turns have brought.
struct Course {
    contender: Contender,
    tally: Tally,
    moments: Vec<Moment>,
}

impl Course {
    fn new(mut contender: Contender) -> Self {
        // Warms up caches and the CPU's clock; counts for nothing.
        contender.turn();
        Self { contender, tally: Tally::default(), moments: Vec::new() }
    }

    fn turn(&mut self, start: Instant) {
        let at = start.elapsed().as_secs_f64();
        let turn = self.contender.turn();
        let cost = |limit| turn.cost(limit, self.contender.tick_ns);
        let fence = turn.fence(self.contender.step());
        if let (Some(filtered), Some(all)) = (cost(fence), cost(u64::MAX)) {
            self.moments.push(Moment { at, usual: filtered.mean, longest: all.max });
        }
        self.tally.merge(&turn);
    }

    fn measured(self, of: &Source) -> Measured {
        let Contender { source, call, timer, tick_ns, step_ns, .. } = self.contender;
        let fence = self.tally.fence(self.contender.step());
        let [filtered, unfiltered] = [fence, u64::MAX].map(|limit| self.tally.cost(limit, tick_ns));
        let count = |cost: Option<Cost>| cost.map_or(0, |cost| cost.count);
        Measured {
            source: source.into(),
            call: call.into(),
            timer,
            reason: of.reason.clone(),
            emulated_by: of.emulated_by.clone(),
            step_ns: Some(step_ns),
            peak_above_ns: filtered.map(|_| tally::real(fence) * tick_ns),
            peaks: count(unfiltered) - count(filtered),
            filtered,
            unfiltered,
            course: self.moments,
        }
    }
}

/// What was measured, and a row for each source that could not be, in the order of the survey.
fn ways(courses: Vec<Course>, survey: &Survey) -> Vec<Measured> {
    let mut courses = courses.into_iter().peekable();
    let mut ways = Vec::new();
    for source in &survey.sources {
        let known = ways.len();
        while let Some(course) = courses.next_if(|course| course.contender.source == source.name) {
            ways.push(course.measured(source));
        }
        if ways.len() == known {
            ways.push(Measured {
                source: source.name.into(),
                call: "".into(),
                timer: Timer::of_source(source.name),
                reason: source.reason.clone(),
                emulated_by: source.emulated_by.clone(),
                step_ns: None,
                peak_above_ns: None,
                peaks: 0,
                filtered: None,
                unfiltered: None,
                course: Vec::new(),
            });
        }
    }
    ways
}

#[cfg(test)]
mod tests;
