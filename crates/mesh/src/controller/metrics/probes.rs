//! Metrics of probes, from their reports.

use wirestamp_results::{Families, Labels};

use super::values::{float, seconds_of, truth};
use crate::Name;
use crate::controller::health::{ProbeHealth, TestEnd};
use crate::controller::probe_registry::RegisteredProbe;
use crate::task::Tasks;

pub(super) fn show_probe(name: &Name, attending: &RegisteredProbe, families: &mut Families) {
    let labels = [("probe", name.to_string())];
    let RegisteredProbe { last_message, until, health, .. } = attending;
    families.gauge(
        "wirestamp_probe_up",
        "Whether the probe is connected to the controller.",
        &labels,
        truth(until.is_none()),
    );
    families.gauge(
        "wirestamp_probe_heard_timestamp_seconds",
        "When the last report of the probe arrived.",
        &labels,
        seconds_of(*last_message),
    );
    if let Some(health) = health {
        show_health(name, health, &labels, families);
    }
}

fn show_health(name: &Name, health: &ProbeHealth, labels: &Labels, families: &mut Families) {
    let ProbeHealth { version, clock, .. } = health;
    let info =
        [("probe", name.to_string()), ("version", version.clone()), ("clock", clock.clone())];
    families.info("wirestamp_probe_info", "Version of the probe and clock of its stamps.", &info);
    families.gauge(
        "wirestamp_probe_clock_synchronised",
        "Whether the probe's system clock is synchronised to UTC.",
        labels,
        truth(health.clock_error_ns.is_some()),
    );
    if let Some(error) = health.clock_error_ns {
        families.gauge(
            "wirestamp_probe_clock_error_seconds",
            "Max error of the probe's system clock against UTC.",
            labels,
            float(error) / 1e9,
        );
    }
    families.seconds_total(
        "wirestamp_probe_cpu_seconds_total",
        "Processor time used by the probe.",
        labels,
        health.processor_time_ns,
    );
    families.gauge(
        "wirestamp_probe_memory_bytes",
        "Memory used by the probe.",
        labels,
        float(health.memory_bytes),
    );
    families.gauge(
        "wirestamp_probe_held_bytes",
        "Size of the probe's spool.",
        labels,
        float(health.held_bytes),
    );
    families.gauge(
        "wirestamp_probe_troubles",
        "Tasks that the probe cannot measure.",
        labels,
        float(health.troubles.len() as u64),
    );
    for capture in &health.captures {
        let labels = [("probe", name.to_string()), ("interface", capture.interface.clone())];
        families.counter(
            "wirestamp_probe_capture_packets_total",
            "Packets received by a capture since its start.",
            &labels,
            capture.packets,
        );
        families.counter(
            "wirestamp_probe_capture_lost_packets_total",
            "Packets of a capture lost before they reached a task.",
            &labels,
            capture.lost,
        );
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
        for (why, count) in [("forged", test.forged), ("too_short", test.too_short)] {
            families.counter(
                "wirestamp_probe_test_refused_packets_total",
                "Datagrams rejected by an end of an active test since its start, by reason.",
                &[
                    ("probe", probe.to_string()),
                    ("task", entered.task.name.to_string()),
                    ("end", end.to_owned()),
                    ("why", why.to_owned()),
                ],
                count,
            );
        }
    }
}
