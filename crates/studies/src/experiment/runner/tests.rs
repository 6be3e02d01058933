use std::collections::BTreeSet;
use std::fs;

use serde::Deserialize;

use super::*;
use crate::experiment::Factor;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Sample {
    value: f64,
    note: Option<String>,
}

/// Records its runs, and requests a stop in the middle of one.
struct Fake {
    repetitions: u32,
    ran: Vec<Cell>,
    stop_in: Option<usize>,
}

impl Fake {
    fn new(repetitions: u32, stop_in: Option<usize>) -> Self {
        Self { repetitions, ran: Vec::new(), stop_in }
    }
}

impl Study for Fake {
    type Sample = Sample;

    fn design(&self) -> Design {
        let factors = vec![Factor::new("a", ["x/1", "y"]), Factor::new("b", ["1.1", "1.2"])];
        let constants = vec![("packets".to_owned(), "9".to_owned())];
        Design { name: "fake".to_owned(), factors, repetitions: self.repetitions, constants }
    }

    fn lasts(&self, _: &Cell) -> Duration {
        Duration::from_secs(1)
    }

    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Sample>> {
        self.ran.push(cell.clone());
        if Some(self.ran.len()) == self.stop_in {
            stop.request();
        }
        let value = f64::from(u32::try_from(cell.0[0])?) + 0.1;
        Ok(vec![Sample { value, note: None }, Sample { value, note: Some("a, b".to_owned()) }])
    }
}

fn run_fake(fake: &mut Fake, folder: Option<&Path>, seed: u64) -> anyhow::Result<Runs<Sample>> {
    run(fake, folder, seed, &Stop::new().unwrap(), &mut |_| ())
}

#[test]
fn what_was_interrupted_is_resumed_where_it_stopped_and_in_the_same_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Fake::new(3, Some(6));
    let stopped = run_fake(&mut first, Some(folder.path()), 1).unwrap();
    assert!(stopped.interrupted);
    // The sixth was cut short.
    assert_eq!((stopped.runs.len(), stopped.complete()), (5, 1));
    let balanced = stopped.responses(|samples| samples.first().map(|sample| sample.value));
    assert_eq!(balanced, [[0.1], [0.1], [1.1], [1.1]]);

    let mut second = Fake::new(3, None);
    let resumed = run_fake(&mut second, Some(folder.path()), 2).unwrap();
    assert_eq!((second.ran.len(), resumed.interrupted, resumed.complete()), (7, false, 3));
    assert_eq!((resumed.seed, resumed.sittings.len()), (1, 2));
    let looked_at = run_fake(&mut Fake::new(3, None), Some(folder.path()), 2).unwrap();
    assert_eq!((looked_at.sittings.len(), looked_at.runs), (2, resumed.runs.clone()));
    let uninterrupted = run_fake(&mut Fake::new(3, None), None, 1).unwrap();
    assert_eq!(resumed.runs, uninterrupted.runs);
}

#[test]
fn raw_results_are_files_that_say_of_which_run() {
    let folder = tempfile::tempdir().unwrap();
    run_fake(&mut Fake::new(1, None), Some(folder.path()), 1).unwrap();
    let names = fs::read_dir(folder.path().join("fake")).unwrap();
    let names: BTreeSet<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    let expected =
        ["001-x-1-1.1.csv", "001-x-1-1.2.csv", "001-y-1.1.csv", "001-y-1.2.csv", "design.json"];
    assert_eq!(names, expected.map(Into::into).into());
    let text = fs::read_to_string(folder.path().join("fake/001-y-1.1.csv")).unwrap();
    assert_eq!(text, "value,note\n1.1,\n1.1,\"a, b\"\n");
    let record = fs::read_to_string(folder.path().join("fake/design.json")).unwrap();
    for word in ["\"seed\": 1", "\"packets\"", "\"kernel\"", "\"clocksource\"", "\"command\""] {
        assert!(record.contains(word), "{word}: {record}");
    }
}

#[test]
fn a_folder_of_another_design_and_damaged_results_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    run_fake(&mut Fake::new(1, None), Some(folder.path()), 1).unwrap();
    let error = run_fake(&mut Fake::new(2, None), Some(folder.path()), 1).unwrap_err();
    assert!(error.to_string().contains("another design"), "{error}");
    fs::write(folder.path().join("fake/001-x-1-1.1.csv"), "value,note\nnone,\n").unwrap();
    let error = run_fake(&mut Fake::new(1, None), Some(folder.path()), 1).unwrap_err();
    assert!(error.to_string().contains("001-x-1-1.1.csv: remove it"), "{error}");
    let error =
        run_fake(&mut Fake::new(1, None), Some(&folder.path().join("fake")), 1).unwrap_err();
    assert!(error.to_string().contains("name the folder that it is in"), "{error}");
    fs::write(folder.path().join("fake/design.json"), "{}").unwrap();
    let error = run_fake(&mut Fake::new(1, None), Some(folder.path()), 1).unwrap_err();
    assert!(error.to_string().contains("is not a record of a study"), "{error}");
}

#[test]
fn progress_goes_from_nothing_to_the_last_run() {
    let mut shares = Vec::new();
    let mut progress = |progress: &Progress| shares.push((progress.share, progress.doing.clone()));
    let stop = Stop::new().unwrap();
    run(&mut Fake::new(2, None), None, 3, &stop, &mut progress).unwrap();
    let expected: Vec<_> = (0..8).map(|done| f64::from(done) / 8.0).collect();
    assert_eq!(shares.iter().map(|(share, _)| *share).collect::<Vec<_>>(), expected);
    assert!(shares[7].1.ends_with(" 2 of 2"), "{shares:?}");
}

#[test]
fn a_run_that_is_stopped_before_says_how_long_the_rest_will_take() {
    let folder = tempfile::tempdir().unwrap();
    run_fake(&mut Fake::new(3, Some(6)), Some(folder.path()), 1).unwrap();
    let stop = Stop::new().unwrap();
    stop.request();
    let mut fake = Fake::new(3, None);
    let mut reported = Vec::new();
    let progress = &mut |progress: &Progress| reported.push((progress.share, progress.left));
    let stopped = run(&mut fake, Some(folder.path()), 1, &stop, progress).unwrap();
    assert_eq!((fake.ran.len(), stopped.runs.len(), stopped.interrupted), (0, 5, true));
    assert_eq!(reported, [(5.0 / 12.0, Duration::from_secs(7))]);
}

#[test]
fn time_left_is_what_was_expected_at_the_pace_so_far() {
    let seconds = Duration::from_secs;
    assert_eq!(left(seconds(0), seconds(0), seconds(60)), seconds(60));
    assert_eq!(left(seconds(30), seconds(20), seconds(40)), seconds(60));
}
