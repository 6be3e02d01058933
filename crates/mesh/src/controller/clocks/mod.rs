//! The clocks of two probes, by exchanges of packets between them: a check of what each says of its own.

use std::collections::BTreeSet;

use serde::Serialize;
use tracing::warn;
use utoipa::ToSchema;
use wirestamp_active::sender::Exchange;
use wirestamp_clock::{Span, Time};
use wirestamp_results::Families;

use super::{Attendance, Health};
use crate::Name;
use crate::task::{Measure, Tasks};
use crate::v1;

/// How far the clock of the second probe of a task is ahead of the first one's.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ClockOffset {
    /// The number of the active test whose packets told it.
    pub task: u64,
    /// When, in nanoseconds since 1970 (UTC).
    pub at_ns: i64,
    /// How far it is ahead.
    pub ahead_ns: i64,
    /// How far that can be off: half of the round trip.
    pub bound_ns: u64,
    /// How far each of the two clocks claimed then to be from UTC at the most; none if it was not on UTC.
    pub claimed_ns: [Option<u64>; 2],
    /// Whether they are farther apart than that allows: then one of them is worse than it says.
    pub contradicts: bool,
}

impl From<&v1::ClockOffset> for ClockOffset {
    fn from(told: &v1::ClockOffset) -> Self {
        let v1::ClockOffset { task, at, ahead, bound, own_error, their_error } = *told;
        let span = |nanos: u64| i64::try_from(nanos).map_or(Span::MAX, Span::from_nanos);
        let exchange = Exchange {
            at: Time::from_nanos(at),
            ahead: Span::from_nanos(ahead),
            bound: span(bound),
            own: own_error.map(span),
            theirs: their_error.map(span),
        };
        Self {
            task,
            at_ns: at,
            ahead_ns: ahead,
            bound_ns: bound,
            claimed_ns: [own_error, their_error],
            contradicts: exchange.contradicts_the_clocks(),
        }
    }
}

impl ClockOffset {
    /// Seen from the other probe.
    fn turned(&self) -> Self {
        let [first, second] = self.claimed_ns;
        Self {
            ahead_ns: self.ahead_ns.saturating_neg(),
            claimed_ns: [second, first],
            ..self.clone()
        }
    }
}

/// What is known of the clocks of a task's two probes by the newest exchange between them, of whatever task.
pub(super) fn between(
    measure: &Measure,
    tasks: &Tasks,
    attendance: &Attendance,
) -> Option<ClockOffset> {
    let [first, second] = measure.probes()[..] else { return None };
    let all = attendance.all();
    let told = [(first, second), (second, first)].into_iter().flat_map(|(from, to)| {
        let there = all.get(from).filter(|it| it.until.is_none());
        let offsets = there.and_then(|it| it.health.as_ref()).map(|it| &it.clock_offsets[..]);
        let is_theirs = move |it: &&ClockOffset| others(it.task, from, tasks) == Some(to);
        let own = offsets.unwrap_or_default().iter().filter(is_theirs);
        own.map(move |it| if from == first { it.clone() } else { it.turned() })
    });
    told.max_by_key(|it| it.at_ns)
}

/// Who reflects the packets that a probe sends for a task.
fn others<'a>(task: u64, sender: &Name, tasks: &'a Tasks) -> Option<&'a Name> {
    let Measure::ActiveDelay(active) = &tasks.get(&task)?.task.measure else { return None };
    (active.from.probe == *sender).then_some(&active.to.probe)
}

/// Warns of clocks that are farther apart than they claim, when that begins.
pub(super) fn warn_of(probe: &Name, health: &Health, tasks: &Tasks, warned: &mut BTreeSet<u64>) {
    let wrong = health.clock_offsets.iter().filter(|it| it.contradicts);
    let now: BTreeSet<u64> = wrong.clone().map(|it| it.task).collect();
    for offset in wrong.filter(|it| !warned.contains(&it.task)) {
        if let Some(other) = others(offset.task, probe, tasks) {
            let nanos = |nanos: u64| i64::try_from(nanos).map_or(Span::MAX, Span::from_nanos);
            let claimed = offset.claimed_ns.map(|it| nanos(it.unwrap_or_default()));
            warn!(
                "the clocks of {probe} and {other} are apart by {}, within {}, although they claim {} and {}",
                Span::from_nanos(offset.ahead_ns).abs(),
                nanos(offset.bound_ns),
                claimed[0],
                claimed[1],
            );
        }
    }
    *warned = now;
}

/// Tells Prometheus.
pub(super) fn show(probe: &Name, health: &Health, tasks: &Tasks, families: &mut Families) {
    for offset in &health.clock_offsets {
        let Some(other) = others(offset.task, probe, tasks) else { continue };
        let Some(entered) = tasks.get(&offset.task) else { continue };
        let labels = [
            ("probe", probe.to_string()),
            ("other", other.to_string()),
            ("task", entered.task.name.to_string()),
        ];
        #[expect(clippy::cast_precision_loss, reason = "Prometheus has floats; exact to 2^53")]
        let [ahead, bound] = [offset.ahead_ns as f64, offset.bound_ns as f64];
        families.gauge(
            "wirestamp_probe_clock_offset_seconds",
            "How far the clock of the probe that reflects is ahead, by an exchange of packets.",
            &labels,
            ahead / 1e9,
        );
        families.gauge(
            "wirestamp_probe_clock_offset_error_seconds",
            "How far that can be off: half of the round trip.",
            &labels,
            bound / 1e9,
        );
        families.gauge(
            "wirestamp_probe_clocks_contradicted",
            "Whether the two clocks are farther apart than both claim.",
            &labels,
            f64::from(u8::from(offset.contradicts)),
        );
    }
}

#[cfg(test)]
mod tests;
