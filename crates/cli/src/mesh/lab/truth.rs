//! What is known of the run from elsewhere than the mesh, and whether its results agree.

use std::time::Duration;

use wirestamp_lab::Impairments;
use wirestamp_lab::results::Counts;
use wirestamp_report::Check;
use wirestamp_traffic::SinkReport;

use super::results::Results;
use super::traffic::{TASKS, Truth, full_queue};
use crate::output::time;

/// How much less than the full queue's the longest delay may be: packets do not fill the queue to the byte, and
/// the token bucket lets some leave at once.
const QUEUE_PERCENT: i64 = 10;

/// How long the first delay may take from when the nodes are started.
pub(super) const FIRST_DELAY: Duration = Duration::from_secs(60);

impl Truth {
    /// Sets the truth beside what the mesh measured.
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
                "sent, less the different ones that the receiving socket got",
            ),
            equal(
                "Packets that the bottleneck dropped",
                self.dropped,
                found.total(|it| it.lost),
                "the queue's own counter",
            ),
            equal(
                "Packets that arrived, were lost, or were given up",
                self.sent.sent(),
                found.total(|it| it.matched + it.lost + it.undetermined_sent),
                "the sender's count",
            ),
            equal(
                "Packets that came twice, from nowhere, or out of order",
                0,
                found.total(|it| it.duplicated + it.unexpected + it.identical + it.reordered),
                "the path does nothing of that",
            ),
            equal(
                "Seconds with a delay below zero by more than its error",
                0,
                found.tasks.iter().map(|task| task.contradictions).sum(),
                "no packet arrives before it was sent",
            ),
            self.sockets(),
        ];
        checks.extend(self.longest(found, path));
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
        let what = format!("{what}: {}", TASKS.map(|(name, _)| name).join(", "));
        compared(what, join(truth), join(measured), how)
    }

    fn sockets(&self) -> Check {
        let dropped = self.arrived.iter().map(|report| u64::from(report.dropped)).sum();
        let mut check = equal(
            "Packets that the receiving sockets dropped",
            0,
            dropped,
            "otherwise the counts above would be no truth",
        );
        check.holds &= self.arrived.iter().all(SinkReport::is_complete);
        check
    }

    /// Where the queue was full, a packet waited as long as that takes; longer, where the machine stood still.
    fn longest(&self, found: &Results, path: &Impairments) -> Option<Check> {
        let longest = found.tasks.iter().filter_map(|task| task.owd_ns).map(|it| it.max).max()?;
        if self.dropped == 0 {
            return None;
        }
        let full = full_queue(path).as_nanos();
        let least = full - full / 100 * QUEUE_PERCENT;
        Some(Check {
            what: "Longest delay".into(),
            truth: format!("{} or more", time(least)),
            measured: time(longest),
            within_percent: None,
            holds: longest >= least,
            how: format!("{} in the full queue; the machine may stand still besides", time(full)),
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
        how: "what a newcomer is promised".into(),
    }
}

fn equal(what: &str, truth: u64, measured: u64, how: &str) -> Check {
    compared(what.into(), truth.to_string(), measured.to_string(), how)
}

fn compared(what: String, truth: String, measured: String, how: &str) -> Check {
    let holds = truth == measured;
    let how = format!("{how}; equal to the packet");
    Check { what, truth, measured, within_percent: None, holds, how }
}

fn join(values: impl Iterator<Item = u64>) -> String {
    values.map(|it| it.to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use wirestamp_lab::results::Delay;
    use wirestamp_traffic::{SendReport, StreamReport, StreamTruth};

    use super::*;

    /// 10 packets of the call of which all arrived, 20 of the load of which 5 did not.
    fn truth() -> Truth {
        let sent = |id, sent| StreamReport { id, sent, ..StreamReport::default() };
        let arrived = |id, distinct| {
            let truth = StreamTruth { distinct, ..StreamTruth::default() };
            SinkReport { streams: [(id, truth)].into(), ..SinkReport::default() }
        };
        Truth {
            sent: SendReport { streams: vec![sent(1, 10), sent(2, 20)], ..SendReport::default() },
            arrived: vec![arrived(1, 10), arrived(2, 15)],
            dropped: 5,
        }
    }

    fn found() -> Results {
        let mut found = Results::new(0);
        for (task, (sent, lost)) in found.tasks.iter_mut().zip([(10, 0), (20, 5)]) {
            task.counts = Counts { sent, lost, matched: sent - lost, ..Counts::default() };
            task.owd_ns = Some(Delay { count: 1, min: 0, mean: 0.0, max: 41_000_000 });
        }
        found
    }

    #[test]
    fn what_agrees_holds_and_what_does_not_is_told() {
        let path = Impairments::bottleneck(10_000_000, 50_000);
        let failed = |found: &Results| -> Vec<String> {
            let checks = truth().checks(found, &path, Duration::from_secs(5));
            checks.into_iter().filter(|check| !check.holds).map(|check| check.what).collect()
        };
        assert_eq!(failed(&found()), [""; 0]);
        let mut other = found();
        other.tasks[0].counts.lost = 1;
        let said = failed(&other);
        assert_eq!(said.len(), 3, "{said:?}");
        other = found();
        for task in &mut other.tasks {
            task.owd_ns = task.owd_ns.map(|it| Delay { max: 35_000_000, ..it });
        }
        assert_eq!(failed(&other), ["Longest delay"]);
    }
}
