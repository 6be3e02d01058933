use super::measured::Measured;
use super::*;
use crate::account;
use crate::experiment::{Claim, RunId, Runs, Study, Verdict};

/// Runs of which `measured` makes up each, from its cell and its repetition.
fn runs(measured: impl Fn(usize, u32) -> Measured) -> Runs<Measured> {
    let design = TestsOfAPath::done(ActiveDelayScale::QUICK).design();
    let run = |turn: RunId| (turn, vec![measured(turn.cell, turn.repetition)]);
    let runs = design.order(1).into_iter().map(run).collect();
    Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs }
}

/// A run with these differences, a tenth of a percent off from one repetition to the next.
fn differing([min, mean, max]: [f64; 3], repetition: u32) -> Measured {
    let drift = 1.0 + f64::from(repetition) / 1000.0;
    let [passive_min_ns, passive_mean_ns, passive_max_ns] = [4_000.0, 120e6, 260e6];
    Measured {
        sent: 2_500,
        reflected: 1_200,
        active_received: 1_200,
        at_a: 2_500,
        at_b: 1_200,
        balanced: true,
        active_min_ns: passive_min_ns + min * drift,
        active_mean_ns: passive_mean_ns + mean * drift,
        active_max_ns: passive_max_ns + max * drift,
        passive_min_ns,
        passive_mean_ns,
        passive_max_ns,
        packet_difference_ns: mean.abs(),
        ..Measured::default()
    }
}

fn claims_of(runs: &Runs<Measured>) -> Vec<Claim> {
    account(runs, &ActiveDelayResult::of(runs)).unwrap().claims
}

fn verdicts(runs: &Runs<Measured>) -> Vec<Verdict> {
    claims_of(runs).iter().map(|claim| claim.verdict).collect()
}

#[test]
fn good_data_confirm_this_projects_claims_and_contradict_the_papers() {
    use Verdict::{Confirmed, Contradicted};
    let good = runs(|_, repetition| differing([300.0, 250.0, 900.0], repetition));
    let [ours, papers] = [[Confirmed; 3], [Contradicted; 3]];
    assert_eq!(verdicts(&good), [ours, papers].concat());
    let sentence = &claims_of(&good)[0].sentence;
    assert!(sentence.starts_with("This project claims") && sentence.contains("63.4"), "{sentence}");
}

#[test]
fn a_contradiction_has_its_cause_with_a_mesh_too() {
    let good = runs(|_, repetition| differing([300.0, 250.0, 900.0], repetition));
    let mesh = runs(|_, repetition| Measured {
        packet_difference_ns: f64::NAN,
        ..differing([300.0, 250.0, 900.0], repetition)
    });
    for (runs, cause) in [(good, "of a packet is 250"), (mesh, "same packets differ by 301")] {
        for claim in &claims_of(&runs)[3..5] {
            assert!(claim.cause.as_ref().is_some_and(|it| it.contains(cause)), "{claim:?}");
        }
    }
}

#[test]
fn data_like_the_papers_turn_every_verdict_round() {
    use Verdict::{Confirmed, Contradicted};
    let bad = runs(|_, repetition| Measured {
        negative: 3,
        active_received: 1_100,
        ..differing([-100e6, 3e6, 9e6], repetition)
    });
    let [ours, papers] = [[Contradicted; 3], [Confirmed; 3]];
    assert_eq!(verdicts(&bad), [ours, papers].concat());
}

#[test]
fn a_loss_of_the_captures_own_is_not_held_against_the_counts() {
    let own = runs(|_, repetition| Measured {
        own_loss: 1,
        at_b: 1_199,
        ..differing([0.0, 0.0, 0.0], repetition)
    });
    assert_eq!(claims_of(&own)[2].verdict, Verdict::Open);
}

#[test]
fn any_differences_make_a_page_beside_the_papers_numbers() {
    for scale in [0.0, 1.0, -1e9, f64::NAN] {
        let runs = runs(|_, repetition| differing([scale, -scale, scale], repetition));
        let account = account(&runs, &ActiveDelayResult::of(&runs)).unwrap();
        let page = account::html(&account);
        assert!(!page.contains("NaN") && page.len() < 300_000, "{} bytes", page.len());
        for number in ["53\u{202f}622", "\u{2212}569\u{202f}ms"] {
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
    assert!(account::html(&account).contains("Nothing was measured.<"));
}
