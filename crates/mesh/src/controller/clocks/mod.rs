//! Clock offsets of two probes from their test packets: a check of the errors that they state.

use std::collections::BTreeSet;

use tracing::warn;
use wirestamp_clock::Span;
use wirestamp_metrics::numeric::count_to_f64;
use wirestamp_results::{Families, seconds};

use super::health::{ClockOffset, ProbeHealth};
use super::probe_registry::ProbeRegistry;
use crate::Name;
use crate::task::{Measure, Tasks};

/// Clock offset of a task's two probes, by the newest exchange between them of any task.
pub(super) fn between(
    measure: &Measure,
    tasks: &Tasks,
    probes: &ProbeRegistry,
) -> Option<ClockOffset> {
    let [first, second] = measure.probes()[..] else { return None };
    let all = probes.all();
    let last = [(first, second), (second, first)].into_iter().flat_map(|(from, to)| {
        let there = all.get(from).filter(|it| it.until.is_none());
        let offsets = there.and_then(|it| it.health.as_ref()).map(|it| &it.clock_offsets[..]);
        let is_theirs = move |it: &&ClockOffset| others(it.task, from, tasks) == Some(to);
        let own = offsets.unwrap_or_default().iter().filter(is_theirs);
        own.map(move |it| if from == first { it.clone() } else { it.turned() })
    });
    last.max_by_key(|it| it.at_ns)
}

/// The probe that reflects the packets of `sender` in a task.
fn others<'a>(task: u64, sender: &Name, tasks: &'a Tasks) -> Option<&'a Name> {
    let Measure::ActiveDelay(active) = &tasks.get(&task)?.task.measure else { return None };
    (active.from.probe == *sender).then_some(&active.to.probe)
}

/// Warns, once, when clocks are further apart than stated.
pub(super) fn warn_of(
    probe: &Name,
    health: &ProbeHealth,
    tasks: &Tasks,
    warned: &mut BTreeSet<u64>,
) {
    let wrong = health.clock_offsets.iter().filter(|it| it.contradicts);
    let now: BTreeSet<u64> = wrong.clone().map(|it| it.task).collect();
    for offset in wrong.filter(|it| !warned.contains(&it.task)) {
        if let Some(other) = others(offset.task, probe, tasks) {
            let nanos = |nanos: u64| i64::try_from(nanos).map_or(Span::MAX, Span::from_nanos);
            let claimed = offset.claimed_ns.map(|it| nanos(it.unwrap_or_default()));
            warn!(
                "the clocks of {probe} and {other} differ by {} ± {}, but they state errors of {} and {}",
                Span::from_nanos(offset.ahead_ns).abs(),
                nanos(offset.bound_ns),
                claimed[0],
                claimed[1],
            );
        }
    }
    *warned = now;
}

/// Shows the offsets to Prometheus.
pub(super) fn show(probe: &Name, health: &ProbeHealth, tasks: &Tasks, families: &mut Families) {
    for offset in &health.clock_offsets {
        let Some(other) = others(offset.task, probe, tasks) else { continue };
        let Some(entered) = tasks.get(&offset.task) else { continue };
        let labels = [
            ("probe", probe.to_string()),
            ("other", other.to_string()),
            ("task", entered.task.name.to_string()),
        ];
        let (ahead, bound) = (seconds(offset.ahead_ns), count_to_f64(offset.bound_ns) / 1e9);
        families.add("wirestamp_probe_clock_offset_seconds", &labels, ahead);
        families.add("wirestamp_probe_clock_offset_error_seconds", &labels, bound);
        families.add("wirestamp_probe_clocks_contradicted", &labels, offset.contradicts);
    }
}

#[cfg(test)]
mod tests;
