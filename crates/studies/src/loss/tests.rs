use super::round::Round;
use super::*;
use crate::account;
use crate::experiment::{Runs, Verdict};

const SIZE: LossStudyScale =
    LossStudyScale { repetitions: 3, frame_bytes: &[64, 1518], gaps_ns: &[0, 4_000] };
const METHODS: [&str; 3] = ["ring-raw", "ring-kernel", "<b>dumpcap"];

/// Rounds with the given number of captured packets: by method, repetition, and whether the core is busy.
fn runs(captured: impl Fn(usize, u32, bool) -> u64) -> Runs<Round> {
    let design = SIZE.design(METHODS);
    let cells = design.cells();
    let round = |method: usize, captured: u64| Round {
        sent: 20_000,
        elapsed_ns: 20_000_000,
        interface_dropped: 0,
        kernel_dropped: (method < 2).then(|| 20_000 - captured),
        captured,
    };
    let run = |turn: crate::experiment::RunId| {
        let condition = SIZE.condition(&cells[turn.cell]);
        let captured = captured(condition.method, turn.repetition, condition.busy_core);
        (turn, vec![round(condition.method, captured)])
    };
    let runs = design.order(1).into_iter().map(run).collect();
    Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs }
}

fn verdicts(runs: &Runs<Round>) -> Vec<Verdict> {
    claims::claims(runs, SIZE).iter().map(|claim| claim.verdict).collect()
}

#[test]
fn lower_loss_is_confirmed_if_every_repetition_shows_it() {
    use Verdict::{Confirmed, Contradicted, Open};
    let lost = |losses: [u64; 3]| {
        move |method: usize, repetition: u32, _| 20_000 - losses[method] - u64::from(repetition)
    };
    assert_eq!(verdicts(&runs(lost([100, 500, 900]))), [Confirmed]);
    assert_eq!(verdicts(&runs(lost([900, 500, 100]))), [Contradicted]);
    let noisy = runs(|method, repetition, _| {
        20_000 - if (repetition == 1) == (method == 1) { 900 } else { 100 }
    });
    assert_eq!(verdicts(&noisy), [Open]);
}

#[test]
fn where_nothing_is_lost_nothing_speaks_for_either() {
    let none = runs(|_, _, _| 20_000);
    assert_eq!(verdicts(&none), [Verdict::Open]);
    let sentence = &claims::claims(&none, SIZE)[0].sentence;
    assert!(sentence.contains("neither loses one on a core that is idle"), "{sentence}");
    // The idle core, on which no method loses packets, is left out.
    let busy = runs(|method, repetition, busy| {
        20_000 - if busy && method > 1 { 500 + u64::from(repetition) } else { 0 }
    });
    assert_eq!(verdicts(&busy), [Verdict::Confirmed]);
}

#[test]
fn every_packet_is_accounted_for_or_said_not_to_be() {
    let round = Round {
        sent: 100,
        elapsed_ns: 1_000,
        interface_dropped: 10,
        kernel_dropped: Some(20),
        captured: 70,
    };
    assert_eq!((round.unaccounted(), round.loss_percent()), (Some(0), 30.0));
    assert_eq!(Round { captured: 75, ..round }.unaccounted(), Some(-5));
    assert_eq!(Round { kernel_dropped: None, ..round }.unaccounted(), None);
    assert_eq!(Round { sent: 0, elapsed_ns: 0, ..round }.loss_percent(), 0.0);
}

fn not_measured() -> anyhow::Result<InSoftirq> {
    Err(anyhow::anyhow!("no <b>queue"))
}

#[test]
fn any_rounds_make_a_page() {
    let shapes: [fn(usize, u32, bool) -> u64; 3] = [
        |_, _, _| 0,
        |_, _, _| 20_000,
        |method, repetition, busy| {
            5_000 * u64::try_from(method).unwrap() + u64::from(repetition) + u64::from(busy)
        },
    ];
    for shape in shapes {
        let page = account::html(&account(&runs(shape), SIZE, not_measured()).unwrap());
        assert!(!page.contains("NaN") && !page.contains("<b>dumpcap"));
        // Two figures of each core, for two sizes of screen.
        assert_eq!(page.matches("<svg ").count(), 8);
        assert!(page.contains("It was not measured: no &lt;b&gt;queue"));
    }
    let nothing = Runs { runs: Vec::new(), interrupted: true, ..runs(|_, _, _| 0) };
    let page = account::html(&account(&nothing, SIZE, not_measured()).unwrap());
    assert!(page.contains("was interrupted") && page.contains("Nothing was measured.<"));
}
