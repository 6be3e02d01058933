use std::fs;

use wirestamp_clock::{CounterSource, Survey};

use super::contender::Way;
use super::measured::Measured;
use super::paper::Timer;
use super::reads::CostCount;
use super::*;
use crate::account::html;
use crate::experiment::{Design, RunId, Runs, Verdict};
use wirestamp_report::Circumstances;

const WAYS: [Way; 2] = [
    Way { source: "tsc", call: "TickTime::now", timer: Some(Timer::Tsc), step_ns: 1.0 },
    Way { source: "os", call: "TickTime::now", timer: Some(Timer::Os), step_ns: 1.0 },
];

/// Two sources can be read, and one cannot.
fn sources() -> Survey {
    let source = |name, available| CounterSource {
        name,
        available,
        reason: "<b>because</b>".to_owned(),
        ..wirestamp_clock::survey().sources[0].clone()
    };
    let sources = vec![source("tsc", true), source("hpet", false), source("os", true)];
    Survey { sources, selected: "tsc" }
}

/// Runs of synthetic costs in ticks of 1 ns, with how often each occurs: of way and repetition.
fn runs(repetitions: u32, costs: impl Fn(usize, u32) -> Vec<(u64, u64)>) -> Runs<CostCount> {
    let design = Design {
        name: "timers".to_owned(),
        factors: Vec::new(),
        repetitions,
        constants: Vec::new(),
    };
    let costs = &costs;
    let run = |repetition| {
        let of_way = |(index, way): (usize, &Way)| {
            let size = |(ticks, reads)| CostCount {
                source: way.source.to_owned(),
                call: way.call.to_owned(),
                tick_ns: 1.0,
                step_ns: way.step_ns,
                ticks,
                reads,
            };
            costs(index, repetition).into_iter().map(size).collect::<Vec<_>>()
        };
        let sizes = WAYS.iter().enumerate().flat_map(of_way).collect();
        (RunId { repetition, cell: 0 }, sizes)
    };
    let kernel = Circumstances { clocksource: "tsc".to_owned(), ..Circumstances::default() };
    let runs = (0..repetitions).map(run).collect();
    Runs { design, seed: 1, sittings: vec![kernel], interrupted: false, runs }
}

fn found(runs: &Runs<CostCount>, beside: Option<&Elsewhere>) -> TimersResult {
    TimersResult::of(runs, Measured::all(&sources(), &WAYS), 10, "tsc".into(), beside)
}

fn account_of(runs: &Runs<CostCount>) -> Account {
    account(runs, &found(runs, None)).unwrap()
}

/// Costs spread around `middle`, and one peak.
fn spread(middle: u64, by: u64) -> Vec<(u64, u64)> {
    vec![(middle - by, 500), (middle, 9_000), (middle + by, 499), (1_000_000, 1)]
}

#[test]
fn costs_of_runs_are_those_of_all_their_reads() {
    let found = found(&runs(3, |way, _| spread([10, 25][way], 1)), None);
    assert_eq!((found.rounds, found.ways.len()), (30, 3));
    let tsc = found.timer(Timer::Tsc).unwrap();
    assert_eq!((tsc.peaks, tsc.unfiltered.unwrap().count), (3, 30_000));
    assert!((tsc.filtered.unwrap().mean - 10.0).abs() < 1e-3);
    let at: Vec<_> = tsc.course.iter().map(|moment| moment.at).collect();
    // Both ways, 9 999 usual reads and a peak each.
    let run = (10.0 + 25.0) * 1e4 / 1e9 + 2e6 / 1e9;
    assert!(at.iter().zip([0.0, run, 2.0 * run]).all(|(a, b)| (a - b).abs() < 1e-6), "{at:?}");
}

#[test]
fn ratios_are_those_of_the_means_and_need_both() {
    let both = account_of(&runs(1, |way, _| vec![([10, 25][way], 100)]));
    let ratios = |account: &Account| -> Vec<_> {
        account.table("Mean ± standard").rows.iter().map(|row| row[4..].join(" ")).collect()
    };
    assert_eq!(ratios(&both), ["1.0 1.0 1.0", "– 15.7 42.4", "2.5 2.7 44.5"]);
    let nothing = account_of(&runs(0, |_, _| Vec::new()));
    assert_eq!(ratios(&nothing)[2], "– 2.7 44.5");
}

#[test]
fn what_the_data_say_of_the_paper_is_computed() {
    let of = |runs: &Runs<CostCount>| account_of(runs).claims;
    let verdicts = |runs: &Runs<CostCount>| of(runs).iter().map(|claim| claim.verdict).collect();
    let costs = |way: usize, repetition: u32| {
        spread([10, 50][way] + u64::from(repetition % 2), [1, 5][way])
    };
    // There is no HPET, so four questions cannot be asked: its cost, deviation, and comparison with the OS timer under
    // both clock sources of the kernel.
    let [yes, no, open] = [Verdict::Confirmed, Verdict::Contradicted, Verdict::Open];
    let other = Verdict::NotTheSameQuestion;
    let as_in_the_paper: Vec<_> = verdicts(&runs(5, costs));
    assert_eq!(as_in_the_paper, [yes, yes, other, other, other, other, yes]);
    let contrary: Vec<_> = verdicts(&runs(5, |way, repetition| costs(1 - way, repetition)));
    assert_eq!(contrary[..2], [no, no]);
    let noisy = |way, repetition| costs(usize::from(repetition == 1) ^ way, repetition);
    let noisy: Vec<_> = verdicts(&runs(3, noisy));
    assert_eq!(noisy[..2], [open, open]);
    let once: Vec<_> = verdicts(&runs(1, costs));
    assert_eq!(once, [open, open, other, other, other, other, open]);
    let sentence = &of(&runs(5, costs))[2].sentence;
    assert!(sentence.contains("because this machine has no HPET Timer"), "{sentence}");
    let peaks = &of(&runs(5, costs))[6].sentence;
    let end = "for the OS Timer (mean of the runs); the HPET Timer was not measured.";
    assert!(peaks.ends_with(end), "{peaks}");
}

#[test]
fn deviations_below_the_step_of_the_counter_do_not_compare_costs() {
    // Each cost is one of two values, one step apart.
    let costs = |way: usize, _| vec![([9, 20][way], [500, 4_000][way]), ([10, 21][way], 6_000)];
    let claim = account_of(&runs(5, costs)).claims.swap_remove(1);
    assert_eq!(claim.verdict, Verdict::NotTheSameQuestion);
    let reason =
        "advances in steps of 1.00\u{202f}ns; the deviations (0.266\u{202f}ns and 0.490\u{202f}ns)";
    assert!(claim.sentence.contains(reason), "{}", claim.sentence);
}

#[test]
fn any_costs_make_a_page_and_no_text_is_taken_for_markup() {
    let shapes: [(u32, Vec<(u64, u64)>); 4] = [
        (0, Vec::new()),
        (1, vec![(0, 1)]),
        (1_000, vec![(9, 1_000_000), (230_000, 1)]),
        (2, vec![(0, u64::MAX / 4), (u64::MAX, 1)]),
    ];
    for (repetitions, costs) in shapes {
        let figures = if repetitions == 0 { 2 } else { 4 };
        let page = html(&account_of(&runs(repetitions, |_, _| costs.clone())));
        assert_eq!(page.matches("<svg ").count(), figures);
        assert!(!page.contains("NaN") && !page.contains("<b>because"));
        assert!(page.contains("38.231") && page.contains("374.3"), "the paper's numbers");
        assert!(page.contains("HPET Timer: not available here, &lt;b&gt;because"));
        assert!(page.len() < 400_000, "{} bytes", page.len());
    }
}

#[test]
fn what_another_machine_measured_stands_in_only_for_what_is_missing_here_and_is_marked() {
    let runs = runs(1, |_, _| vec![(10, 100)]);
    let here = found(&runs, None);
    let elsewhere = |source: &'static str, timer| Measured {
        source: source.into(),
        timer: Some(timer),
        emulated_by: Some("QEMU without KVM".to_owned()),
        ..here.ways[0].clone()
    };
    let there = Elsewhere {
        circumstances: Circumstances {
            kernel: "6.1".to_owned(),
            clocksource: "tsc".to_owned(),
            ..Circumstances::default()
        },
        ways: vec![elsewhere("os", Timer::Os), elsewhere("hpet", Timer::Hpet)],
        emulated: None,
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("timers.json");
    fs::write(&file, serde_json::to_string(&there).unwrap()).unwrap();
    let there = Elsewhere::read(&file).unwrap();

    let found = found(&runs, Some(&there));
    let account = account(&runs, &found).unwrap();
    let last = |caption| account.table(caption).rows.last().unwrap()[0].as_str();
    assert_eq!(account.table("Mean ± standard").rows.len(), 4, "the OS timer can be read here");
    assert_eq!(last("Mean ± standard"), "HPET Timer (elsewhere, emulated)");
    assert_eq!(last("Every way"), "hpet TickTime::now (elsewhere, emulated)");
    let page = html(&account);
    assert!(page.contains("Linux 6.1, ; emulated by QEMU without KVM"));

    fs::write(&file, "{}").unwrap();
    let error = format!("{:#}", Elsewhere::read(&file).unwrap_err());
    assert!(error.contains("no document of `wirestamp study timers --json`"), "{error}");
}

#[test]
fn os_timer_of_a_machine_with_unstable_tsc_is_beside_table_2() {
    let runs = runs(2, |way, _| spread([10, 25][way], 1));
    let here = found(&runs, None);
    let elsewhere = |source: &'static str, timer, mean| Measured {
        source: source.into(),
        timer: Some(timer),
        reason: "64-bit; chosen: a read of the HPET takes 2 ns, of the OS 3 ns".to_owned(),
        emulated_by: Some("QEMU without KVM".to_owned()),
        filtered: here.ways[0].filtered.map(|cost| Cost { mean, ..cost }),
        ..here.ways[0].clone()
    };
    let mut there = Elsewhere {
        circumstances: Circumstances { clocksource: "hpet".to_owned(), ..Circumstances::default() },
        ways: vec![elsewhere("hpet", Timer::Hpet, 200.0), elsewhere("os", Timer::Os, 700.0)],
        emulated: None,
    };
    let of = |there: &Elsewhere| account(&runs, &found(&runs, Some(there))).unwrap();
    let whole = of(&there);
    let ratios: Vec<_> = whole.table("Table 2").rows.iter().map(|row| row[3..].join(" ")).collect();
    assert_eq!(ratios, ["– 0.02", "1.00 1.00", "3.50 1.05"]);
    let claim = &whole.claims[5];
    assert_eq!(claim.verdict, Verdict::NotTheSameQuestion);
    assert!(claim.sentence.contains("a ratio of 3.5; Table 2: 1.06"), "{}", claim.sentence);

    // A document of an earlier version has no OS timer, but the survey.
    there.ways.pop();
    let sentence = &of(&there).claims[5].sentence;
    assert!(sentence.contains("does: a read of the HPET takes 2 ns, of the OS 3 ns"), "{sentence}");
}

#[test]
fn peaks_are_filtered_in_three_ways() {
    let account = account_of(&runs(1, |way, _| spread([10, 25][way], 1)));
    let table = account.table("Mean ± standard deviation by");
    assert_eq!(table.rows[0][..2], ["TSC Timer".to_owned(), "110.00 ± 9999.90".to_owned()]);
    assert_eq!(table.rows[0][2], table.rows[0][3], "one peak, above both thresholds");
}

#[test]
fn report_is_written_again_from_raw_results_and_the_survey() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { quick: true, folder: Some(folder.path().to_owned()), seed: 1 };
    let measured = run_beside(Some(1), None, &options, &Stop::new().unwrap(), &mut |_| ()).unwrap();
    let document = serde_json::to_value(&measured).unwrap();
    let written = again(&document, folder.path()).unwrap();
    assert_eq!((&written.data, &written.claims), (&measured.data, &measured.claims));

    let guest = folder.path().join("guest.json");
    let survey = serde_json::to_value(sources()).unwrap();
    let emulated =
        serde_json::json!({ "emulated_by": "an emulator", "sources": survey["sources"] });
    fs::write(guest, format!("{document}\n{emulated}")).unwrap();
    let beside = again(&document, folder.path()).unwrap();
    assert_eq!(beside.data["beside"]["kernel"], document["kernel"]);
    assert_eq!(beside.table("Sources of another").rows[0][0], "tsc (emulated)");

    let elsewhere = tempfile::tempdir().unwrap();
    let error = again(&document, elsewhere.path()).unwrap_err().to_string();
    assert!(error.contains("unpack raw/timers.tar.xz"), "{error}");
}

#[test]
fn rounds_are_divided_into_runs_of_which_none_is_long() {
    let of = |rounds| {
        let reads = Reads::new(rounds).unwrap();
        let runs = crate::experiment::Study::design(&reads).repetitions;
        (runs, reads.rounds_of_run())
    };
    assert_eq!([of(1), of(10), of(101)], [(1, 1), (10, 1), (51, 2)]);
    assert_eq!([of(10_000), of(1_000_000)], [(100, 100), (10_000, 100)]);
}

#[test]
fn stopped_run_measures_nothing_and_lists_every_source() {
    let stop = Stop::new().unwrap();
    stop.request();
    let options = Options { quick: true, folder: None, seed: 1 };
    let account = run(&options, &stop, &mut |_| ()).unwrap();
    assert!(account.making.interrupted && account.making.repetitions == 0);
    let is_undecided = |verdict| matches!(verdict, Verdict::Open | Verdict::NotTheSameQuestion);
    assert!(account.claims.iter().all(|claim| is_undecided(claim.verdict)));
    let ways = account.data["ways"].as_array().unwrap();
    for source in ["tsc", "hpet", "os"] {
        assert!(ways.iter().any(|way| way["source"] == source), "{source}");
    }
}
