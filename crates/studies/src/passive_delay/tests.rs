use super::findings::AllRuns;
use super::measured::Measured;
use super::*;
use crate::account;
use crate::experiment::{Claim, RunId, Runs, Study, Verdict};

const SIZE: PassiveDelayScale = PassiveDelayScale::QUICK;

/// Runs of which `measured` makes up each, from its section, its cell and its repetition.
fn runs(measured: impl Fn(Question, usize, u32) -> Measured) -> AllRuns {
    Question::ALL.map(|question| {
        let design = Measurements::done(question, SIZE).design();
        let order = design.order(1);
        let run = |turn: RunId| (turn, vec![measured(question, turn.cell, turn.repetition)]);
        let runs = order.into_iter().map(run).collect();
        Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs }
    })
}

/// A run with these errors, a tenth of a percent off from one repetition to the next.
fn with_errors([min, mean, max]: [f64; 3], repetition: u32) -> Measured {
    let drift = 1.0 + f64::from(repetition) / 1000.0;
    let [true_min_ns, true_mean_ns, true_max_ns] = [2_500.0, 47e6, 50e6];
    Measured {
        sent: 1000,
        arrived: 400,
        lost: 600,
        balanced: true,
        true_min_ns,
        true_mean_ns,
        true_max_ns,
        min_ns: true_min_ns + min * drift,
        mean_ns: true_mean_ns + mean * drift,
        max_ns: true_max_ns + max * drift,
        ..Measured::default()
    }
}

fn claims_of(runs: &AllRuns) -> Vec<Claim> {
    account(runs, SIZE, &PassiveDelayResult::of(runs, SIZE)).unwrap().claims
}

fn verdicts(runs: &AllRuns) -> Vec<Verdict> {
    claims_of(runs).iter().map(|claim| claim.verdict).collect()
}

#[test]
fn what_this_project_claims_is_confirmed_by_good_data_and_contradicted_by_bad() {
    let good = runs(|_, _, repetition| with_errors([-50.0, 200.0, 900.0], repetition));
    assert_eq!(verdicts(&good)[..4], [Verdict::Confirmed; 4]);
    let bad = runs(|_, _, repetition| {
        let run = with_errors([-2_600.0, -1_500.0, 900.0], repetition);
        Measured { lost: 601, negative: 1, ..run }
    });
    assert_eq!(verdicts(&bad)[..4], [Verdict::Contradicted; 4]);
    let sentence = &claims_of(&bad)[0].sentence;
    assert!(
        sentence.starts_with("This project claims that the error of the mean")
            && sentence.contains("376 µs")
    );
}

#[test]
fn claims_have_the_interval_of_a_difference_and_the_runs_above_the_limit() {
    let runs = runs(|question, _, repetition| {
        let is_off = question == Question::Precision && repetition == 1;
        with_errors([-50.0, if is_off { 1_500.0 } else { 200.0 }, 900.0], repetition)
    });
    let sentence = |claim: usize| claims_of(&runs)[claim].sentence.clone();
    let runs_above = "max of a single run 1.50\u{202f}µs; 1 of 22 runs above 1 µs";
    assert!(sentence(0).contains(runs_above), "{}", sentence(0));
    let interval = "a difference of 0\u{202f}ns ± 0\u{202f}ns (95 % interval; paper: 769 µs";
    assert!(sentence(5).contains(interval), "{}", sentence(5));
}

#[test]
fn a_loss_of_our_own_is_not_held_against_the_count() {
    let own = runs(|_, _, repetition| {
        let run = with_errors([0.0, 0.0, 0.0], repetition);
        Measured { lost: 500, own_loss_b: u64::from(repetition), balanced: true, ..run }
    });
    let loss = &claims_of(&own)[3];
    assert_eq!(loss.verdict, Verdict::Contradicted, "the runs without loss of our own are off");
    let all_own = runs(|_, _, repetition| {
        let run = with_errors([0.0, 0.0, 0.0], repetition);
        Measured { lost: 500, own_loss_b: 100, ..run }
    });
    assert_eq!(claims_of(&all_own)[3].verdict, Verdict::Open);
}

#[test]
fn what_the_paper_finds_is_confirmed_or_contradicted_by_the_data() {
    // Of the second section: frame sizes, then loads, then tasks, of two levels each.
    let as_in_the_paper = runs(|question, cell, repetition| {
        let (short, full) = (cell / 4 == 0, cell / 2 % 2 == 1);
        let mean = match question {
            Question::Frames => {
                100.0 + 1_500.0 * f64::from(u8::from(short)) + 1_200.0 * f64::from(u8::from(full))
            }
            _ => 100.0,
        };
        with_errors([700.0, mean, 0.0], repetition)
    });
    assert_eq!(verdicts(&as_in_the_paper)[4..], [Verdict::Confirmed; 5]);
    let contrary = runs(|question, cell, repetition| {
        let (long, light, four) = (cell / 4 == 1, cell / 2 % 2 == 0, cell % 2 == 1);
        let part = |is: bool, ns: f64| if is { ns } else { 0.0 };
        let mean = match question {
            Question::Precision => 100.0,
            Question::Frames => 100.0 + part(long, 5e3) + part(light, 2e3) + part(four, 4e3),
            Question::Duration => 100.0 + part(cell > 0, 3e3),
        };
        with_errors([0.001, mean, 0.0], repetition)
    });
    assert_eq!(verdicts(&contrary)[4..], [Verdict::Contradicted; 5]);
    let noisy = runs(|_, cell, repetition| {
        let is_full = cell / 2 % 2 == 1;
        let sign = if repetition.is_multiple_of(2) == is_full { 1e5 } else { 1e3 };
        with_errors([sign, sign, 0.0], repetition)
    });
    assert_eq!(verdicts(&noisy)[5], Verdict::Open);
}

#[test]
fn findings_are_those_of_the_runs_whose_truth_is_known() {
    let runs = runs(|_, _, repetition| Measured {
        unknown: (repetition == 1).then(|| "<b>not observed</b>".to_owned()),
        ..with_errors([-50.0, 200.0, 900.0], 0)
    });
    let found = PassiveDelayResult::of(&runs, SIZE);
    let cell = &found.cells[0];
    assert_eq!((cell.runs, cell.sent, cell.truly_lost, cell.lost), (1, 1000, 600, 600));
    let errors = [cell.min_error_ns, cell.mean_error_ns, cell.max_error_ns];
    let errors = errors.map(|error| error.unwrap().mean.round());
    assert!(errors.iter().zip([50.0, 200.0, 900.0]).all(|(a, b)| (a - b).abs() < 1e-9));
    // One section, eight cells of the second, two durations.
    assert_eq!((found.cells.len(), found.unknown.len()), (11, 11));
    assert_eq!(found.effects_on_mean_error, []);
    let page = account::html(&account(&runs, SIZE, &found).unwrap());
    assert!(page.contains("11 runs are left out") && !page.contains("<b>not observed"));
}

#[test]
fn load_of_the_captures_is_beside_the_papers() {
    let runs = |measured: bool| {
        runs(|_, _, repetition| Measured {
            cpu_ns_a: measured.then_some(10 + u64::from(repetition) * 2),
            cpu_ns_b: measured.then_some(50),
            capture_ns_a: Some(100),
            capture_ns_b: Some(200),
            ..with_errors([0.0, 0.0, 0.0], repetition)
        })
    };
    let table = |measured| {
        let runs = runs(measured);
        let found = PassiveDelayResult::of(&runs, SIZE);
        let rows = account(&runs, SIZE, &found).unwrap().table("CPU load").rows.clone();
        (found.load_reason.is_some(), rows)
    };
    let paper = ["paper: 84 B, 40 %, 1 T", "58.76", "72.18"];
    let (is_unknown, rows) = table(true);
    assert!(!is_unknown && rows[0][1].starts_with("11.00 ±"), "{rows:?}");
    assert_eq!(rows[8], paper);
    let (is_unknown, rows) = table(false);
    assert!(is_unknown && rows[0] == paper, "{rows:?}");
}

#[test]
fn any_errors_make_a_page_beside_the_papers_numbers() {
    for scale in [0.0, 1.0, -1e9, f64::NAN] {
        let runs = runs(|_, cell, repetition| {
            let cell = f64::from(u32::try_from(cell).unwrap());
            with_errors([scale, cell * scale, -scale], repetition)
        });
        let page =
            account::html(&account(&runs, SIZE, &PassiveDelayResult::of(&runs, SIZE)).unwrap());
        assert!(!page.contains("NaN") && page.len() < 600_000, "{} bytes", page.len());
        for number in ["387\u{202f}µs", "376\u{202f}µs", "982\u{202f}µs", "58.2 % by probe 1"] {
            assert!(page.contains(number), "the paper's {number}");
        }
    }
}

#[test]
fn a_stopped_run_measures_nothing_and_says_so() {
    if wirestamp_lab::check_privilege().is_err() {
        eprintln!("skipped: needs root");
        return;
    }
    let stop = Stop::new().unwrap();
    stop.request();
    let options = Options { quick: true, folder: None, seed: 1 };
    let account = run(&options, &stop, &mut |_| ()).unwrap();
    assert!(account.making.interrupted && account.making.repetitions == 0);
    assert!(account.claims.iter().all(|claim| claim.verdict == Verdict::Open));
    let page = account::html(&account);
    assert!(page.contains("was interrupted") && page.contains("Nothing was measured.<"));
}
