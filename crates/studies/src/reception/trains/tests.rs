use super::findings::{cells, claim};
use super::*;
use crate::experiment::{Runs, Verdict};

/// Runs of trains whose packets arrive at once every 2 us; `after` changes the times after an ideal bucket.
fn runs(repetitions: u32, after: impl Fn(Device, &[f64]) -> Vec<f64>) -> Runs<TrainPacket> {
    let design = Trains::new(TrainScale { repetitions, ..TrainScale::QUICK }).design();
    let cells = design.cells();
    let run = |turn: crate::experiment::RunId| {
        let device = Device::of(&design, &cells[turn.cell]).unwrap();
        let arrivals: Vec<_> = (0..FRAMES).map(|packet| f64::from(2_000 * packet)).collect();
        let left = after(device, &device.departures(&arrivals));
        let packets = (0..2).flat_map(|train| {
            (0..FRAMES).zip(arrivals.iter().zip(&left)).map(move |(packet, (before, after))| {
                #[expect(clippy::cast_possible_truncation, reason = "small numbers")]
                let nanos = |time: &f64| Some(*time as i64 + 10_000_000 * i64::from(train));
                TrainPacket {
                    train,
                    packet,
                    before_ns: nanos(before),
                    // The forwarding delay is no error of a gap.
                    after_ns: nanos(after).map(|time| time + 700),
                }
            })
        });
        (turn, packets.collect())
    };
    let runs = design.order(1).into_iter().map(run).collect();
    Runs { design, seed: 1, sittings: Vec::new(), interrupted: false, runs }
}

fn ideal(_: Device, times: &[f64]) -> Vec<f64> {
    times.to_vec()
}

#[test]
fn ideal_device_has_the_burstiness_of_its_depth() {
    let cells = cells(&runs(2, ideal));
    assert_eq!(cells.len(), 6);
    let found = |speed: &str, depth: u32| {
        cells.iter().find(|it| (&*it.speed, it.depth_frames) == (speed, depth)).unwrap()
    };
    let at_1g = found("1G", 8);
    assert_eq!((at_1g.runs, at_1g.trains, at_1g.incomplete_trains), (2, 4, 0));
    let burstiness = |place: &Option<crate::experiment::Estimate>| place.unwrap().mean;
    // 32 frames in 62 us, in which the link serialises 5.
    let before = burstiness(&at_1g.burstiness_frames.before);
    assert!((before - (32.0 - 62_000.0 / 12_304.0)).abs() < 0.01, "{before}");
    assert!((burstiness(&at_1g.burstiness_frames.after) - 8.0).abs() < 0.01);
    assert!((at_1g.gap_ns.before.unwrap().p50 - 2_000.0).abs() < 1e-6);
    assert!((at_1g.gap_ns.after.unwrap().p50 - 12_304.0).abs() < 2.0);
    assert!(at_1g.gap_error_ns.unwrap().mean.abs() < 1.0);
    assert!((burstiness(&found("100M", 1).longest_burst.after) - 1.0).abs() < 1e-9);
    // The sender is slower than this link: the device changes nothing.
    let at_10g = found("10G", 1);
    assert!((at_10g.gap_ns.after.unwrap().p50 - 2_000.0).abs() < 1e-6);
}

#[test]
fn claim_holds_for_an_ideal_device_and_not_without_one() {
    let verdict = |runs: &Runs<TrainPacket>| claim(Some(runs)).verdict;
    assert_eq!(verdict(&runs(3, ideal)), Verdict::Confirmed);
    let sentence = claim(Some(&runs(3, ideal))).sentence;
    let two_sided =
        "; only 100M with a depth of 8 and 1G with a depth of 8 can differ in both directions";
    assert!(sentence.contains(two_sided), "{sentence}");
    assert_eq!(verdict(&runs(1, ideal)), Verdict::Open);
    let without = |_: Device, times: &[f64]| {
        (0..).zip(times).map(|(at, _)| 2_000.0 * f64::from(at)).collect()
    };
    let found = claim(Some(&runs(3, without)));
    assert_eq!(found.verdict, Verdict::Contradicted);
    assert!(found.sentence.contains("at 100M with a depth of 1"), "{}", found.sentence);
    assert!(claim(None).sentence.contains("nothing was measured"));
}

#[test]
fn incomplete_trains_are_excluded() {
    let mut runs = runs(1, ideal);
    for (_, packets) in &mut runs.runs {
        packets[3].after_ns = None;
    }
    for cell in cells(&runs) {
        assert_eq!((cell.trains, cell.incomplete_trains), (1, 1));
    }
    runs.runs.clear();
    assert!(cells(&runs).is_empty());
}
