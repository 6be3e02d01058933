use super::flows::SourceJitter;
use super::paper::Pause;
use super::*;
use crate::account;
use crate::experiment::{RunId, Runs, Study, Verdict};

const SIZE: JitterScale = JitterScale {
    repetitions: 3,
    frames: &[84, 300, 1500],
    flow: std::time::Duration::from_millis(20),
};

/// Runs of all sources, with the error of max and mean and the jitter that `off` returns.
fn runs(off: impl Fn(u16, Pause, u32) -> (f64, f64, f64)) -> Runs<SourceJitter> {
    let design = SIZE.design();
    let (order, cells) = (design.order(1), design.cells());
    let run = |turn: RunId| {
        let (frame_bytes, pause, source) = SIZE.of(&cells[turn.cell]);
        let period = f64::from(pause.period_ns(frame_bytes));
        let (max_error, mean_error, jitter) = off(frame_bytes, pause, turn.repetition);
        let row = SourceJitter {
            source: source.to_string(),
            sent: 100,
            captured: 98,
            lost: 1,
            times: 97,
            sent_min: Some(period - 10.0),
            sent_mean: Some(period),
            sent_max: Some(period + 100.0),
            sent_deviation: Some(5.0),
            min: Some(period - 12.0),
            mean: Some(period + mean_error),
            max: Some(period + 100.0 + max_error),
            deviation: Some(jitter),
            jitter: Some(jitter),
            driver_jitter: Some(jitter / 2.0),
            call_jitter: Some(3.0),
            transit_p50: Some(1_500.0),
            transit_p99: Some(2_000.0),
            transit_p999: Some(9_000.0),
            interrupted: Some(0.003),
            uninterrupted_jitter: Some(300.0),
            machine_jitter: Some(900.0),
            machine_interruptions: Some(20_000.0),
            machine_interrupts: Some(250.0),
            interruption_jitter: Some(600.0),
            cpu_ns: (turn.repetition > 0).then_some(25),
            capture_ns: Some(1_000),
        };
        (turn, vec![row])
    };
    let runs = order.into_iter().map(run).collect();
    Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs }
}

fn found(runs: &Runs<SourceJitter>) -> JitterResult {
    let refused = vec![("xdp-pass/xdp".to_owned(), "no <b>program".to_owned())];
    JitterResult::of(runs, refused, LateResult::default())
}

fn verdicts(runs: &Runs<SourceJitter>) -> Vec<Verdict> {
    claims::claims(runs, &found(runs)).iter().map(|claim| claim.verdict).collect()
}

#[test]
fn what_the_data_say_of_the_report_is_computed() {
    let period = |bytes: u16, pause: Pause| f64::from(pause.period_ns(bytes));
    let small = |repetition: u32| 20.0 + f64::from(repetition);
    let falling =
        runs(|bytes, pause, n| (1e9 / period(bytes, pause) + f64::from(n), small(n), small(n)));
    let found = verdicts(&falling);
    assert_eq!(found[..3], [Verdict::Confirmed; 3]);
    let by_size = runs(|bytes, _, n| (1e6 / f64::from(bytes) + f64::from(n), small(n), small(n)));
    assert_eq!(verdicts(&by_size)[3], Verdict::Confirmed);
    let rising = runs(|bytes, pause, n| {
        (period(bytes, pause) + f64::from(n), 6_000.0 + small(n), 1e9 + small(n))
    });
    assert_eq!(verdicts(&rising)[..3], [Verdict::Contradicted; 3]);
    // Frames of 84 bytes that fill the wire are excepted.
    let excepted = runs(|bytes, pause, n| {
        let error = if bytes == 84 && pause == Pause::Least { 1e6 } else { 0.0 };
        (small(n), error + small(n), small(n))
    });
    assert_eq!(verdicts(&excepted)[0], Verdict::Confirmed);
}

#[test]
fn best_source_is_that_of_the_geometric_mean() {
    let mut runs = runs(|_, _, _| (1.0, 1.0, 1.0));
    let cells = runs.design.cells();
    for (turn, rows) in &mut runs.runs {
        let (frame_bytes, pause, _) = SIZE.of(&cells[turn.cell]);
        let theirs = paper::deviation_of_pentium_4(frame_bytes, pause).unwrap();
        // The second has the largest arithmetic mean.
        let repetition = usize::try_from(turn.repetition).unwrap();
        let factor = [[1.01; 3], [0.1, 0.2, 4.0], [1.02; 3]][cells[turn.cell].0[2]][repetition];
        rows[0].driver_jitter = Some(factor * theirs);
    }
    let found = found(&runs);
    for claim in &claims::claims(&runs, &found)[4..] {
        assert!(
            claim.sentence.contains("in 15 of 15 flows, with 95 % confidence in 0"),
            "{claim:?}"
        );
    }
}

#[test]
fn errors_are_against_the_sender() {
    let found = found(&runs(|_, _, repetition| (7.0, 3.0, 40.0 + f64::from(repetition))));
    assert_eq!(found.cells.len(), 3 * 3 * 5);
    let cell = &found.cells[0];
    assert_eq!((cell.frame_bytes, cell.pause, cell.period_ns), (84, Pause::Least, 7_680));
    assert_eq!((cell.sent, cell.captured, cell.lost), (300, 294, 3));
    let means = [cell.max_error, cell.min_error, cell.mean_error, cell.jitter];
    let means = means.map(|estimate| (estimate.unwrap().mean * 10.0).round());
    assert_eq!(means, [70.0, -20.0, 30.0, 410.0]);
    assert_eq!(cell.stamped.max.map(f64::round), Some(7_787.0));
    // Two of three repetitions recorded the CPU time.
    assert_eq!((cell.load_percent.unwrap().mean, found.load_reason), (2.5, None));
    assert_eq!(found.load_recorded, [90, 135]);
}

#[test]
fn any_times_make_a_page_beside_the_reports_numbers() {
    for error in [0.0, -5.0, 1e12, -1e12] {
        let runs = runs(|_, _, _| (error, error, error.abs()));
        let page = account::html(&account(&runs, &found(&runs)).unwrap());
        assert!(!page.contains("NaN") && !page.contains("<b>program"));
        for number in ["61\u{202f}934", "62.72", "169.56", "left out: no &lt;b&gt;program"] {
            assert!(page.contains(number), "{number}");
        }
        assert!(page.len() < 600_000, "{} bytes", page.len());
    }
    let nothing = Runs { runs: Vec::new(), interrupted: true, ..runs(|_, _, _| (0.0, 0.0, 0.0)) };
    let found = found(&nothing);
    assert!(verdicts(&nothing).iter().all(|verdict| *verdict == Verdict::Open));
    let page = account::html(&account(&nothing, &found).unwrap());
    assert!(page.contains("was interrupted") && page.contains("Nothing was measured."));
}

#[test]
fn a_figure_has_no_more_sizes_than_colours() {
    let runs = runs(|_, _, _| (1.0, 1.0, 1.0));
    let mut found = found(&runs);
    for (cell, bytes) in found.cells.iter_mut().zip([84, 300, 600, 900, 1200, 1500].iter().cycle())
    {
        cell.frame_bytes = *bytes;
    }
    let page = account::html(&account(&runs, &found).unwrap());
    let has = |bytes: &u16| page.contains(&format!(">{bytes} bytes</span>"));
    let drawn: Vec<_> = [84, 300, 600, 900, 1200, 1500].into_iter().filter(has).collect();
    assert_eq!(drawn, [84, 300, 900, 1500]);
}

#[test]
fn a_flow_is_stamped_by_the_kernel_and_counted() {
    let mut flows = Flows::new(SIZE).unwrap();
    let stop = Stop::new().unwrap();
    let cells = flows.design().cells();
    // 300 bytes every 1024 µs, by ring/kernel.
    let rows = flows.run(&cells[24], &stop).unwrap();
    let ring = rows.iter().find(|row| row.source == "ring/kernel").unwrap();
    assert_eq!(ring.sent, 20);
    assert!(ring.captured + ring.lost >= ring.sent, "{ring:?}");
    assert!(ring.mean.is_none_or(|mean| mean > 0.0), "{ring:?}");
    assert!(ring.cpu_ns > Some(0) && ring.cpu_ns < ring.capture_ns, "{ring:?}");
}
