use jiff::Timestamp;

use super::*;
use crate::task::TaskRecord;
use crate::v1;

const MADE: Timestamp = Timestamp::UNIX_EPOCH;

fn entered(body: &str) -> TaskRecord {
    TaskRecord { task: serde_json::from_str(body).unwrap(), made: MADE, ended: None }
}

fn tasks() -> Tasks {
    let bodies = [
        r#"{"name":"there","measure":"active-delay","from":"a","to":"b"}"#,
        r#"{"name":"back","measure":"passive-delay","from":"b/eth0","to":"a/eth0"}"#,
        r#"{"name":"elsewhere","measure":"active-delay","from":"a","to":"c"}"#,
    ];
    (1..).zip(bodies.map(entered)).collect()
}

fn last(task: u64, at: i64, ahead: i64) -> v1::ClockOffset {
    let (own_error, their_error) = (Some(100), Some(200));
    v1::ClockOffset { task, at, ahead, bound: 50, own_error, their_error }
}

fn report(probes: &ProbeRegistry, probe: &str, clock_offsets: Vec<v1::ClockOffset>) -> ProbeHealth {
    let name = probe.parse().unwrap();
    let health = ProbeHealth::from(v1::Report { clock_offsets, ..v1::Report::default() });
    probes.connected(&name, (([127, 0, 0, 1], 1).into(), 0), MADE, MADE).unwrap();
    probes.report(&name, MADE, health.clone(), MADE);
    health
}

#[test]
fn newest_exchange_covers_all_tasks_of_two_probes() {
    let (tasks, probes) = (tasks(), ProbeRegistry::default());
    let known = |task: u64| between(&tasks[&task].task.measure, &tasks, &probes);
    assert_eq!(known(1), None);
    report(&probes, "a", vec![last(3, 9, 70), last(1, 5, 40), last(7, 9, 9)]);
    // Probe b sends no test packets for task 1.
    report(&probes, "b", vec![last(1, 9, 60)]);
    let there = known(1).unwrap();
    assert_eq!((there.task, there.at_ns, there.ahead_ns, there.bound_ns), (1, 5, 40, 50));
    let back = known(2).unwrap();
    assert_eq!((back.ahead_ns, back.claimed_ns), (-40, [Some(200), Some(100)]));
    assert_eq!(known(3).unwrap().ahead_ns, 70);
    probes.disconnected(&"a".parse().unwrap(), MADE, MADE);
    assert_eq!(known(1), None);
}

#[test]
fn contradictory_clocks_are_logged_once() {
    let (tasks, probes) = (tasks(), ProbeRegistry::default());
    let name = "a".parse().unwrap();
    let mut warned = BTreeSet::new();
    for (ahead, is_wrong) in [(350, false), (-351, true), (351, true), (0, false)] {
        let health = report(&probes, "a", vec![last(1, 5, ahead)]);
        assert_eq!(health.clock_offsets[0].contradicts, is_wrong);
        warn_of(&name, &health, &tasks, &mut warned);
        assert_eq!(warned.contains(&1), is_wrong);
    }
    let unkept = v1::ClockOffset { their_error: None, ..last(1, 5, 1_000_000) };
    assert!(!ClockOffset::from(&unkept).contradicts);
    let endless =
        v1::ClockOffset { bound: u64::MAX, own_error: Some(u64::MAX), ..last(1, 5, i64::MIN) };
    assert!(!ClockOffset::from(&endless).contradicts);
}

#[test]
fn metrics_contain_both_clocks() {
    let mut families = Families::default();
    let health = report(&ProbeRegistry::default(), "a", vec![last(1, 5, -1_000)]);
    show(&"a".parse().unwrap(), &health, &tasks(), &mut families);
    let text = families.text().unwrap();
    let labels = r#"{probe="a",other="b",task="there"}"#;
    for sample in ["clock_offset_seconds", "clock_offset_error_seconds", "clocks_contradicted"]
        .into_iter()
        .zip(["-0.000001", "0.00000005", "1"])
    {
        let line = format!("wirestamp_probe_{}{labels} {}", sample.0, sample.1);
        assert!(text.lines().any(|it| it == line), "{line}: {text}");
    }
}
