use super::cells::Conditions;
use super::line_rate::Arrived;
use super::paper::{FIGURE_2, FIGURES_5_AND_6, SPEEDS};
use super::*;
use crate::account;
use crate::experiment::{Runs, Study, Verdict};
use crate::replicas::Block;

/// Runs of synthetic blocks: from the conditions of a cell and the number of the repetition, the share
/// that is measured and the deviation of the error.
fn runs(repetitions: u32, make: impl Fn(&Conditions, f64) -> (u64, f64)) -> Runs<Block> {
    let size = ReceptionScale {
        repetitions,
        frame_bytes: vec![64, 256],
        speeds: vec![SPEEDS[1]],
        ..ReceptionScale::quick()
    };
    let design = Cells::new(size).design();
    let cells = design.cells();
    let run = |turn: crate::experiment::RunId| {
        let conditions = Conditions::of(&design, &cells[turn.cell]).unwrap();
        let (measured, deviation) = make(&conditions, f64::from(turn.repetition));
        let some = |value: f64| (measured > 0).then_some(value);
        let block = |first| Block {
            first,
            sent: 100,
            measured,
            delay_ns: some(2000.0),
            delay_deviation_ns: some(deviation),
            delay_median_ns: some(2000.0),
            truth_ns: some(2000.0),
            error_ns: some(0.0),
            error_deviation_ns: some(deviation),
            error_median_ns: some(0.0),
            error_least_ns: some(-2.0 * deviation),
            error_most_ns: some(2.0 * deviation),
            seconds: 0.001,
            captures_lost: 100 - measured,
            interfaces_dropped: 0,
            unexplained: 0,
            stamped_late: 1,
            run_error_p001_ns: None,
            run_error_p999_ns: None,
        };
        (turn, vec![block(0), block(100)])
    };
    let runs = design.order(1).into_iter().map(run).collect();
    Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs }
}

/// Runs at the line rate, whose share of measured packets is that of [`runs`].
fn line_rate(repetitions: u32, make: impl Fn(&Conditions, f64) -> (u64, f64)) -> Runs<Arrived> {
    let design = LineRate::new(LineRateScale { repetitions, ..LineRateScale::QUICK }).design();
    let cells = design.cells();
    let run = |turn: crate::experiment::RunId| {
        let conditions = Conditions::of(&design, &cells[turn.cell]).unwrap();
        let (captured, _) = make(&conditions, f64::from(turn.repetition));
        (turn, vec![Arrived { sent: 100, elapsed_ns: 1000, captured, ..Arrived::default() }])
    };
    let runs = design.order(1).into_iter().map(run).collect();
    Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs }
}

/// None of the parts beside the cells.
fn no_parts() -> OtherParts {
    OtherParts {
        line_rate: Err(anyhow::anyhow!("needs root")),
        dpdk: Err(anyhow::anyhow!("no DPDK")),
        trains: Err(anyhow::anyhow!("needs two cores")),
        of_figure_2: Err(anyhow::anyhow!("needs root")),
    }
}

fn page(runs: &Runs<Block>) -> String {
    let parts = no_parts();
    let findings = ReceptionResult::of(runs, &parts, Some("<b>left out</b>".to_owned()));
    account::html(&account(runs, &parts, &findings).unwrap())
}

/// As in the paper: stress increases the errors except for XDP, and recvmmsg measures the fewest packets.
fn as_in_the_paper(of: &Conditions, repetition: f64) -> (u64, f64) {
    let hurt = of.stressed && !of.technique.starts_with("xdp");
    let measured = match of.technique.as_str() {
        "recvmmsg:kernel" => 60,
        "ring:kernel" => 99,
        _ => 90,
    };
    (measured, if hurt { 40_000.0 } else { 1_000.0 } + repetition)
}

#[test]
fn what_the_data_say_of_the_paper_is_computed() {
    let verdicts = |repetitions, make: &dyn Fn(&Conditions, f64) -> (u64, f64)| {
        let (runs, line_rate) = (runs(repetitions, make), line_rate(repetitions, make));
        let claims = claims::claims(&runs, Some(&line_rate), None);
        // The last is ours.
        claims[..4].iter().map(|claim| claim.verdict).collect::<Vec<_>>()
    };
    use Verdict::{Confirmed, Contradicted, NotTheSameQuestion, Open};
    // Stress does not load the core that stamps.
    let of = |others| [NotTheSameQuestion, NotTheSameQuestion, others, others];
    assert_eq!(verdicts(3, &as_in_the_paper), of(Confirmed));
    let contrary = verdicts(3, &|of, repetition| {
        let (measured, deviation) = as_in_the_paper(of, repetition);
        (150 - measured, 1e9 / deviation)
    });
    assert_eq!(contrary, of(Contradicted));
    assert_eq!(verdicts(1, &as_in_the_paper), of(Open));
    assert_eq!(verdicts(3, &|_, _| (0, 1.0))[0], NotTheSameQuestion);
}

#[test]
fn stress_on_another_core_decides_nothing() {
    let indifferent = |of: &Conditions, repetition: f64| {
        let sign = if of.stressed { 1.0 } else { -1.0 };
        (90, 1_000.0 + 30.0 * sign * (repetition - 1.0))
    };
    let claims = claims::claims(&runs(3, indifferent), None, None);
    for claim in &claims[..2] {
        assert_eq!(claim.verdict, Verdict::NotTheSameQuestion, "{claim:?}");
        assert!(claim.sentence.contains("nothing here loads the core that stamps"), "{claim:?}");
        assert!(claim.sentence.contains("ring:kernel, 64 bytes at 1G: "), "{claim:?}");
        assert!(
            claim.sentence.contains("geometric mean of all sizes and speeds: 1.00"),
            "{claim:?}"
        );
        assert!(claim.sentence.contains("1.00 with ring:kernel"), "{claim:?}");
        assert_eq!(claim.cause, None);
    }
}

#[test]
fn cause_of_mmaps_missing_frames_is_where_they_were_lost() {
    let contrary =
        |of: &Conditions, _: f64| (if of.technique == "ring:kernel" { 51 } else { 60 }, 1.0);
    let mut line_rate = line_rate(3, contrary);
    for (_, samples) in &mut line_rate.runs {
        samples[0].ring_dropped = 40;
    }
    let claims = claims::claims(&runs(3, contrary), Some(&line_rate), None);
    let cause = claims[3].cause.as_ref().unwrap();
    // Of three runs idle and three stressed.
    assert!(
        cause.starts_with("of the 294 frames") && cause.contains("240 found no room"),
        "{cause}"
    );
    assert!(cause.contains("idle and stressed together: 16.7"), "{cause}");
    let sentence = &claims[3].sentence;
    let difference =
        "ring:kernel minus xdp:xdp \u{2212}9.0 ± 0.0 points idle, \u{2212}9.0 ± 0.0 stressed";
    assert!(sentence.contains(difference), "{sentence}");
}

#[test]
fn more_runs_of_figure_2_decide_about_the_fluctuation() {
    let within = |bound: f64| {
        let mut runs = runs(5, |_, _| (100, 1.0));
        for (_, blocks) in &mut runs.runs {
            blocks[0].run_error_p001_ns = Some(-bound);
            blocks[0].run_error_p999_ns = Some(bound);
        }
        runs
    };
    let verdict = |runs: &Runs<Block>, more: Option<&Runs<Block>>| {
        claims::claims(runs, None, more).last().unwrap().verdict
    };
    assert_eq!(verdict(&within(900.0), None), Verdict::Confirmed);
    assert_eq!(verdict(&within(900.0), Some(&within(1_100.0))), Verdict::Contradicted);
}

#[test]
fn figure_2_has_few_strokes_and_cuts_off_single_interruptions() {
    let mut runs = runs(100, |_, _| (100, 1.0));
    for (turn, blocks) in &mut runs.runs {
        if turn.repetition == 0 {
            blocks[0].error_most_ns = Some(1e9);
        }
    }
    let figure = figures::over_time(&runs, (1000, 310), "time").unwrap();
    // Two techniques, with 200 blocks each.
    assert_eq!(figure.svg.0.matches("<circle").count(), 200);
    assert!(figure.svg.0.contains("(ns)"), "{}", figure.svg.0);
    for text in ["All 100 runs with 256 bytes", "up to 200 packets", "to 1.00\u{202f}s"] {
        assert!(figure.caption.contains(text), "{}", figure.caption);
    }
}

#[test]
fn conditions_of_figure_2_are_one_cell_of_each_technique() {
    let design = Cells::new(ReceptionScale::of_figure_2(false)).design();
    assert_eq!((&*design.name, design.repetitions), ("reception-fluctuation", 30));
    let is_it = |cell| Conditions::of(&design, cell).unwrap().is("ring:kernel", FIGURE_2, false);
    assert_eq!(design.cells().iter().filter(|cell| is_it(cell)).count(), 1);
}

#[test]
fn findings_are_those_of_the_blocks() {
    let found = ReceptionResult::of(&runs(2, as_in_the_paper), &no_parts(), None);
    let cell = found.cell("recvmmsg:kernel", FIGURES_5_AND_6, true).unwrap();
    assert_eq!((cell.sent, cell.captures_lost, cell.stamped_late), (400, 80, 2));
    assert!((cell.measured_percent.unwrap().mean - 60.0).abs() < 1e-9);
    assert!((cell.packets_per_second.unwrap().mean - 200_000.0).abs() < 1e-6);
    // Pooled over both blocks: slightly less than that of each.
    assert!((cell.error_deviation_ns.unwrap().mean / 40_000.5 - 1.0).abs() < 0.01);
    assert!((cell.fluctuation_ns.unwrap().mean / 80_001.0 - 1.0).abs() < 1e-9);
    let effect = |level: &str| {
        let of_levels = &found.effects[2].of_levels;
        of_levels.iter().find(|it| it.levels.len() == 1 && it.levels[0].1 == level).unwrap().effect
    };
    assert!(effect("stress").mean > 0.0 && effect("xdp:xdp").mean < 0.0);
    assert!(effect("64").mean.abs() < 1e-6);
    let on_log = |level: &str| {
        let mut of_levels = found.effects_on_log_deviation.iter();
        of_levels.find(|it| it.levels.len() == 1 && it.levels[0].1 == level).unwrap().effect
    };
    // Stress multiplies the deviation of most techniques by 40.
    assert!(on_log("stress").mean > 1.0 && on_log("xdp:xdp").mean < -1.0);
    assert!(on_log("64").mean.abs() < 1e-9);
    let mean = found.geometric_mean_deviation_ns.unwrap();
    assert!((1_000.0..40_000.0).contains(&mean), "{mean}");
}

#[test]
fn a_response_that_is_the_same_in_all_runs_has_no_column_of_effects() {
    let runs = runs(2, |_, repetition| (100, 1_000.0 + repetition));
    let parts = no_parts();
    let findings = ReceptionResult::of(&runs, &parts, None);
    assert_eq!(
        findings.effects.iter().map(|it| it.varies).collect::<Vec<_>>(),
        [false, false, true]
    );
    let account = account(&runs, &parts, &findings).unwrap();
    let table = account.table("Main effects");
    assert_eq!(table.heads, ["", "standard deviation of the error"]);
    assert_eq!(table.rows[0][0], "mean of all runs");
    assert!(table.rows[1][1].starts_with("1.00 ("), "{:?}", table.rows[1]);
    assert!(account::html(&account).contains("Not in the tables: packets measured (%)"));
}

/// Makes up the packets that a run measures, and the deviation of their error.
type Shape = fn(&Conditions, f64) -> (u64, f64);

#[test]
fn any_blocks_make_a_page_beside_the_papers_numbers() {
    let shapes: [Shape; 4] = [
        as_in_the_paper,
        |_, _| (0, 1.0),
        |_, _| (100, 0.0),
        |of, repetition| (u64::from(of.stressed), 1e12 * repetition),
    ];
    for shape in shapes {
        let page = page(&runs(2, shape));
        assert!(!page.contains("NaN") && !page.contains("<b>left out"));
        for text in [
            "±40.0",
            "±16.0",
            "ring:kernel",
            "Departures from the paper",
            "It was not measured: no DPDK.",
            "They were not measured: needs two cores.",
        ] {
            assert!(page.contains(text), "{text}");
        }
        assert!(page.len() < 600_000, "{} bytes", page.len());
    }
    let nothing = Runs { runs: Vec::new(), interrupted: true, ..runs(1, as_in_the_paper) };
    let page = page(&nothing);
    assert!(page.contains("was interrupted") && page.contains("Nothing was measured.<"));
}

#[test]
fn page_shows_the_line_rate_as_means_of_the_runs() {
    let parts = OtherParts { line_rate: Ok(line_rate(2, |_, _| (60, 1.0))), ..no_parts() };
    let runs = runs(2, as_in_the_paper);
    let findings = ReceptionResult::of(&runs, &parts, None);
    let account = account(&runs, &parts, &findings).unwrap();
    let table = account.table("Packets measured, of those that were sent");
    assert_eq!(table.rows[0][3..6], ["60.00 ± 0.00", "60.00 ± 0.00", "0.00"]);
    let page = account::html(&account);
    for text in [
        "1\u{202f}488\u{202f}095 frames a second for 64 bytes at 1G",
        "values of 2 runs",
        "<dt>Repetitions of the other parts</dt><dd>2 of the line rate</dd>",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn a_stopped_run_measures_nothing_and_says_so() {
    let stop = Stop::new().unwrap();
    stop.request();
    let options = Options { quick: true, folder: None, seed: 1 };
    let account = run(&options, &stop, &mut |_| ()).unwrap();
    assert!(account.making.interrupted && account.making.repetitions == 0);
    assert!(account.claims[2..].iter().all(|claim| claim.verdict == Verdict::Open));
}
