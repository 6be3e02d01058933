use super::trials::AIM;
use super::*;
use crate::account as accounts;
use crate::experiment::Verdict;
use crate::limit_rate::saturation::search;
use crate::limit_rate::trials::Trial;

/// Max rates of sender and probe, and the probe's CPU time per packet in nanoseconds.
type Of = fn(usize) -> (u64, u64, u64);

fn trial((most, limit, cost): (u64, u64, u64), asked: Option<u64>) -> Trial {
    let sent = asked.unwrap_or(most).min(most);
    let captured = sent.min(limit);
    Trial {
        asked,
        sent,
        elapsed_ns: 1_000_000_000,
        interface_dropped: 0,
        kernel_dropped: sent - captured,
        captured,
        cpu_ns: captured * cost,
    }
}

fn runs(of: Of) -> Runs<Trial> {
    let design = MeshLimitRateScale::FULL.design();
    let order = design.order(1);
    let run = |turn: experiment::RunId| {
        let (most, limit, cost) = of(turn.cell);
        // A tenth of a percent off from one repetition to the next.
        let of = (most, limit + limit / 1000 * u64::from(turn.repetition), cost);
        let Ok::<_, std::convert::Infallible>(searched) =
            search(1.0 / 16.0, |rate| Ok(trial(of, rate)));
        (turn, [vec![trial(of, Some(AIM))], searched].concat())
    };
    let runs = order.into_iter().map(run).collect();
    Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs }
}

fn verdicts(of: Of) -> Vec<Verdict> {
    claims::claims(&runs(of)).iter().map(|claim| claim.verdict).collect()
}

#[test]
fn a_probe_that_keeps_its_rate_with_more_tasks_confirms_what_is_claimed() {
    use Verdict::{Confirmed, Contradicted};
    let good: Of = |cell| {
        let limits = [900_000, 850_000, 850_000, 2_000_000, 2_000_000, 300_000, 2_000_000];
        (1_000_000, limits[cell], [900, 950, 950, 400, 420, 2_000, 450][cell])
    };
    assert_eq!(verdicts(good), [Confirmed; 5]);
    let bad: Of = |cell| {
        let limits = [900_000, 300_000, 200_000, 2_000_000, 300_000, 90_000, 90_000];
        (1_000_000, limits[cell], [900, 950, 950, 400, 300, 2_000, 450][cell])
    };
    // Four tasks that take less CPU contradict the report.
    assert_eq!(verdicts(bad), [Contradicted; 5]);
}

#[test]
fn what_the_load_does_not_reach_is_not_decided() {
    use Verdict::{Confirmed, Open};
    let slow_load: Of = |cell| {
        let most = if cell % 3 == 0 { 600_000 } else { 400_000 };
        (most, 2_000_000, if cell % 3 == 0 { 400 } else { 450 })
    };
    assert_eq!(verdicts(slow_load), [Confirmed, Confirmed, Open, Open, Confirmed]);
    let account = account(&runs(slow_load)).unwrap();
    let rows = &account.table("Max rate").rows;
    assert!(rows[0][1].starts_with("at least 600") && rows[0][2] == "the load", "{rows:?}");
    // A rate that was never sent has no verdict.
    let slower: Of = |_| (300_000, 2_000_000, 400);
    assert_eq!(verdicts(slower)[0], Open);
}

#[test]
fn cost_model_is_that_of_the_sampled_tasks() {
    let line: Of = |cell| (1_000_000, 900_000, [0, 0, 0, 80, 380, 9_999, 480][cell]);
    let varied = |mut runs: Runs<Trial>| {
        for (turn, trials) in &mut runs.runs {
            trials.iter_mut().for_each(|it| it.cpu_ns += it.captured * u64::from(turn.repetition));
        }
        runs
    };
    let model = MeshLimitRateResult::of(&varied(runs(line))).cost_model.unwrap();
    let costs = [model.base_ns, model.task_ns].map(|it| it.unwrap().mean.round());
    assert_eq!((costs, model.trials), ([82.0, 100.0], 15));
}

#[test]
fn any_trials_make_a_page() {
    let nothing: Of = |_| (0, 0, 0);
    let some: Of = |cell| (1_000_000, 100_000 * [0, 1, 2, 3, 4, 5, 6][cell], 5_000);
    for of in [nothing, some] {
        let page = accounts::html(&account(&runs(of)).unwrap());
        assert!(!page.contains("NaN") && !page.contains(">inf"));
        assert!(page.contains("report: Pentium 4, 2.8 GHz, one task"));
    }
    let none = Runs { runs: Vec::new(), interrupted: true, ..runs(nothing) };
    let account = account(&none).unwrap();
    assert!(account.claims.iter().all(|claim| claim.verdict == Verdict::Open));
}
