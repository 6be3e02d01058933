//! Checks of the mesh's results against the reference counts.

use std::time::Duration;

use wirestamp_lab::Impairments;
use wirestamp_metrics::Counts;
use wirestamp_report::Check;
use wirestamp_traffic::SinkReport;

use super::results::Results;
use super::streams::full_queue;
use super::traffic::Reference;
use crate::output::time;

/// Tolerance of the max delay below that of the full queue, in percent: packets do not fill the queue to the byte,
/// and the token bucket sends some at once.
const QUEUE_TOLERANCE_PERCENT: i64 = 10;

/// Time limit from starting the nodes to the first delay.
pub(super) const FIRST_DELAY: Duration = Duration::from_secs(60);

impl Reference {
    /// Compares the reference with the mesh's results.
    pub(super) fn checks(
        &self,
        found: &Results,
        path: &Impairments,
        first_delay: Duration,
    ) -> Vec<Check> {
        let mut checks = vec![
            first(first_delay),
            self.per_task(
                "Packets sent",
                found,
                |sent, _| sent,
                |it| it.sent,
                "the sender's count",
            ),
            self.per_task(
                "Packets lost",
                found,
                u64::saturating_sub,
                |it| it.lost,
                "sent minus distinct packets received by the socket",
            ),
            equal(
                "Packets dropped by the bottleneck",
                self.dropped,
                found.total(|it| it.lost),
                "the queue's own counter",
            ),
            equal(
                "Packets arrived, lost, or undetermined",
                self.sent.sent(),
                found.total(|it| it.matched + it.lost + it.undetermined_sent),
                "the sender's count",
            ),
            equal(
                "Duplicate or unexpected packets",
                0,
                found.total(|it| it.duplicated + it.unexpected + it.identical),
                "the path causes none",
            ),
            self.reordered(found.total(|it| it.reordered)),
            equal(
                "Seconds with a delay negative by more than its error",
                0,
                found.tasks.iter().map(|task| task.contradictions).sum(),
                "no packet arrives before it was sent",
            ),
            self.sockets(),
        ];
        checks.extend(self.max_delay(found, path));
        checks
    }

    fn per_task(
        &self,
        what: &str,
        found: &Results,
        truth: impl Fn(u64, u64) -> u64,
        measured: impl Fn(&Counts) -> u64,
        how: &str,
    ) -> Check {
        let truth = self.sent.streams.iter().zip(&self.arrived).map(|(sent, arrived)| {
            let arrived = arrived.streams.get(&sent.id).copied().unwrap_or_default();
            truth(sent.sent, arrived.distinct)
        });
        let measured = found.tasks.iter().map(|task| measured(&task.counts));
        let names = found.tasks.iter().map(|task| task.name.clone());
        let what = format!("{what}: {}", join(names));
        Check::exact(what, join(truth), join(measured), format!("{how}; exact"))
    }

    /// The path keeps the order, but a sender that moves to another core does not: its packets wait on two cores then.
    /// Packets that overtook each other before the first point count at the socket only.
    fn reordered(&self, measured: u64) -> Check {
        let streams = self.arrived.iter().flat_map(|report| report.streams.values());
        let most: u64 = streams.map(|stream| stream.reordered).sum();
        Check {
            what: "Reordered packets".into(),
            truth: if most == 0 { "0".into() } else { format!("at most {most}") },
            measured: measured.to_string(),
            within_percent: None,
            holds: measured <= most,
            how: "reordered packets at the receiving sockets".into(),
        }
    }

    fn sockets(&self) -> Check {
        let dropped = self.arrived.iter().map(|report| u64::from(report.dropped)).sum();
        let mut check = equal(
            "Packets dropped by the receiving sockets",
            0,
            dropped,
            "required for the reference counts above",
        );
        check.holds &= self.arrived.iter().all(SinkReport::is_complete);
        check
    }

    /// If the queue was full, the max delay is at least its delay; longer if the machine stalled.
    fn max_delay(&self, found: &Results, path: &Impairments) -> Option<Check> {
        let longest = found.tasks.iter().filter_map(|task| task.owd_ns).map(|it| it.max).max()?;
        if self.dropped == 0 {
            return None;
        }
        let full = full_queue(path).as_nanos();
        let min = full - full / 100 * QUEUE_TOLERANCE_PERCENT;
        Some(Check {
            what: "Max delay".into(),
            truth: format!("{} or more", time(min)),
            measured: time(longest),
            within_percent: None,
            holds: longest >= min,
            how: format!("{} in the full queue, more if the machine stalls", time(full)),
        })
    }
}

fn first(first_delay: Duration) -> Check {
    Check {
        what: "Time from starting the nodes to the first delay".into(),
        truth: format!("at most {} s", FIRST_DELAY.as_secs()),
        measured: format!("{:.1} s", first_delay.as_secs_f64()),
        within_percent: None,
        holds: first_delay <= FIRST_DELAY,
        how: "documented limit".into(),
    }
}

fn equal(what: &str, truth: u64, measured: u64, how: &str) -> Check {
    Check::exact(what, truth.to_string(), measured.to_string(), format!("{how}; exact"))
}

fn join(values: impl Iterator<Item = impl ToString>) -> String {
    values.map(|it| it.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use wirestamp_lab::results::Delay;
    use wirestamp_traffic::{SendReport, StreamArrivals, StreamReport};

    use super::super::streams::{Load, tasks};
    use super::*;

    /// 10 packets of the call, all arrived; 20 of the load, 5 lost.
    fn truth() -> Reference {
        let sent = |id, sent| StreamReport { id, sent, ..StreamReport::default() };
        let arrived = |id, distinct| {
            let truth = StreamArrivals { distinct, ..StreamArrivals::default() };
            SinkReport { streams: [(id, truth)].into(), ..SinkReport::default() }
        };
        Reference {
            sent: SendReport { streams: vec![sent(1, 10), sent(2, 20)], ..SendReport::default() },
            arrived: vec![arrived(1, 10), arrived(2, 15)],
            dropped: 5,
        }
    }

    fn found() -> Results {
        let path = Impairments::bottleneck(10_000_000, 50_000);
        let mut found = Results::new(&tasks(&path, Load::Bursts).unwrap(), 0);
        for (task, (sent, lost)) in found.tasks.iter_mut().zip([(10, 0), (20, 5)]) {
            task.counts = Counts { sent, lost, matched: sent - lost, ..Counts::default() };
            task.owd_ns = Some(Delay { count: 1, min: 0, mean: 0.0, max: 41_000_000 });
        }
        found
    }

    #[test]
    fn failed_checks_are_named() {
        let path = Impairments::bottleneck(10_000_000, 50_000);
        let failed = |found: &Results| -> Vec<String> {
            let checks = truth().checks(found, &path, Duration::from_secs(5));
            checks.into_iter().filter(|check| !check.holds).map(|check| check.what).collect()
        };
        assert_eq!(failed(&found()), [""; 0]);
        let mut other = found();
        other.tasks[0].counts.lost = 1;
        let names = failed(&other);
        assert_eq!(names.len(), 3, "{names:?}");
        other = found();
        other.tasks[1].counts.reordered = 1;
        assert_eq!(failed(&other), ["Reordered packets"]);
        other = found();
        for task in &mut other.tasks {
            task.owd_ns = task.owd_ns.map(|it| Delay { max: 35_000_000, ..it });
        }
        assert_eq!(failed(&other), ["Max delay"]);
    }
}
