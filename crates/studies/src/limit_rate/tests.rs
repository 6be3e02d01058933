use super::findings::LimitRateResult;
use super::setting::Setting;
use super::sweeps::Sweep;
use super::trials::Trial;
use super::*;
use crate::account;
use crate::experiment::{Design, RunId, Runs, Verdict};
use wirestamp_report::Circumstances;
use wirestamp_report::format::real;

/// Result of a setting with a sender of at most a million frames a second: frames a second that the probe
/// captures, and its CPU load in percent.
type Of = fn(Setting, u32) -> (u64, u64);

/// A probe that captures up to 300,000 frames a second on a whole core, and in proportion on a part.
fn as_in_the_report(setting: Setting, repetition: u32) -> (u64, u64) {
    let limit = 300_000 / u64::from(setting.parts);
    let rate = setting.rate.unwrap_or(1_000_000);
    let load = rate.min(limit) * u64::from(setting.tasks) * 80 / limit / 4;
    (limit, load + u64::from(repetition))
}

fn trial(setting: Setting, repetition: u32, of: Of) -> Trial {
    let (limit, load) = of(setting, repetition);
    let sent = setting.rate.unwrap_or(1_000_000);
    let captured = sent.min(limit);
    Trial {
        asked: setting.rate,
        sent,
        elapsed_ns: 1_000_000_000,
        interface_dropped: 0,
        kernel_dropped: sent - captured,
        captured,
        cpu_ns: load * 10_000_000,
    }
}

fn runs(design: Design, trials: impl Fn(usize, u32) -> Vec<Trial>) -> Runs<Trial> {
    let run = |turn: RunId| (turn, trials(turn.cell, turn.repetition));
    let runs = design.order(1).into_iter().map(run).collect();
    Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs }
}

fn measured(of: Of) -> LimitRateRuns {
    let size = LimitRateScale { quick: true };
    let of_sweep = |sweep: Sweep| {
        let points = sweep.points.len();
        let runs = runs(sweep.design(), |cell, repetition| {
            let setting = sweep.setting(sweep.lines[cell / points], sweep.points[cell % points]);
            vec![trial(setting, repetition, of)]
        });
        (sweep, runs)
    };
    let cells = size.searched().cells();
    let searches = runs(size.searched(), |cell, repetition| {
        let setting = size.of_search(&cells[cell]);
        let Ok::<_, std::convert::Infallible>(trials) = saturation::search(1.0 / 32.0, |rate| {
            Ok(trial(Setting { rate, ..setting }, repetition, of))
        });
        trials
    });
    let series = size.sweeps().into_iter().map(of_sweep).collect();
    LimitRateRuns { size, series, searches, no_limit: None }
}

fn verdicts(of: Of) -> Vec<Verdict> {
    claims::claims(&measured(of)).iter().map(|claim| claim.verdict).collect()
}

#[test]
fn probe_as_in_the_report_confirms_it_except_for_the_duration() {
    use Verdict::{Confirmed, NotTheSameQuestion, Open};
    // Two of the three rates of the quick run lose nothing: too few for a line.
    // The durations are measured at two thirds of the limit rate.
    let expected = [
        Open,
        Open,
        Confirmed,
        NotTheSameQuestion,
        Confirmed,
        Confirmed,
        Confirmed,
        Open,
        Confirmed,
        Confirmed,
        NotTheSameQuestion,
    ];
    let found = verdicts(as_in_the_report);
    assert_eq!(found[2..7], expected[2..7]);
    assert_eq!(found[8..], expected[8..]);
}

#[test]
fn duration_is_asked_near_the_limit_rate_only() {
    let claim = |of: Of| claims::claims(&measured(of)).pop().unwrap();
    let far = claim(|_, _| (u64::MAX, 10));
    assert_eq!(far.verdict, Verdict::NotTheSameQuestion);
    for part in [
        "at 77 and 86 % of",
        "200\u{202f}000/s, at most 20 % of",
        "(at least 1\u{202f}000\u{202f}000/s:",
    ] {
        assert!(far.sentence.contains(part), "{part}: {}", far.sentence);
    }
    assert!(claim(as_in_the_report).sentence.contains("200\u{202f}000/s, 67 % of"));
    // 84 % of the limit, without loss.
    assert_eq!(claim(|_, _| (240_000, 10)).verdict, Verdict::Contradicted);
}

#[test]
fn memory_and_filter_are_compared_at_the_highest_rate() {
    // Loses 2 % more with all filters, at the highest rate only.
    let filtered: Of = |setting, _| {
        let limit = if setting.filter as u8 > 1 { 480_000 } else { 500_000 };
        (limit, 10)
    };
    let claims = claims::claims(&measured(filtered));
    assert_eq!(
        [&claims[2], &claims[4]].map(|it| it.verdict),
        [Verdict::Confirmed, Verdict::Contradicted]
    );
    let numbers = "at the highest rate, 50.00 % against 52.00 %, a difference of \u{2212}2.00 ± 0.00 percentage points";
    assert!(claims[4].sentence.contains(numbers), "{}", claims[4].sentence);
}

#[test]
fn counts_of_a_long_run_are_trials_of_each_duration() {
    let size = LimitRateScale { quick: true };
    let sweep = size.sweeps().into_iter().find(Sweep::is_of_durations).unwrap();
    let count = |sent| Trial { sent, ..trial_of_nothing() };
    let run = |repetition: u64| {
        let id = RunId { repetition: u32::try_from(repetition).unwrap(), cell: 0 };
        (id, vec![count(repetition), count(10 + repetition)])
    };
    let design = Design { factors: Vec::new(), ..sweep.design() };
    let runs = (0..3).map(run).collect();
    let runs = Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs };
    let runs = durations::by_duration(&sweep, runs);
    let sent = |cell| runs.of_cell(cell).map(|it| it[0].sent).collect::<Vec<_>>();
    assert_eq!((sent(0), sent(1), runs.complete()), (vec![0, 1, 2], vec![10, 11, 12], 3));
}

#[test]
fn a_probe_that_is_the_contrary_contradicts_the_report() {
    // More memory and a filter increase the loss; fewer tasks, longer frames and longer gaps increase the load.
    let contrary: Of = |setting, repetition| {
        let hindered = setting.machine_mib > Some(256) || setting.filter as u8 > 1;
        let limit = if hindered { 50_000 } else { 150_000 };
        let load = 50 / u64::from(setting.tasks) + u64::from(setting.frame_bytes) / 50;
        let slow = setting.rate.map_or(0, |rate| 10_000_000 / rate.max(1));
        (limit, load + slow + u64::from(repetition))
    };
    let found = verdicts(contrary);
    for claim in [2, 4, 5, 7, 8] {
        assert_eq!(found[claim], Verdict::Contradicted, "claim {claim}");
    }
}

#[test]
fn the_senders_limit_is_no_saturation_point() {
    let all: Of = |_, _| (u64::MAX, 10);
    let measured = measured(all);
    let found = LimitRateResult::of(&measured);
    assert!(found.saturation.iter().all(|it| it.reached == 0 && it.not_reached == 2));
    let account = account(&measured).unwrap();
    assert!(account.table("Saturation point").rows[0][1].starts_with("at least "));
    // A probe without loss does not show the effect of memory and filters on loss.
    let found = verdicts(all);
    assert_eq!([found[0], found[1], found[2], found[4]], [Verdict::Open; 4]);
    let slow =
        Trial { sent: 90, asked: Some(100), elapsed_ns: 1_000_000_000, ..trial_of_nothing() };
    assert!(slow.is_short_of_the_rate() && !Trial { sent: 96, ..slow }.is_short_of_the_rate());
}

fn trial_of_nothing() -> Trial {
    Trial {
        asked: None,
        sent: 0,
        elapsed_ns: 0,
        interface_dropped: 0,
        kernel_dropped: 0,
        captured: 0,
        cpu_ns: 0,
    }
}

#[test]
fn the_saturation_points_are_those_of_the_probe() {
    let found = LimitRateResult::of(&measured(as_in_the_report));
    for (saturated, limit) in found.saturation.iter().zip([300_000_u64, 300_000, 18_750, 18_750]) {
        let rate = saturated.rate.unwrap().mean;
        assert!((rate - real(limit)).abs() < 32_000.0, "{saturated:?}");
        assert_eq!((saturated.reached, saturated.not_reached), (2, 0));
    }
}

#[test]
fn measurements_without_cycles_are_named() {
    let mut measured = measured(as_in_the_report);
    let sitting = Circumstances { counter_hz: Some(2e9), ..Circumstances::default() };
    for (_, runs) in measured.series.iter_mut().filter(|(sweep, _)| sweep.name != "cpu") {
        runs.sittings = vec![sitting.clone()];
    }
    assert_eq!(LimitRateResult::of(&measured).without_cycles, ["saturation", "cpu"]);
    let page = account::html(&account(&measured).unwrap());
    let unknown =
        "They are unknown for the measurements of the saturation point, the CPU: the version";
    assert!(page.contains(unknown));
}

#[test]
fn rates_in_bits_are_those_of_figure_4_1() {
    let measured = measured(as_in_the_report);
    let found = LimitRateResult::of(&measured);
    let table = account(&measured).unwrap();
    let row = &table.table("Figure 4-1").rows[0];
    let bits = &found.saturation[0].bit_rates;
    assert_eq!(bits.iter().map(|it| it.frame_bytes).collect::<Vec<_>>(), [84, 300, 1500]);
    // At least 268,000 frames of 84 bytes a second, at most 300,000.
    assert_eq!(bits.iter().map(|it| it.oc).collect::<Vec<_>>(), [Some(3), Some(12), Some(48)]);
    assert!(row[2].ends_with(", OC-3") && row[4].ends_with(", OC-48"), "{row:?}");
    // Frames of 300 and 1500 bytes at up to 294,117 a second.
    let sent = &found.without_loss;
    let sizes: Vec<_> = sent.iter().map(|it| (it.tasks, it.bits.frame_bytes)).collect();
    assert_eq!(sizes, [(1, 84), (1, 300), (1, 1500), (4, 300), (4, 1500)]);
    assert_eq!(sent[1].rate.mean.round(), 294_117.0);
}

#[test]
fn cost_model_is_fitted_to_trials_of_the_whole_core() {
    // CPU time of a packet: 40 µs, 100 µs for each task more, and 10 ns for each byte.
    let sum: Of = |setting, repetition| {
        let (tasks, bytes) = (u64::from(setting.tasks), u64::from(setting.frame_bytes));
        let rate = setting.rate.unwrap_or(1_000_000);
        let cost_ns = 40_000 + u64::from(repetition) + 100_000 * (tasks - 1) + 10 * bytes;
        // In percent, of which a trial has ten million nanoseconds.
        (u64::MAX, cost_ns * rate / 10_000_000)
    };
    let found = LimitRateResult::of(&measured(sum));
    let model = found.cost_model.unwrap();
    // Tasks, frame size, and gap: four, two and three cells of three repetitions.
    assert_eq!((model.trials, found.cost_model_reason), (27, None));
    assert!((model.task_ns.unwrap().mean - 100e3).abs() < 1e3, "{model:?}");
    let nothing = LimitRateResult::of(&measured(|_, _| (0, 0)));
    assert!(nothing.cost_model.is_none() && nothing.cost_model_reason.is_some());
}

#[test]
fn any_trials_make_a_page() {
    let nothing: Of = |_, _| (0, 0);
    for of in [as_in_the_report, nothing, |_, _| (u64::MAX, 250)] {
        let page = account::html(&account(&measured(of)).unwrap());
        assert!(!page.contains("NaN") && !page.contains(">inf") && !page.contains("inf ±"));
        assert!(page.contains("report: AMD K6, 450 MHz"));
        // Loss and load of each of eight series, and Figure 2-10, for two sizes of screen.
        assert!(page.matches("<svg ").count() >= 30);
        assert!(page.len() < 900_000, "{} bytes", page.len());
    }
    let none = measured(as_in_the_report);
    let empty = |runs: &Runs<Trial>| Runs { runs: Vec::new(), interrupted: true, ..runs.clone() };
    let series = none.series.iter().map(|(sweep, runs)| (sweep.clone(), empty(runs))).collect();
    let searches = empty(&none.searches);
    let none = LimitRateRuns { size: none.size, series, searches, no_limit: None };
    let page = account::html(&account(&none).unwrap());
    assert!(page.contains("was interrupted") && page.contains("Nothing was measured.<"));
}
