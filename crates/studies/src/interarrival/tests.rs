use super::cable::{Row, design};
use super::figures::{Shown, density};
use super::*;
use crate::account;
use crate::experiment::{RunId, Runs, Study, Verdict};
use crate::overhead::packets::Stamped;
use crate::overhead::paper::{Method, Traffic};

const SIZE: OverheadScale = OverheadScale { repetitions: 3, packets: [61, 61] };
/// Interval of packets, in nanoseconds.
const GAP: f64 = 1e6;

fn runs<S>(design: experiment::Design, sample: impl Fn(&RunId, u32) -> S) -> Runs<S> {
    let order = design.order(1);
    let run = |turn: RunId| (turn, (0..60).map(|packet| sample(&turn, packet)).collect());
    let runs = order.into_iter().map(run).collect();
    Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs }
}

/// Stamps in user space, with the overhead and the errors of stamp and counter that `of` returns.
fn stamped(of: impl Fn(&RunId, u32) -> (f64, f64, f64)) -> Runs<Stamped> {
    let design = Packets::new(IN_USER_SPACE, SIZE).unwrap().design();
    runs(design, |turn, packet| {
        let (overhead, stamp_off, counter_off) = of(turn, packet);
        let sent_ns = f64::from(packet) * GAP;
        Stamped {
            packet: packet.into(),
            sent_ns,
            at_ns: sent_ns + counter_off,
            stamp_ns: sent_ns + stamp_off,
            between_ns: 20.0 + overhead,
            checkpoint_ns: 20.0,
        }
    })
}

/// Captures with an error of `off` nanoseconds at every second packet; the second capture is missing.
fn captured(off: [i64; 3]) -> Runs<Row> {
    runs(design(SIZE), |_, packet| {
        let sent = i64::from(packet) * 1_000_000;
        let stamp = |source: usize| Some(sent + off[source] * i64::from(packet % 2));
        Row {
            packet: packet.into(),
            sent_ns: (packet != 7).then_some(sent),
            ring_kernel_ns: stamp(0),
            ring_raw_ns: None,
            recvmsg_kernel_ns: stamp(1).filter(|_| packet != 30),
            xdp_pass_ns: stamp(2),
            trace_pass_raw_ns: None,
        }
    })
}

/// Captures of the same packets in the softIRQ, with errors of this many nanoseconds at every second packet, and a
/// little more in each repetition.
fn stamped_in_softirq(ktime: i64, raw: i64) -> Runs<Row> {
    runs(design(SIZE), |turn, packet| {
        let sent = i64::from(packet) * 1_000_000;
        let stamp = |off: i64| {
            let off = off + i64::from(turn.repetition);
            Some(sent + off * i64::from(packet % 2))
        };
        Row {
            packet: packet.into(),
            sent_ns: Some(sent),
            ring_kernel_ns: stamp(ktime),
            trace_pass_raw_ns: stamp(raw),
            ..Row::default()
        }
    })
}

/// Every third stamp is late by its overhead, which changes from packet to packet.
fn late(turn: &RunId, packet: u32) -> (f64, f64, f64) {
    let overhead = if packet.is_multiple_of(3) { 900.0 + f64::from(packet) } else { 50.0 };
    (overhead, overhead + f64::from(turn.repetition), overhead / 10.0)
}

fn found(captured: &Runs<Row>, stamped: &Runs<Stamped>) -> InterarrivalResult {
    let refused = vec![("ring/raw".to_owned(), "no <b>counter".to_owned())];
    InterarrivalResult::of(captured, stamped, SIZE, 10.0, refused)
}

fn verdicts(captured: &Runs<Row>, stamped: &Runs<Stamped>) -> [Verdict; 3] {
    let found = found(captured, stamped);
    let claims = claims::claims(&found.correlation, &found.captures, &found.raw_after_ktime);
    claims.iter().map(|claim| claim.verdict).collect::<Vec<_>>().try_into().unwrap()
}

#[test]
fn what_the_data_say_of_the_paper_is_computed() {
    use Verdict::{Confirmed, Contradicted, NotTheSameQuestion};
    // The captures stamp at two places.
    let of = |correlated| [correlated, NotTheSameQuestion, NotTheSameQuestion];
    let raw_is_better = stamped_in_softirq(2_000, 1_000);
    assert_eq!(verdicts(&raw_is_better, &stamped(late)), of(Confirmed));
    let early = |turn: &RunId, packet: u32| {
        let (overhead, stamp, counter) = late(turn, packet);
        (-overhead, counter, stamp)
    };
    let ktime_is_better = stamped_in_softirq(1_000, 2_000);
    assert_eq!(verdicts(&ktime_is_better, &stamped(early)), of(Contradicted));
    let after = found(&ktime_is_better, &stamped(late)).raw_after_ktime;
    let [call, video] = after.try_into().unwrap();
    // Every second packet, by 1 us.
    let of =
        |it: findings::RawAfterKtime| it.after_ns.map(|after| (after.min, after.max, after.count));
    assert_eq!([of(call), of(video)], [Some((0.0, 1_000.0, 180)); 2]);
    let claims = claims::claims(
        &[],
        &found(&ktime_is_better, &stamped(late)).captures,
        &found(&ktime_is_better, &stamped(late)).raw_after_ktime,
    );
    let sentence = &claims[1].sentence;
    assert!(sentence.contains("is later by 500\u{202f}ns"), "{sentence}");
    assert!(sentence.contains("errors of trace-pass/raw against ring/kernel: 2.0"), "{sentence}");
    let extremes = &claims[2].sentence;
    assert!(extremes.contains("max of the errors of trace-pass/raw against"), "{extremes}");
    assert!(!extremes.contains("no measurement here separates"), "not repeated: {extremes}");
}

#[test]
fn claims_are_those_of_the_document() {
    let found = found(&stamped_in_softirq(2_000, 1_000), &stamped(late));
    let live = claims::claims(&found.correlation, &found.captures, &found.raw_after_ktime);
    let document = serde_json::to_value(&found).unwrap();
    let sentences =
        |claims: &[Claim]| claims.iter().map(|it| it.sentence.clone()).collect::<Vec<_>>();
    assert_eq!(sentences(&claims_again(&[], &document).unwrap()), sentences(&live));
    assert!(claims_again(&[], &serde_json::json!({})).is_err());
}

#[test]
fn captures_are_held_against_their_sender_and_what_they_missed_is_counted() {
    let (captured, stamped) = (captured([100, 500, 20]), stamped(late));
    let found = found(&captured, &stamped);
    let of = |source: &str| {
        let is_it = |s: &&stamps::Stamps| s.source == source && s.pattern == Traffic::Video;
        found.captures.iter().find(is_it).unwrap()
    };
    // One packet of each run was not sent. The send time of another is unknown, so the errors of two gaps are
    // missing.
    let ring = of("ring/kernel");
    assert_eq!((ring.missed, ring.gaps.len(), ring.errors.len()), (3, 3 * 59, 3 * 57));
    assert_eq!(ring.error_ns.map(|error| (error.min, error.max)), Some((-100.0, 100.0)));
    assert!((ring.error_deviation_ns.unwrap().mean - 100.0).abs() < 2.0);
    let recvmsg = of("recvmsg/kernel");
    assert_eq!((recvmsg.missed, recvmsg.gaps.len()), (6, 3 * 57));
    assert!(found.captures.iter().all(|stamps| stamps.source != "ring/raw"));
    assert_eq!(of("the sender").gap_ns.map(|gap| (gap.min, gap.max)), Some((GAP, GAP)));
    let page = account::html(&account(&captured, &stamped, &found).unwrap());
    assert!(page.contains("first: xdp-pass/xdp by 20"), "{page}");
    // Three sources, of which one has a fifth of the middle one's deviation.
    let levels = |effect: &experiment::Effect| effect.levels[0].1.clone();
    let effects = &found.effects_on_log_deviation;
    assert_eq!(levels(&effects[2]), "xdp-pass/xdp");
    assert!(effects[2].effect.mean < -1.0 && effects[1].effect.mean > 1.0, "{effects:?}");
}

#[test]
fn an_overhead_goes_with_the_time_before_it() {
    let found = found(&captured([1; 3]), &stamped(late));
    assert_eq!(found.correlation.len(), 4);
    for correlation in &found.correlation {
        let is_ktime = correlation.method == Method::Ktime;
        let rho = correlation.spearman.unwrap().mean;
        assert!(rho > 0.5, "{correlation:?}");
        assert!(!is_ktime || correlation.spearman_of_error.unwrap().mean > 0.5);
    }
}

#[test]
fn any_stamps_make_a_page() {
    let shapes: [fn(u32) -> f64; 4] =
        [|_| 0.0, |packet| f64::from(packet), |_| -1e9, |packet| f64::from(packet).powi(5)];
    for shape in shapes {
        let stamped = stamped(|_, packet| (shape(packet), shape(packet), shape(packet)));
        let captured = captured([0, 5, i64::from(u32::MAX)]);
        let account =
            account::html(&account(&captured, &stamped, &found(&captured, &stamped)).unwrap());
        assert!(!account.contains("NaN") && !account.contains("<b>counter"));
        assert!(account.contains("ring/raw was left out: no &lt;b&gt;counter"));
        assert!(account.len() < 1_500_000, "{} bytes", account.len());
    }
    let nothing = Runs { runs: Vec::new(), interrupted: true, ..captured([0; 3]) };
    let unstamped = Runs { runs: Vec::new(), ..stamped(late) };
    let findings = found(&nothing, &unstamped);
    assert!(density(&findings, &[], Shown::Gaps, (900, 300), "id").is_none());
    let page = account::html(&account(&nothing, &unstamped, &findings).unwrap());
    assert!(page.contains("was interrupted") && page.contains("Nothing was measured."));
}

#[test]
fn captures_stamp_the_packets_that_were_sent() {
    let mut cable = Cable::new(OverheadScale { repetitions: 1, packets: [2, 40] }).unwrap();
    let stop = Stop::new().unwrap();
    for (cell, packets) in cable.design().cells().iter().zip([2, 40]) {
        let rows = cable.run(cell, &stop).unwrap();
        let numbers: Vec<_> = rows.iter().map(|row| row.packet).collect();
        assert_eq!(numbers, (0..packets).collect::<Vec<_>>());
        for row in rows {
            // A packet is stamped after it was sent: by kernel clocks, which ours follow within a few
            // hundred nanoseconds.
            let (Some(sent), Some(stamped)) = (row.sent_ns, row.ring_kernel_ns) else { continue };
            assert!(stamped > sent - 5_000, "{row:?}");
        }
    }
}
