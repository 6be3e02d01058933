//! How the runs of a study were made: when, by which version and on which machine.

use serde::{Deserialize, Serialize};

use crate::experiment::Runs;
use wirestamp_report::Circumstances;
use wirestamp_report::format::{count, plural};

/// How the runs of a study were made.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Making {
    /// When, on what, and by what command the last runs were made.
    #[serde(flatten)]
    pub circumstances: Circumstances,
    /// In how many sittings the runs were made: more than one if it was resumed.
    pub sittings: usize,
    /// Whether it was stopped before all runs were done.
    pub interrupted: bool,
    /// Seed of the order of the runs.
    pub seed: u64,
    /// Repetitions that were done of every cell.
    pub repetitions: u32,
    /// Sittings of each design of the study. Empty in documents of earlier versions.
    #[serde(default)]
    pub designs: Vec<MeasuredDesign>,
}

/// A design of a study, and when and on what its runs were made.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MeasuredDesign {
    /// Its name, which is that of its raw results.
    pub name: String,
    /// When, on what, and by what command runs were made: once more for each time it was resumed.
    pub sittings: Vec<Circumstances>,
}

/// A fact on a sitting, by its name in the report.
type Fact = (&'static str, fn(&Circumstances) -> String);

const FACTS: [Fact; 5] = [
    ("Version", version),
    ("Kernel", kernel),
    ("Clock source", clocksource),
    ("Processor", Circumstances::machine),
    ("Counter", counter),
];

impl Making {
    /// That of these runs.
    #[must_use]
    pub fn of<S>(runs: &Runs<S>) -> Self {
        Self {
            circumstances: runs.sittings.last().cloned().unwrap_or_else(Circumstances::here),
            sittings: runs.sittings.len(),
            interrupted: runs.interrupted,
            seed: runs.seed,
            repetitions: runs.complete(),
            designs: vec![MeasuredDesign::of(runs)],
        }
    }

    /// The same with the sittings of further designs of the study, one of which may have the last runs.
    #[must_use]
    pub(crate) fn with(mut self, designs: impl IntoIterator<Item = MeasuredDesign>) -> Self {
        self.designs.extend(designs);
        let sittings = self.designs.iter().flat_map(|design| &design.sittings);
        if let Some(last) = sittings.max_by(|a, b| a.date.cmp(&b.date)) {
            self.circumstances = last.clone();
        }
        self
    }

    /// Rows of the report. A fact that differs between sittings is in the rows of the designs.
    pub(crate) fn rows(&self) -> Vec<(String, String)> {
        let (common, differing): (Vec<Fact>, Vec<Fact>) =
            FACTS.into_iter().partition(|(_, of)| self.distinct(of).len() < 2);
        let is_one = differing.is_empty() && self.distinct(day).len() < 2;
        let common = common.into_iter().map(|(name, of)| (name, of(&self.circumstances)));
        let designs = self.designs.iter().filter(|it| !is_one && !it.sittings.is_empty());
        let designs = designs.map(|design| ("Measured", design.measured(&differing)));
        let rows = std::iter::once(("Command", self.distinct(command).join("; ")))
            .chain(common)
            .chain(designs)
            .chain([("Repetitions", self.repetitions_in_words(is_one))]);
        rows.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Number and order of the repetitions, and their sittings where no other row has them.
    fn repetitions_in_words(&self, has_sittings: bool) -> String {
        let Self { sittings, seed, repetitions, .. } = self;
        let repetitions = count(u64::from(*repetitions));
        let mut text = format!("{repetitions} of every cell in a random order (seed {seed})");
        if has_sittings {
            let sittings = u64::try_from(*sittings).unwrap_or(u64::MAX);
            text += &format!(", in {}", plural(sittings, "sitting", "sittings"));
        }
        text
    }

    /// When the runs were made: the time of the last ones, or the first and the last day.
    pub(crate) fn when(&self) -> String {
        let mut days = self.distinct(day);
        days.sort_unstable();
        match days.as_slice() {
            [first, .., last] => format!("{first} to {last} UTC"),
            _ => format!("{} UTC", self.circumstances.date),
        }
    }

    /// Row that says that another version wrote the report than the one that measured.
    pub(crate) fn written_again(&self, by: &str) -> Option<(String, String)> {
        let text = || format!("again by version {by}; nothing was measured again");
        (by != self.circumstances.version).then(|| ("Report written".to_owned(), text()))
    }

    /// The values of a fact in all sittings, each once.
    pub(crate) fn distinct(&self, of: impl Fn(&Circumstances) -> String) -> Vec<String> {
        let recorded = self.designs.iter().flat_map(|design| &design.sittings);
        let mut values: Vec<_> = recorded.map(&of).collect();
        if values.is_empty() {
            values.push(of(&self.circumstances));
        }
        let mut distinct = Vec::new();
        for value in values {
            if !distinct.contains(&value) {
                distinct.push(value);
            }
        }
        distinct
    }
}

impl MeasuredDesign {
    /// That of these runs.
    #[must_use]
    pub fn of<S>(runs: &Runs<S>) -> Self {
        Self { name: runs.design.name.clone(), sittings: runs.sittings.clone() }
    }

    /// Its name, and the day and these facts of each sitting.
    fn measured(&self, facts: &[Fact]) -> String {
        let sitting = |here: &Circumstances| {
            let fact = |(name, of): &Fact| format!(", {} {}", name.to_lowercase(), of(here));
            day(here) + &facts.iter().map(fact).collect::<String>()
        };
        let mut sittings: Vec<_> = self.sittings.iter().map(sitting).collect();
        sittings.dedup();
        format!("{}: {}", self.name, sittings.join("; "))
    }
}

/// The processor with the frequency of its counter: models of different frequency may have the same name.
pub(crate) fn processor(here: &Circumstances) -> String {
    format!("{} (counter {})", here.machine(), counter(here))
}

pub(crate) fn version(here: &Circumstances) -> String {
    here.version.clone()
}

pub(crate) fn kernel(here: &Circumstances) -> String {
    here.kernel.clone()
}

fn clocksource(here: &Circumstances) -> String {
    here.clocksource.clone()
}

fn counter(here: &Circumstances) -> String {
    let in_ghz = |hz: f64| format!("{:.3} GHz", hz / 1e9);
    here.counter_hz.map_or_else(|| "not recorded".to_owned(), in_ghz)
}

/// The command line with the program's own name: its file may have another.
fn command(here: &Circumstances) -> String {
    let arguments = here.command.split_once(' ').map_or("", |(_, arguments)| arguments);
    format!("wirestamp {arguments}").trim_end().to_owned()
}

fn day(here: &Circumstances) -> String {
    here.date.split(' ').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sitting(date: &str, version: &str, counter_hz: Option<f64>) -> Circumstances {
        Circumstances {
            date: format!("{date} 12:00:00"),
            version: version.to_owned(),
            processor: "AMD EPYC, 2 cores".to_owned(),
            counter_hz,
            command: format!("ws-{version} study loss --output ."),
            ..Circumstances::default()
        }
    }

    fn design(name: &str, sittings: Vec<Circumstances>) -> MeasuredDesign {
        MeasuredDesign { name: name.to_owned(), sittings }
    }

    fn making(designs: Vec<MeasuredDesign>) -> Making {
        let nothing = Making {
            circumstances: Circumstances::default(),
            sittings: 1,
            interrupted: false,
            seed: 7,
            repetitions: 10,
            designs: Vec::new(),
        };
        nothing.with(designs)
    }

    /// The values of the rows of this name.
    fn values<'a>(rows: &'a [(String, String)], of: &str) -> Vec<&'a str> {
        let rows = rows.iter().filter(|(name, _)| name == of);
        rows.map(|(_, value)| value.as_str()).collect()
    }

    #[test]
    fn designs_of_one_day_and_version_share_all_rows() {
        let [early, late] = [2.5961e9, 2.5962e9].map(|hz| sitting("2026-11-29", "1", Some(hz)));
        let making = making(vec![design("loss", vec![early]), design("loss-softirq", vec![late])]);
        let rows = making.rows();
        assert_eq!(values(&rows, "Measured"), [""; 0]);
        assert_eq!(values(&rows, "Counter"), ["2.596 GHz"]);
        assert_eq!(values(&rows, "Command"), ["wirestamp study loss --output ."]);
        let repetitions = "10 of every cell in a random order (seed 7), in 1 sitting";
        assert_eq!(values(&rows, "Repetitions"), [repetitions]);
        assert_eq!(making.when(), "2026-11-29 12:00:00 UTC");
    }

    #[test]
    fn designs_that_were_measured_otherwise_have_rows_of_their_own() {
        let [old, new] = [("2026-11-22", "1", None), ("2026-11-27", "2", Some(2.5961e9))]
            .map(|(date, version, hz)| sitting(date, version, hz));
        let resumed = vec![old.clone(), new.clone(), new.clone()];
        let designs = vec![design("a", vec![new]), design("b", vec![old]), design("c", resumed)];
        let making = making([designs, vec![design("d", Vec::new())]].concat());
        let rows = making.rows();
        let [of_old, of_new] = [
            "2026-11-22, version 1, counter not recorded",
            "2026-11-27, version 2, counter 2.596 GHz",
        ];
        let expected =
            [format!("a: {of_new}"), format!("b: {of_old}"), format!("c: {of_old}; {of_new}")];
        assert_eq!(values(&rows, "Measured"), expected);
        assert_eq!(values(&rows, "Processor"), ["AMD EPYC, 2 cores"]);
        assert!(values(&rows, "Version").is_empty() && values(&rows, "Counter").is_empty());
        assert_eq!(values(&rows, "Repetitions"), ["10 of every cell in a random order (seed 7)"]);
        assert_eq!(making.when(), "2026-11-22 to 2026-11-27 UTC");
        assert_eq!(making.circumstances.version, "2");
    }

    #[test]
    fn document_without_designs_has_the_facts_of_its_last_runs() {
        let mut making = making(Vec::new());
        making.circumstances = sitting("2026-11-22", "1", None);
        let rows = making.rows();
        assert_eq!(values(&rows, "Version"), ["1"]);
        assert_eq!(values(&rows, "Counter"), ["not recorded"]);
        assert!(values(&rows, "Measured").is_empty());
    }

    #[test]
    fn report_by_another_version_says_so() {
        let making = making(vec![design("loss", vec![sitting("2026-11-22", "1", None)])]);
        assert_eq!(making.written_again("1"), None);
        let (name, value) = making.written_again("2").unwrap();
        assert_eq!(name, "Report written");
        assert_eq!(value, "again by version 2; nothing was measured again");
    }
}
