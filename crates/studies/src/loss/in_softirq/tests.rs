use super::scale::SoftirqScale;
use super::*;
use crate::account as page;
use crate::experiment::{Claim, RunId, Runs, Verdict};
use crate::loss::rounds::LossStudyScale;
use crate::loss::{InSoftirq, account};

const SIZE: SoftirqScale =
    SoftirqScale { repetitions: 3, frame_bytes: &[64, 1518], gaps_ns: &[0, 2_000], attempts: 2 };
const CORES: RoundCores = RoundCores { sender: 0, softirq: 1, reader: 1 };
const NAMES: [&str; CONTENDERS] = [
    "nothing",
    "raw",
    "ktime",
    "kernel-stamp",
    "<b>dumpcap",
    "dumpcap-32MiB",
    "ring-kernel",
    "trace-pass-raw",
    "xdp-pass-xdp",
    "xdp-xdp",
];

/// Rounds in which each contender loses this share of the packets, and one more in each repetition.
fn runs(percent: [u64; CONTENDERS]) -> Runs<SoftirqRound> {
    runs_of(SIZE, percent)
}

fn runs_of(size: SoftirqScale, percent: [u64; CONTENDERS]) -> Runs<SoftirqRound> {
    let design = size.design(NAMES);
    let cells = design.cells();
    let run = |turn: RunId| {
        let contender = size.condition(&cells[turn.cell]).contender;
        let lost = 200 * percent[contender] + u64::from(turn.repetition);
        let round = SoftirqRound {
            sent: 20_000,
            elapsed_ns: 20_000_000,
            latest_ns: Some(0),
            queue_dropped: if contender < 4 { lost } else { 0 },
            softirq_ns: Some(10_000_000),
            reader_dropped: (contender > 4).then_some(lost),
            captured: (contender > 3).then_some(20_000 - lost),
        };
        (turn, vec![round])
    };
    let runs = design.order(1).into_iter().map(run).collect();
    Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs }
}

fn verdicts(percent: [u64; CONTENDERS]) -> Vec<Verdict> {
    claims(&runs(percent), SIZE).iter().map(|claim| claim.verdict).collect()
}

#[test]
fn verdicts_follow_the_losses() {
    use Verdict::{Confirmed, Contradicted};
    let paper_is_right = verdicts([0, 10, 20, 20, 50, 40, 3, 2, 2, 1]);
    assert_eq!(paper_is_right, [Confirmed; 8]);
    let paper_is_wrong = verdicts([0, 20, 10, 10, 50, 40, 60, 70, 60, 50]);
    assert_eq!(paper_is_wrong, [Contradicted; 8]);
}

#[test]
fn equal_loss_is_no_more_and_little_loss_has_no_tenth() {
    let all_alike = claims(&runs([5; CONTENDERS]), SIZE);
    assert_eq!(all_alike[2].verdict, Verdict::Confirmed, "{:?}", all_alike[2]);
    assert_eq!(all_alike[3].verdict, Verdict::Open, "{:?}", all_alike[3]);
}

#[test]
fn claims_name_buffers_and_count_cells() {
    let found = claims(&runs([0, 20, 10, 10, 50, 40, 60, 3, 60, 3]), SIZE);
    let first = &found[0].sentence;
    assert!(first.contains("both with a buffer of 32 MiB"), "{first}");
    assert!(first.contains("trace-pass-raw 3.01 % against dumpcap-32MiB 40.00 %"), "{first}");
    assert!(first.contains("the difference is −37.00 ± 0.00 points"), "{first}");
    assert!(first.contains("not compared: <b>dumpcap with its default buffer of 2 MiB"), "{first}");
    let more = &found[2].sentence;
    assert!(more.contains("ours lose more in 4 of 4 comparisons"), "{more}");
    let confidence =
        "less than 1 point more in 0; of the 4 without this confidence, ours lose less in 0";
    assert!(more.contains(confidence), "{more}");
    let first =
        "ring-kernel loses 10.00 points more than <b>dumpcap with 64 bytes every 2.00\u{202f}µs";
    assert!(more.contains(first), "{more}");
    let by_default = &found[3].sentence;
    let cells = "0 of 2 conditions hold with 95 % confidence, 2 fail with it, 0 are not decided";
    assert!(by_default.contains("ring/kernel, our default, loses at most a tenth"), "{by_default}");
    assert!(by_default.contains(cells), "{by_default}");
    let by_xdp = &found[5].sentence;
    assert!(by_xdp.contains("2 of 2 conditions hold"), "{by_xdp}");
    let others = &found[7].sentence;
    let cells = "2 of 4 conditions hold with 95 % confidence, 2 fail with it, 0 are not decided";
    assert!(others.contains(cells), "{others}");
    // 12,001 packets of each of six rounds, and 0, 1 or 2 more.
    let lost = "dropped 0 packets and their own buffers 72\u{202f}006";
    assert!(by_default.contains(lost) && others.contains(lost), "{by_default}\n{others}");
    assert!(others.contains("in 0 of these the softIRQ needs more CPU time"), "{others}");
}

#[test]
fn rounds_of_a_taken_core_do_not_decide() {
    let size = SoftirqScale { repetitions: 5, ..SIZE };
    let mut runs = runs_of(size, [0, 10, 20, 20, 50, 40, 3, 2, 2, 1]);
    let ring = |cell: &Cell| cell.0[0] == Contender::RING;
    let cells = runs.design.cells();
    for (turn, rounds) in &mut runs.runs {
        if ring(&cells[turn.cell]) && turn.repetition == 1 {
            rounds[0].captured = Some(0);
        }
    }
    let found = claims(&runs, size);
    assert_eq!(found[2].verdict, Verdict::Confirmed, "{:?}", found[2]);
    assert_eq!(found[3].verdict, Verdict::Confirmed, "{:?}", found[3]);
}

#[test]
fn rounds_at_another_load_do_not_decide() {
    let size = SoftirqScale { repetitions: 5, ..SIZE };
    let found = |late: u32| {
        let mut runs = runs_of(size, [0, 10, 20, 20, 50, 40, 3, 2, 2, 1]);
        let cells = runs.design.cells();
        for (turn, rounds) in &mut runs.runs {
            let cell = &cells[turn.cell].0;
            let is_meant = [Contender::RAW, Contender::RING].contains(&cell[0]) && cell[2] == 1;
            if is_meant && turn.repetition < late {
                let captured = rounds[0].captured.map(|_| 0);
                rounds[0] = SoftirqRound {
                    latest_ns: Some(1_000_000),
                    queue_dropped: 20_000,
                    captured,
                    ..rounds[0]
                };
            }
        }
        claims(&runs, size)
    };
    let two = found(2);
    for (claim, left_out) in [(1, "4 of 20"), (2, "8 of 20"), (3, "4 of 10")] {
        let Claim { verdict, sentence, .. } = &two[claim];
        assert_eq!(*verdict, Verdict::Confirmed, "{sentence}");
        let left_out = format!("; {left_out} pairs of rounds are left out");
        assert!(sentence.contains(&left_out), "{sentence}");
    }
    // Most repetitions lack a loss.
    let three = found(3);
    assert_eq!([three[2].verdict, three[3].verdict], [Verdict::Open; 2], "{:?}", three[2]);
}

#[test]
fn late_rounds_are_counted_or_unknown_with_a_reason() {
    let of = |latest_ns| {
        let mut runs = runs([0; CONTENDERS]);
        for (_, rounds) in &mut runs.runs {
            rounds[0].latest_ns = latest_ns;
        }
        let result = serde_json::to_value(SoftirqResult::of(&runs, SIZE, CORES)).unwrap();
        // Without a gap, and every 2 us.
        [0_usize, 1].map(|cell| result["cells"][cell].clone())
    };
    let [full_speed, late] = of(Some(1_000_000));
    assert_eq!((&full_speed["late_rounds"], &late["late_rounds"]), (&0.into(), &3.into()));
    assert_eq!((&late["rounds"], &late["compared_rounds"]), (&3.into(), &0.into()), "{late}");
    assert!(late["late_rounds_reason"].is_null(), "{late}");
    let [full_speed, unknown] = of(None);
    assert_eq!(full_speed["late_rounds"], 0);
    assert!(unknown["late_rounds"].is_null(), "{unknown}");
    assert!(unknown["late_rounds_reason"].is_string(), "{unknown}");
    assert_eq!(unknown["compared_rounds"], 3);
}

#[test]
fn report_shows_every_contender_and_escapes_names() {
    let mut runs = runs([0, 1, 2, 3, 40, 30, 5, 6, 2, 1]);
    let cells = runs.design.cells();
    for (turn, rounds) in &mut runs.runs {
        if cells[turn.cell].0 == [Contender::RING, 0, 1] {
            rounds[0].latest_ns = Some(1_000_000);
        }
    }
    let result = InSoftirq {
        result: SoftirqResult::of(&runs, SIZE, CORES),
        claims: claims(&runs, SIZE),
        interrupted: false,
        design: page::MeasuredDesign::of(&runs),
    };
    let design = LossStudyScale::QUICK.design(["a", "b", "c"]);
    let empty: Runs<crate::loss::round::Round> =
        Runs { design, seed: 1, sittings: Vec::new(), interrupted: true, runs: Vec::new() };
    let account = account(&empty, LossStudyScale::QUICK, Ok(result)).unwrap();
    let compared = &account.table("Rounds that the claims compare").rows;
    let with_ring = 3 + Contender::RING;
    assert_eq!((compared.len(), compared[0][3].as_str()), (1, "3"), "{compared:?}");
    assert_eq!(compared[0][with_ring], "0", "{compared:?}");
    let html = page::html(&account);
    assert!(!html.contains("NaN") && !html.contains("<b>dumpcap"));
    assert!(html.contains("this machine has no third core"));
    assert!(NAMES.iter().filter(|name| !name.contains('<')).all(|name| html.contains(name)));
    // 500 ns for each of the packets that were received.
    assert!(html.contains("500"), "{html}");
}

#[test]
fn interruption_in_the_softirq_marks_the_account() {
    let design = LossStudyScale::QUICK.design(["a", "b", "c"]);
    let complete: Runs<crate::loss::round::Round> =
        Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs: Vec::new() };
    let is_interrupted = |interrupted| {
        let runs = runs([0; CONTENDERS]);
        let (result, design) =
            (SoftirqResult::of(&runs, SIZE, CORES), page::MeasuredDesign::of(&runs));
        let in_softirq = InSoftirq { result, claims: Vec::new(), interrupted, design };
        account(&complete, LossStudyScale::QUICK, Ok(in_softirq)).unwrap().making.interrupted
    };
    assert_eq!([false, true].map(is_interrupted), [false, true]);
}

#[test]
fn packets_are_received_through_the_queue() {
    let mut study = RoundsInSoftirq::new(SoftirqScale::QUICK).unwrap();
    let stop = Stop::new().unwrap();
    // Frames of 64 bytes every 2 us, for each contender.
    for cell in study.design().cells().iter().filter(|cell| cell.0[1] == 0 && cell.0[2] == 1) {
        let [round] = study.run(cell, &stop).unwrap().try_into().unwrap();
        let of: &SoftirqRound = &round;
        assert_eq!(of.sent, PACKETS, "{cell:?}");
        let captured = of.captured.unwrap_or(0) + of.reader_dropped.unwrap_or(0);
        assert!(captured <= of.received(), "{of:?}");
    }
}
