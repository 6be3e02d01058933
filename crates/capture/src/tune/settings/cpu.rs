//! Speed of a core when a packet arrives.

use std::collections::BTreeSet;

use super::super::goal::Goal;
use super::super::machine::Machine;
use super::super::place::Place;
use super::super::setting::Setting;
use super::super::softirq::Placement;

const AWAKE: &str = "a core that sleeps deeply wakes late (admin-guide/pm/cpuidle.rst, \
                     power/pm_qos_interface.rst)";
const FAST: &str = "a core that was slowed down is slow for the first packet \
                    (admin-guide/pm/cpufreq.rst)";

pub(super) fn settings(goal: &Goal, machine: &Machine, softirq: &Placement) -> Vec<Setting> {
    let here = machine.at(Place::CpuLatency);
    let awake = Setting::new("sleep of idle cores", here, "the kernel has no PM QoS", AWAKE);
    let mut settings = vec![awake.wanting(HELD)];
    settings.extend(used(goal, machine, softirq).into_iter().map(|core| {
        let here = machine.at(Place::governor(core));
        let name = format!("frequency governor of core {core}");
        Setting::new(name, here, "the machine does not scale frequencies", FAST)
            .wanting("performance")
    }));
    settings
}

/// 0 us: idle cores poll, which uses power.
const HELD: &str = "0 us while it captures";

/// The cores that process packets and stamps.
fn used(goal: &Goal, machine: &Machine, softirq: &Placement) -> BTreeSet<usize> {
    let mut cores = BTreeSet::from_iter(goal.cores());
    cores.extend(softirq.first(machine.vectors.len().max(machine.queues.len())));
    cores
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cores;
    use crate::tune::fake::{goal, machine};

    #[test]
    fn only_the_cores_in_use_are_kept_fast() {
        let mut machine = machine("eth0", 8).with(Place::CpuLatency, "not held");
        machine.vectors = vec![30, 31];
        for core in 0..8 {
            machine = machine.with(Place::governor(core), "powersave");
        }
        let cores = Cores { acquire: Some(7), convert: Some(6), consume: None };
        let goal = Goal { lanes: vec![cores], ..goal() };
        let settings = settings(&goal, &machine, &Placement::choose(&goal, &machine));
        let changed: Vec<_> = settings.iter().filter(|s| s.changes()).map(|s| &s.name).collect();
        let governor = |core: usize| format!("frequency governor of core {core}");
        let governors = [4, 5, 6, 7].map(governor);
        assert_eq!(changed[0], "sleep of idle cores");
        assert_eq!(changed[1..], governors.iter().collect::<Vec<_>>());
    }
}
