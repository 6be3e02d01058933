use super::kernel_stamp::AddedByClock;
use super::packets::Stamped;
use super::paper::{Method, Traffic};
use super::*;
use crate::account;
use crate::experiment::{Estimate, RunId, Runs, Study, Verdict};

/// One packet of a run is lost.
const SIZE: OverheadScale = OverheadScale { repetitions: 1, packets: [201, 201] };

/// Runs of synthetic overheads: of method, pattern, repetition and packet.
fn runs(repetitions: u32, overhead: impl Fn(usize, usize, u32, u32) -> f64) -> Runs<Stamped> {
    let size = OverheadScale { repetitions, ..SIZE };
    let design = Packets::new("overhead", size).unwrap().design();
    let order = design.order(1);
    let stamped = |turn: &RunId, packet: u32| Stamped {
        packet: packet.into(),
        sent_ns: f64::from(packet) * 1e6,
        at_ns: f64::from(packet) * 1e6,
        stamp_ns: f64::from(packet) * 1e6,
        between_ns: 20.0 + overhead(turn.cell / 2, turn.cell % 2, turn.repetition, packet),
        checkpoint_ns: 20.0,
    };
    let run = |turn: RunId| (turn, (0..200).map(|packet| stamped(&turn, packet)).collect());
    let runs = order.into_iter().map(run).collect();
    Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs }
}

/// Nothing in the softIRQ.
fn found(runs: &Runs<Stamped>) -> OverheadResult {
    let refused = || anyhow::anyhow!("<b>needs root</b>");
    let in_softirq = InSoftirq {
        programs: Err(refused()),
        packets: Err(refused()),
        kernel_stamp: Err(refused()),
    };
    OverheadResult::of(runs, in_softirq, SIZE, 10.0)
}

fn claims_of(runs: &Runs<Stamped>) -> Vec<Claim> {
    account(runs, &found(runs)).unwrap().claims
}

fn page(runs: &Runs<Stamped>) -> String {
    account::html(&account(runs, &found(runs)).unwrap())
}

#[test]
fn what_the_data_say_of_the_paper_is_computed() {
    let verdicts = |runs: &Runs<Stamped>| {
        let claims = claims_of(runs);
        [claims[0].verdict, claims[1].verdict]
    };
    // ktime: 100 and spread by 50; raw: 20 and spread by 5. And the other way round.
    let overhead = |method: usize, repetition: u32, packet: u32| {
        let (mean, spread) = if method == 0 { (100.0, 50.0) } else { (20.0, 5.0) };
        mean + f64::from(repetition) + spread * (f64::from(packet % 7) - 3.0)
    };
    let as_in_the_paper =
        runs(3, |method, _, repetition, packet| overhead(method, repetition, packet));
    assert_eq!(verdicts(&as_in_the_paper), [Verdict::Confirmed; 2]);
    let contrary =
        runs(3, |method, _, repetition, packet| overhead(1 - method, repetition, packet));
    assert_eq!(verdicts(&contrary), [Verdict::Contradicted; 2]);
    let noisy = runs(3, |method, _, repetition, packet| {
        overhead(usize::from(repetition == 1) ^ method, repetition, packet)
    });
    assert_eq!(verdicts(&noisy), [Verdict::Open; 2]);
    let once = runs(1, |method, _, repetition, packet| overhead(method, repetition, packet));
    assert_eq!(verdicts(&once), [Verdict::Open; 2]);
}

/// Overheads of one of two values, a step of the counter apart: the value changes after that many packets of each method.
fn of_two_values(packets: [u32; 2]) -> Runs<Stamped> {
    runs(3, |method, _, repetition, packet| {
        let is_longer = ((packet + repetition) / packets[method]).is_multiple_of(2);
        if is_longer { 30.0 } else { 20.0 }
    })
}

#[test]
fn step_of_the_counter_does_not_compare_deviations() {
    let claims = claims_of(&of_two_values([2, 3]));
    assert_eq!(claims[1].verdict, Verdict::NotTheSameQuestion);
    let reason = "a step of the counter (10.0\u{202f}ns) apart, which dominates their deviation (5.01\u{202f}ns against";
    assert!(claims[1].sentence.contains(reason), "{}", claims[1].sentence);
    assert_eq!(claims[1].lead.len(), 2);
}

#[test]
fn claims_are_those_of_the_document() {
    let of_many_values = runs(3, |method, _, repetition, packet| {
        [100.0, 20.0][method] + f64::from(repetition) + 30.0 * f64::from(packet % 7)
    });
    for runs in [of_two_values([5, 2]), of_many_values] {
        let mut found = found(&runs);
        found.cells_in_softirq.clone_from(&found.cells);
        found.kernel_stamps.clocks = vec![AddedByClock {
            clock: "mono".into(),
            middle_mean_ns: Some(Estimate::new(23.0, Some(2.0))),
            mean_ns: None,
            log_deviation_ratio: Some(Estimate::new(0.1, Some(0.3))),
            autocorrelation: Some(Estimate::new(-0.005, Some(0.015))),
        }];
        let live = of_paper_and_project(claims::leads(&runs), &Measured::of(&found, 3));
        let mut document = serde_json::to_value(&found).unwrap();
        document["repetitions"] = 3.into();
        let again = claims_again(&live, &document).unwrap();
        let sentences =
            |claims: &[Claim]| claims.iter().map(|it| it.sentence.clone()).collect::<Vec<_>>();
        assert_eq!(sentences(&again), sentences(&live));
        let [overhead, _, memory] = sentences(&live[..3]).try_into().unwrap();
        assert!(
            overhead.contains("ktime takes 23.0\u{202f}ns ± 2.00\u{202f}ns longer"),
            "{overhead}"
        );
        assert!(overhead.contains("the raw stamp of a BPF program"), "{overhead}");
        assert!(
            memory.contains("higher by 0.005 ± 0.015 with the counter than with ktime"),
            "{memory}"
        );
    }
    assert!(claims_again(&[], &serde_json::json!({})).is_err());
}

#[test]
fn lower_auto_correlation_is_explained_by_the_step_where_raw_has_more_of_two_values() {
    // Every tenth overhead of ktime has another value.
    let memory = runs(3, |method, _, _, packet| {
        let is_other = method == 0 && packet.is_multiple_of(10);
        let is_longer = (packet / [5, 2][method]).is_multiple_of(2);
        if is_other {
            50.0
        } else if is_longer {
            30.0
        } else {
            20.0
        }
    });
    let claim = claims_of(&memory).swap_remove(2);
    assert_eq!(claim.verdict, Verdict::Contradicted, "{claim:?}");
    let cause = claim.cause.unwrap();
    assert!(cause.contains("100.0 % with raw and 90.0 % with ktime for the call"), "{cause}");
    assert!(cause.ends_with("This explains the call and the video"), "{cause}");
    assert!(claim.sentence.contains(" for the call (difference \u{2212}0."), "{}", claim.sentence);
}

#[test]
fn findings_are_those_of_the_overheads() {
    let found = found(&runs(2, |method, pattern, _, packet| {
        f64::from(u32::try_from(method * 10 + pattern).unwrap()) + f64::from(packet % 2)
    }));
    let cell = found.cell(Method::Raw, Traffic::Video).unwrap();
    let cost = cell.overhead_ns.unwrap();
    assert_eq!(cell.missing, 2);
    assert_eq!((cost.count, cost.min, cost.mean, cost.max), (400, 11.0, 11.5, 12.0));
    assert!((cell.variance_ns2.unwrap() - 0.25).abs() < 0.01);
    assert!(cell.autocorrelation[0] < -0.9 && cell.autocorrelation[1] > 0.9);
    let effect = &found.effects_on_mean[1];
    assert_eq!((effect.levels[0].1.as_str(), effect.effect.mean), ("raw", 5.0));
}

#[test]
fn any_overheads_make_a_page_beside_the_papers_numbers() {
    let shapes: [fn(u32) -> f64; 4] =
        [|_| 0.0, |packet| f64::from(packet), |_| -10.0, |packet| f64::from(packet).powi(4)];
    for shape in shapes {
        let page = page(&runs(2, |_, _, _, packet| shape(packet)));
        assert!(!page.contains("NaN") && !page.contains("<b>needs root"));
        for number in ["195.2762", "176.0954", "73.49326", "8.197374"] {
            assert!(page.contains(number), "the paper's {number}");
        }
        assert!(page.contains("Nothing was measured: &lt;b&gt;needs root"));
        assert!(page.len() < 600_000, "{} bytes", page.len());
    }
    let nothing = Runs { runs: Vec::new(), interrupted: true, ..runs(1, |_, _, _, _| 0.0) };
    let page = page(&nothing);
    assert!(page.contains("was interrupted") && page.contains("Nothing was measured.<"));
}

#[test]
fn a_stopped_run_measures_nothing_and_says_so() {
    let stop = Stop::new().unwrap();
    stop.request();
    let options = Options { quick: true, folder: None, seed: 1 };
    let account = run(&options, &stop, &mut |_| ()).unwrap();
    assert!(account.making.interrupted && account.making.repetitions == 0);
    assert!(account.claims.iter().all(|claim| claim.verdict == Verdict::Open));
}

#[test]
fn packets_of_a_stream_are_stamped_one_by_one() {
    let size = OverheadScale { repetitions: 1, packets: [2, 20] };
    let mut packets = Packets::new("overhead", size).unwrap();
    let stop = Stop::new().unwrap();
    for (index, cell) in packets.design().cells().iter().enumerate() {
        let stamped = packets.run(cell, &stop).unwrap();
        assert_eq!(stamped.len(), [2, 20][index % 2]);
        assert!(stamped.is_sorted_by_key(|stamped| stamped.at_ns));
        assert!(stamped.iter().all(|stamped| stamped.checkpoint_ns > 0.0));
        let last = stamped[stamped.len() - 1].at_ns;
        // No packet is sent before it is due, though the first may be received late.
        assert!(last > 1e6, "{last}");
    }
}
