//! Tests: datagrams of exporters become results.

use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use crate::protocol::ipfix::{Export, Row, Value, element};
use jiff::Timestamp;
use tempfile::TempDir;
use tokio::sync::watch;
use wirestamp_clock::{Span, Time, Utc};

use super::*;
use crate::collector::{Collector, Measured, ResultRange, Results, Step};
use crate::task::{TaskRecord, Tasks};

const TASK: &str = r#"{"name":"core","measure":"passive-delay","from":"ipfix:192.0.2.1/3","to":"ipfix:192.0.2.2/3","clock_error":"1ms"}"#;

/// Delay of the packets.
const DELAY: Span = Span::from_millis(5);

/// A listener that receives datagrams from a test, and its results.
struct Site {
    _folder: TempDir,
    tasks: watch::Sender<Arc<Tasks>>,
    collector: Arc<Collector>,
    listener: Listener,
    exporters: [Export; 2],
}

fn tasks(ended: Option<Timestamp>) -> Arc<Tasks> {
    let task = serde_json::from_str(TASK).unwrap();
    let entered = TaskRecord { task, made: Timestamp::UNIX_EPOCH, ended };
    Arc::new(BTreeMap::from([(7, entered)]))
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

fn at(second: i64) -> Time<Utc> {
    Time::from_nanos(0) + Span::from_secs(second)
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (tasks, receiver) = watch::channel(tasks(None));
        let results = Results::open(&folder.path().join("results")).unwrap();
        let collector = Arc::new(Collector::new(results, receiver.clone()));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut listener = Listener::open(socket, Arc::clone(&collector), receiver).unwrap();
        listener.follow_tasks();
        let exporters = [Export::new(3, 1400), Export::new(3, 1400)];
        Self { _folder: folder, tasks, collector, listener, exporters }
    }

    /// Exporter `end` reports ten packets of a second of its clock, except `lost`.
    fn report(&mut self, end: u8, second: i64, (clock, lost): (i64, &[u32])) {
        let digest = u32::try_from(second % 100_000).unwrap() * 10;
        let delay = if end == 0 { Span::ZERO } else { DELAY };
        let passed = |nth: u32| at(second + clock - 1) + Span::from_millis(100 * i64::from(nth));
        let row = |nth: u32| {
            Row(vec![
                (element::OBSERVATION_TIME_NANOSECONDS, Value::Time(passed(nth) + delay)),
                (element::DIGEST_HASH_VALUE, Value::U32(digest + nth)),
            ])
        };
        let rows: Vec<_> = (0..10).filter(|nth| !lost.contains(nth)).map(row).collect();
        let template = rows[0].template(256, 0).unwrap().part();
        let parts: Vec<_> =
            [template].into_iter().chain(rows.iter().map(|row| row.part(256))).collect();
        let second = u32::try_from(second + clock).unwrap();
        let from = SocketAddr::from(([192, 0, 2, end + 1], 4739));
        for message in self.exporters[usize::from(end)].messages(second, &parts) {
            self.listener.take(&message, from);
        }
        self.listener.process();
    }

    fn results(&self) -> Vec<Measured> {
        let range = ResultRange { step: Step::AsMeasured, from: 0, until: i64::MAX, most: 99 };
        self.collector.measured(7, &range).unwrap()
    }

    fn sum(&self, of: impl Fn(&Measured) -> u64) -> u64 {
        self.results().iter().map(of).sum()
    }

    fn count(&self, what: &str) -> u64 {
        let counts = self.collector.exporter_stats().counts();
        counts.into_iter().find(|(name, _)| *name == what).unwrap().1
    }
}

#[test]
fn reports_are_settled_when_the_task_ends() {
    let mut site = Site::new();
    let begin = now() - 60;
    for second in begin..begin + 9 {
        site.report(0, second, (0, &[]));
        site.report(1, second, (0, &[4]));
    }
    // The other point is behind.
    site.report(0, begin + 9, (0, &[]));
    let before = site.sum(|it| it.counts.sent);
    assert!((10..80).contains(&before), "{before}");
    site.tasks.send_replace(tasks(Some(Timestamp::now())));
    site.listener.follow_tasks();
    let sums = |of: [fn(&Measured) -> u64; 4]| of.map(|of| site.sum(of));
    let [sent, matched, lost, undetermined] = sums([
        |it| it.counts.sent,
        |it| it.counts.matched,
        |it| it.counts.lost,
        |it| it.counts.undetermined_sent,
    ]);
    // The first and last packets are partly undetermined.
    assert_eq!([sent, matched, lost, undetermined], [100, 81, 4, 15]);
    site.listener.process();
    assert!(site.collector.settled_until(7).unwrap() >= at(now()));
    assert_eq!((site.count("packets-taken"), site.count("packets-given-up")), (181, 0));
}

#[test]
fn exporter_with_clock_set_back_continues() {
    let mut site = Site::new();
    let begin = now() - 60;
    for second in begin..begin + 6 {
        site.report(0, second, (50, &[]));
        site.report(1, second, (0, &[]));
    }
    assert_eq!(site.sum(|it| it.counts.matched), 0);
    for second in begin + 6..begin + 20 {
        site.report(0, second, (0, &[]));
        site.report(1, second, (0, &[]));
    }
    let matched = site.sum(|it| it.counts.matched);
    assert!(matched >= 50, "{matched}");
    assert_eq!(site.sum(|it| it.counts.lost + it.counts.unexpected), 0);
    let results = site.results();
    assert!(results.iter().all(|it| at(begin - 1).as_nanos() <= it.begin_ns));
    assert!(results.iter().all(|it| it.begin_ns < at(begin + 20).as_nanos()));
    let counted = ["clocks-set-back", "messages-ahead-of-time", "packets-out-of-time"];
    assert_eq!(counted.map(|what| site.count(what)), [1, 0, 0]);
    // Reports with the wrong time were taken or dropped.
    let all = site.count("packets-taken") + site.count("packets-given-up");
    assert!((360..400).contains(&all), "{all}");
}

/// Results that were settled with the wrong time stay.
#[test]
fn results_resume_when_correct_clocks_catch_up() {
    let mut site = Site::new();
    let begin = now() - 60;
    for (seconds, clock) in [(0..9, 20), (9..50, 0)] {
        for second in seconds {
            site.report(0, begin + second, (clock, &[]));
            site.report(1, begin + second, (clock, &[]));
        }
    }
    let results = site.results();
    let seconds: Vec<_> = results.iter().map(|it| it.begin_ns / 1_000_000_000 - begin).collect();
    assert!(seconds.is_sorted_by(|one, other| one < other), "{seconds:?}");
    assert!(seconds.iter().any(|it| *it < 25) && seconds.contains(&40), "{seconds:?}");
    assert_eq!(site.sum(|it| it.counts.lost + it.counts.unexpected), 0);
    assert_eq!(site.count("clocks-set-back"), 2);
    assert!(site.count("packets-out-of-time") > 0);
}

#[test]
fn messages_far_ahead_are_rejected_without_loss() {
    let mut site = Site::new();
    let begin = now() - 60;
    for second in 0..20 {
        let clock = if (6..10).contains(&second) { 200 } else { 0 };
        site.report(0, begin + second, (clock, &[]));
        site.report(1, begin + second, (0, &[]));
    }
    assert_eq!(site.sum(|it| it.counts.lost + it.counts.unexpected), 0);
    let [matched, undetermined] =
        [|it: &Measured| it.counts.matched, |it: &Measured| it.counts.undetermined_received]
            .map(|of| site.sum(of));
    assert!(matched >= 100 && undetermined == 40, "{matched} {undetermined}");
    let counted = ["clocks-set-back", "packets-given-up"];
    assert_eq!(counted.map(|what| site.count(what)), [0, 0]);
    assert!(site.count("messages-ahead-of-time") >= 4);
}
