use super::cells::BLOCKS;
use super::paper::STEP_NS;
use super::*;
use crate::account;
use crate::experiment::{Claimant, RunId, Runs, Study, Verdict};
use crate::replicas::Block;

const SIZE: fn() -> StepScale =
    || StepScale { repetitions: 6, packets: 1500, ..StepScale::quick() };

/// Runs of synthetic errors: of the number of the repetition and of the block.
fn runs(error: impl Fn(u32, u64) -> Option<f64>) -> Runs<Block> {
    let design = Cells::new(SIZE()).design();
    let block = |turn: &RunId, place: u64| {
        let error_ns = error(turn.repetition, place);
        let step = if (50..100).contains(&place) { [88.0, 10_000.0][turn.cell % 2] } else { 0.0 };
        Block {
            first: place * 10,
            sent: 10,
            measured: if error_ns.is_some() { 10 } else { 0 },
            delay_ns: error_ns,
            delay_deviation_ns: error_ns.map(|_| 1.0),
            delay_median_ns: error_ns.map(|error| 10_000.0 + step + error),
            truth_ns: error_ns.map(|_| 10_000.0),
            error_ns,
            error_deviation_ns: error_ns.map(|_| 1.0),
            error_median_ns: error_ns,
            error_least_ns: error_ns,
            error_most_ns: error_ns,
            seconds: 0.1,
            captures_lost: 1,
            interfaces_dropped: 0,
            unexplained: 0,
            stamped_late: 0,
            run_error_p001_ns: None,
            run_error_p999_ns: None,
        }
    };
    let of_run = |turn: RunId| (turn, (0..BLOCKS.into()).map(|it| block(&turn, it)).collect());
    let runs = design.order(1).into_iter().map(of_run).collect();
    Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs }
}

/// Errors without a pattern, of a deviation of about 0.3 of `width`.
fn noise(width: f64) -> impl Fn(u32, u64) -> Option<f64> {
    move |repetition, place| {
        // Numbers of one seed are independent, first numbers of many seeds need not be.
        let mut random = fastrand::Rng::with_seed(u64::from(repetition) + 1);
        let last = (0..=place).map(|_| random.f64()).last()?;
        Some(width * (last - 0.5))
    }
}

fn found(runs: &Runs<Block>) -> StepResult {
    StepResult::of(runs, SIZE().packets, Some("<b>left out</b>".to_owned()))
}

#[test]
fn what_the_data_say_of_the_paper_is_computed() {
    let verdict = |deviation_ns: Option<f64>| {
        let mut runs = runs(noise(100.0));
        let blocks = runs.runs.iter_mut().flat_map(|(_, blocks)| blocks);
        blocks.for_each(|block| block.error_deviation_ns = deviation_ns);
        claims::claims(&found(&runs))[0].verdict
    };
    let [masked, visible, unknown] = [Some(500.0), Some(20.0), None].map(verdict);
    assert_eq!(masked, Verdict::Confirmed);
    assert_eq!(visible, Verdict::Contradicted);
    assert_eq!(unknown, Verdict::Open);
}

#[test]
fn medians_detect_the_step_unless_they_fluctuate_more() {
    let claim = |runs: &Runs<Block>| claims::claims(&found(runs)).swap_remove(1);
    let detected = claim(&runs(noise(100.0)));
    assert_eq!((detected.by, detected.verdict), (Claimant::Project, Verdict::Confirmed));
    for numbers in [
        "detected in 36 of 36 runs with kernel or XDP stamps",
        "the delay of 500 of 1\u{202f}500 packets was raised by 88 ns",
    ] {
        assert!(detected.sentence.contains(numbers), "{}", detected.sentence);
    }
    assert_ne!(claim(&runs(noise(10_000.0))).verdict, Verdict::Confirmed);
    assert_eq!(claim(&runs(|_, _| None)).verdict, Verdict::Open);
}

#[test]
fn a_step_that_was_made_is_found_with_its_size_and_tried_on_the_same_data() {
    let found = found(&runs(noise(100.0)));
    let ring = found.techniques.iter().find(|it| it.technique == "ring:kernel").unwrap();
    let [step, larger] = ring.steps.as_slice() else { panic!("{:?}", ring.steps) };
    assert_eq!((step.true_ns, step.found.found, step.found.of), (STEP_NS, 6, 6));
    assert!((larger.measured_ns.unwrap().mean - 10_000.0).abs() < 20.0, "{larger:?}");
    // A deviation of 29, of 50 blocks against 100: an error of 5, and 2.3 of these on either side.
    let smallest = ring.smallest_ns.unwrap();
    assert!((12.0..35.0).contains(&smallest), "{smallest}");
    // With a tenth of the blocks the error is the root of ten times as large.
    let in_a_tenth = ring.smallest_in_a_tenth_ns.unwrap();
    assert!((2.0..6.0).contains(&(in_a_tenth / smallest)), "{in_a_tenth} {smallest}");
    let shares: Vec<_> = ring.checks.iter().map(|check| check.found).collect();
    assert_eq!(shares[0].of, 1800);
    assert!(
        shares[0].found < 180 && shares[2].found > 1600 && shares[3].found == 1800,
        "{shares:?}"
    );
    assert_eq!(ring.lost, [12, 0, 0]);
    let reached = found.reached.unwrap();
    assert!(reached.detected[0] > 0.85 && reached.false_alarms[1] < 0.1, "{reached:?}");
}

#[test]
fn a_step_that_the_taps_did_not_measure_is_not_found() {
    let mut runs = runs(noise(100.0));
    let blocks = runs.runs.iter_mut().flat_map(|(_, blocks)| blocks);
    blocks.for_each(|block| block.delay_median_ns = block.error_ns);
    for step in found(&runs).techniques.iter().flat_map(|of| &of.steps) {
        assert!(step.measured_ns.unwrap().mean.abs() < 20.0 && step.found.found < 6, "{step:?}");
    }
}

#[test]
fn any_blocks_make_a_page_beside_the_papers_numbers() {
    let shapes: [fn(u32, u64) -> Option<f64>; 4] = [
        |_, _| None,
        |_, _| Some(0.0),
        |_, place| (place % 2 == 0).then_some(1e12),
        |repetition, place| (repetition == 0 && place < 3).then_some(-5.0),
    ];
    for shape in shapes {
        let runs = runs(shape);
        let page = account::html(&account(&runs, &found(&runs)).unwrap());
        assert!(!page.contains("NaN") && !page.contains("<b>left out"));
        for text in ["88 ns", "±16.0", "ring:kernel", "Departures from the paper"] {
            assert!(page.contains(text), "{text}");
        }
    }
}

#[test]
fn a_stopped_run_measures_nothing_and_says_so() {
    let stop = Stop::new().unwrap();
    stop.request();
    let options = Options { quick: true, folder: None, seed: 1 };
    let account = run(&options, &stop, &mut |_| ()).unwrap();
    assert!(account.making.interrupted && account.making.repetitions == 0);
    assert_eq!(account.claims[0].verdict, Verdict::Open);
}
