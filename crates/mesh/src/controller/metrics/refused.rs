//! What ends of active tests have refused.

use wirestamp_results::Families;

use crate::Name;
use crate::controller::{Health, TestEnd};
use crate::task::Tasks;

/// Shows it for each end of a probe.
pub(super) fn show(probe: &Name, health: &Health, tasks: &Tasks, families: &mut Families) {
    for test in &health.tests {
        let Some(entered) = tasks.get(&test.task) else { continue };
        let end = match test.end {
            TestEnd::Sender => "sender",
            TestEnd::Reflector => "reflector",
        };
        for (why, count) in [("forged", test.forged), ("too_short", test.too_short)] {
            families.counter(
                "wirestamp_probe_test_refused_packets_total",
                "Datagrams that an end of an active test refused since it was started, and why.",
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
