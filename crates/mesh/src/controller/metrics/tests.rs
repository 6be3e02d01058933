use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use jiff::Timestamp;
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
use wirestamp_metrics::{CompactHistogram, Counts, Distribution, Observation, Outcome, Quality};
use wirestamp_packet::{FlowKey, PacketId};

use super::totals::{Total, Totals};
use super::*;
use crate::Name;
use crate::collector::{Measured, Settled, Spread, Window};
use crate::controller::Controller;
use crate::controller::health::{CaptureHealth, ProbeHealth, TestEnd, TestHealth};
use crate::controller::probe_registry::RegisteredProbe;
use crate::controller::testing as sample;
use crate::task::{TaskRecord, Tasks};

/// The results of a second with `sent` packets, every tenth of which is lost.
fn second(number: i64, sent: u64) -> Measured {
    let spread = Spread {
        count: sent,
        min: 1_000_000,
        mean: 2_500_000.0,
        stddev: 0.0,
        p50: Some(2_000_000),
        p90: Some(3_000_000),
        p99: Some(4_000_000),
        p999: Some(5_000_000),
        max: 6_000_000,
    };
    let (lost, matched) = (sent / 10, sent - sent / 10);
    Measured {
        begin_ns: number * 1_000_000_000,
        counts: Counts { sent, received: matched, matched, lost, ..Counts::default() },
        delay_ns: Some(spread),
        error_ns: Some(250),
        mos: Some(4.25),
        ..Measured::default()
    }
}

/// Adds the results of a collector that returns at most `most` at a time.
fn catch_up(total: &mut Total, results: &[Measured], most: usize) {
    loop {
        let from = total.next.unwrap();
        let new: Vec<_> =
            results.iter().filter(|it| it.begin_ns >= from).take(most).cloned().collect();
        if new.is_empty() {
            return;
        }
        total.add(new, &CompactHistogram::default());
    }
}

/// The metrics of a task at this second.
fn shown(total: &Total, second: i64) -> String {
    let now = Timestamp::from_second(second).unwrap();
    text(|it| total.show(&name(), now, it))
}

fn text(show: impl FnOnce(&mut Families)) -> String {
    let mut families = Families::default();
    show(&mut families);
    families.text().unwrap()
}

fn name() -> Name {
    "path".parse().unwrap()
}

#[track_caller]
fn assert_has(text: &str, sample: &str) {
    assert!(text.lines().any(|line| line == sample), "{sample}: {text}");
}

#[test]
fn counters_start_at_zero_and_count_once() {
    let results: Vec<_> = (1..8).map(|number| second(number, 10)).collect();
    let mut total = Total::behind(Some(results[1].clone()));
    assert_has(&shown(&total, 8), r#"wirestamp_task_sent_packets_total{task="path"} 0"#);
    catch_up(&mut total, &results[..4], 1);
    catch_up(&mut total, &results[..4], 1);
    assert_eq!(total.counts[0], 20);
    catch_up(&mut total, &results, 2);
    let text = shown(&total, 8);
    assert_has(&text, r#"wirestamp_task_sent_packets_total{task="path"} 50"#);
    assert_has(&text, r#"wirestamp_task_lost_packets_total{task="path"} 5"#);
    assert_has(&text, r#"wirestamp_task_window_timestamp_seconds{task="path"} 7"#);
}

/// Stores the results of a second in which a packet was lost.
fn store(controller: &Controller, second: i64) {
    let (end, begin) =
        (SocketAddr::from(([192, 0, 2, 1], 5004)), Time::from_nanos(second * 1_000_000_000));
    let raw = RawStamp { domain: Domain::Realtime, value: 0 };
    let sent = Observation {
        id: PacketId(1),
        flow: FlowKey { source: end, destination: end, protocol: 17 },
        length: 100,
        stamp: Stamp { raw, utc: begin, error: Span::ZERO },
    };
    let mut quality = Quality::new();
    quality.record(&Outcome::Lost { sent, sequence: 0 });
    let window = Window { quality, offset: Ok(Span::ZERO), least: None, return_path: None };
    let windows = BTreeMap::from([(begin, window)]);
    let settled = Settled { windows, ..Settled::nothing(begin + Span::from_secs(1)) };
    controller.collector().results().store(1, &settled).unwrap();
}

/// Results that arrive before the first scrape count.
#[test]
fn counters_of_known_tasks_begin_when_the_controller_starts() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
    let controller = sample::open(folder.path(), &runtime);
    let task = r#"{"name":"path","measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0"}"#;
    sample::enter(&controller, task);
    let (sources, tasks) = (controller.sources(), controller.plan().subscribe().borrow().clone());
    store(&controller, 1);
    let (totals, mut families) = (Totals::new(&tasks), Families::default());
    runtime.block_on(totals.begin(&controller.plan().subscribe(), &sources));
    store(&controller, 2);
    store(&controller, 3);
    runtime.block_on(async {
        totals.catch_up(&tasks, &sources).await.unwrap();
        totals.show(&tasks, &mut families).await;
    });
    let lost = r#"wirestamp_task_lost_packets_total{task="path"} 2"#;
    assert_has(&families.text().unwrap(), lost);
}

#[test]
fn newest_window_is_exported_in_base_units() {
    let total = Total::behind(Some(second(7, 20)));
    let text = shown(&total, 8);
    for sample in [
        r#"mos{task="path"} 4.25"#,
        "window_sent_packets{task=\"path\"} 20",
        "window_lost_packets{task=\"path\"} 2",
        "loss_ratio{task=\"path\"} 0.1",
        "delay_min_seconds{task=\"path\"} 0.001",
        "delay_mean_seconds{task=\"path\"} 0.0025",
        "delay_p99_seconds{task=\"path\"} 0.004",
        "delay_error_seconds{task=\"path\"} 0.00000025",
        "clocks_contradicted{task=\"path\"} 0",
    ] {
        assert_has(&text, &format!("wirestamp_task_{sample}"));
    }
}

#[test]
fn gauges_are_absent_after_a_minute_without_packets() {
    let mut total = Total::behind(None);
    total.add(vec![second(7, 20)], &CompactHistogram::default());
    let gauge = "wirestamp_task_window_timestamp_seconds";
    assert!(shown(&total, 67).contains(gauge));
    let text = shown(&total, 68);
    assert!(!text.contains(gauge) && !text.contains("wirestamp_task_mos"), "{text}");
    assert_has(&text, r#"wirestamp_task_sent_packets_total{task="path"} 20"#);
    assert_has(&text, r#"wirestamp_task_delay_seconds_sum{task="path"} 0.05"#);
}

#[test]
fn every_delay_is_in_the_histogram() {
    let mut delays = Distribution::default();
    for nanos in [-5, 1_000_000, 1_150_000, 1_300_000, 20_000_000_000] {
        delays.record(Span::from_nanos(nanos));
    }
    let mut total = Total::behind(None);
    total.add(vec![second(7, 5)], &CompactHistogram::from(&delays));
    let text = shown(&total, 8);
    for sample in [
        r#"bucket{task="path",le="0"} 1"#,
        r#"bucket{task="path",le="0.00082"} 1"#,
        r#"bucket{task="path",le="0.0012"} 3"#,
        r#"bucket{task="path",le="0.0015"} 4"#,
        r#"bucket{task="path",le="10"} 4"#,
        r#"bucket{task="path",le="+Inf"} 5"#,
        r#"count{task="path"} 5"#,
    ] {
        assert_has(&text, &format!("wirestamp_task_delay_seconds_{sample}"));
    }
}

/// Unknown values are left out.
#[test]
fn unknown_values_are_not_exported() {
    let unknown = Measured { delay_ns: None, error_ns: None, ..second(7, 0) };
    let text = shown(&Total::behind(Some(unknown)), 8);
    assert!(!text.contains("wirestamp_task_delay_min") && !text.contains("loss_ratio"), "{text}");
}

#[test]
fn probe_is_exported_with_its_captures() {
    let health = ProbeHealth {
        version: "1".to_owned(),
        clock: "CLOCK_REALTIME".to_owned(),
        clock_error_ns: Some(1_500),
        processor_time_ns: 2_500_000_000,
        memory_bytes: 4096,
        held_bytes: 7,
        captures: vec![CaptureHealth { interface: "eth0@n".to_owned(), packets: 9, lost: 2 }],
        troubles: Vec::new(),
        clock_sources: Vec::new(),
        clock_offsets: Vec::new(),
        tests: vec![TestHealth {
            task: 3,
            end: TestEnd::Reflector,
            forged: 5,
            too_short: 4,
            answers: 6,
            limited: 7,
        }],
    };
    let at = Timestamp::from_second(100).unwrap();
    let mut attending = RegisteredProbe {
        address: ([127, 0, 0, 1], 1).into(),
        since: at,
        last_message: at,
        until: None,
        health: Some(health),
        refused: None,
        refused_at: None,
        refusals: 3,
        instance: 0,
    };
    let shown = text(|it| show_probe(&name(), &attending, it));
    for sample in [
        "up{probe=\"path\"} 1",
        "heard_timestamp_seconds{probe=\"path\"} 100",
        "refused_connections_total{probe=\"path\"} 3",
        "clock_synchronised{probe=\"path\"} 1",
        "clock_error_seconds{probe=\"path\"} 0.0000015",
        "cpu_seconds_total{probe=\"path\"} 2.5",
        "memory_bytes{probe=\"path\"} 4096",
        "held_bytes{probe=\"path\"} 7",
        "troubles{probe=\"path\"} 0",
        "capture_packets_total{probe=\"path\",interface=\"eth0@n\"} 9",
        "capture_lost_packets_total{probe=\"path\",interface=\"eth0@n\"} 2",
    ] {
        assert_has(&shown, &format!("wirestamp_probe_{sample}"));
    }
    let task = r#"{"name":"sealed","measure":"active-delay","from":"a","to":"b"}"#;
    let task = serde_json::from_str(task).unwrap();
    let tasks = Tasks::from([(3, TaskRecord { task, made: at, ended: None })]);
    let shown = text(|it| show_rejected(&name(), attending.health.as_ref().unwrap(), &tasks, it));
    for (why, count) in [("forged", 5), ("too_short", 4), ("answer", 6), ("limited", 7)] {
        let labels = format!(r#"probe="path",task="sealed",end="reflector",why="{why}""#);
        let sample = format!("wirestamp_probe_test_refused_packets_total{{{labels}}} {count}");
        assert_has(&shown, &sample);
    }
    // Its last report is kept.
    attending.until = Some(at);
    assert_eq!(attending.current_health(), None);
    let shown = text(|it| show_probe(&name(), &attending, it));
    assert_has(&shown, "wirestamp_probe_up{probe=\"path\"} 0");
    assert_has(&shown, "wirestamp_probe_heard_timestamp_seconds{probe=\"path\"} 100");
    assert!(!shown.contains("memory") && !shown.contains("synchronised"), "{shown}");
}

/// Prometheus times out after ten seconds.
#[test]
fn hanging_collector_does_not_block_other_tasks() {
    let (folder, runtime) = (tempfile::tempdir().unwrap(), Runtime::new().unwrap());
    let controller = sample::open(folder.path(), &runtime);
    for task in [
        r#"{"name":"silent","measure":"volume","at":"roof/eth0"}"#,
        r#"{"name":"path","measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0"}"#,
        r#"{"name":"load","measure":"volume","at":"roof/eth0"}"#,
        r#"{"name":"other","measure":"passive-delay","from":"roof/eth0","to":"cellar/eth0"}"#,
    ] {
        sample::enter(&controller, task);
    }
    let silent = [1, 2].map(|task| sample::hang(&controller, task));
    let page = controller.page().unwrap();
    sample::run(controller, &runtime);
    let began = Instant::now();
    let (status, text) = sample::get(page, "/metrics");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(status, "200", "{text}");
    assert_has(&text, r#"wirestamp_task_packets_total{task="load"} 0"#);
    assert_has(&text, r#"wirestamp_task_sent_packets_total{task="other"} 0"#);
    assert!(!text.contains(r#"packets_total{task="silent"}"#), "{text}");
    assert_has(&text, r#"wirestamp_probe_up{probe="roof"} 0"#);
    drop(silent);
}
