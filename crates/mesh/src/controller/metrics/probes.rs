//! Metrics of probes, from their reports.

use wirestamp_metrics::numeric::count_to_f64;
use wirestamp_results::{Families, Labels};

use crate::Name;
use crate::controller::health::{ProbeHealth, TestEnd};
use crate::controller::probe_registry::RegisteredProbe;
use crate::task::Tasks;

pub(super) fn show_probe(name: &Name, attending: &RegisteredProbe, families: &mut Families) {
    let labels = [("probe", name.to_string())];
    let RegisteredProbe { last_message, until, refusals, .. } = attending;
    families.add("wirestamp_probe_up", &labels, until.is_none());
    families.add(
        "wirestamp_probe_heard_timestamp_seconds",
        &labels,
        last_message.as_duration().as_secs_f64(),
    );
    families.add("wirestamp_probe_refused_connections_total", &labels, *refusals);
    if let Some(health) = attending.current_health() {
        show_health(name, health, &labels, families);
    }
}

fn show_health(name: &Name, health: &ProbeHealth, labels: &Labels, families: &mut Families) {
    let ProbeHealth { version, clock, .. } = health;
    let info =
        [("probe", name.to_string()), ("version", version.clone()), ("clock", clock.clone())];
    families.info("wirestamp_probe_info", &info);
    families.add("wirestamp_probe_clock_synchronised", labels, health.clock_error_ns.is_some());
    if let Some(error) = health.clock_error_ns {
        families.add("wirestamp_probe_clock_error_seconds", labels, count_to_f64(error) / 1e9);
    }
    let cpu_time = count_to_f64(health.processor_time_ns) / 1e9;
    families.add("wirestamp_probe_cpu_seconds_total", labels, cpu_time);
    families.add("wirestamp_probe_memory_bytes", labels, health.memory_bytes);
    families.add("wirestamp_probe_held_bytes", labels, health.held_bytes);
    families.add("wirestamp_probe_troubles", labels, health.troubles.len() as u64);
    for capture in &health.captures {
        let labels = [("probe", name.to_string()), ("interface", capture.interface.clone())];
        families.add("wirestamp_probe_capture_packets_total", &labels, capture.packets);
        families.add("wirestamp_probe_capture_lost_packets_total", &labels, capture.lost);
    }
}

/// Shows the counts of each test end of a probe.
pub(super) fn show_rejected(
    probe: &Name,
    health: &ProbeHealth,
    tasks: &Tasks,
    families: &mut Families,
) {
    for test in &health.tests {
        let Some(entered) = tasks.get(&test.task) else { continue };
        let end = match test.end {
            TestEnd::Sender => "sender",
            TestEnd::Reflector => "reflector",
        };
        let counts = [
            ("forged", test.forged),
            ("too_short", test.too_short),
            ("answer", test.answers),
            ("limited", test.limited),
        ];
        for (why, count) in counts {
            let labels = [
                ("probe", probe.to_string()),
                ("task", entered.task.name.to_string()),
                ("end", end.to_owned()),
                ("why", why.to_owned()),
            ];
            families.add("wirestamp_probe_test_refused_packets_total", &labels, count);
        }
    }
}
