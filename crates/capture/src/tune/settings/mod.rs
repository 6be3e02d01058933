//! The settings, one file per subject: the intended value of each for a capture on a machine, and the reason.
//! Reading and writing is in `host`.

mod coalescing;
mod cpu;
mod interrupts;
mod joining;
mod napi;
mod steering;

use super::goal::Goal;
use super::machine::Machine;
use super::setting::Setting;
use super::softirq::Placement;

/// Every setting for a capture with this goal on this machine, in the order of changes.
pub(super) fn plan(goal: &Goal, machine: &Machine) -> Vec<Setting> {
    let softirq = Placement::choose(goal, machine);
    let mut settings = joining::settings(goal, machine);
    settings.extend(coalescing::settings(machine));
    settings.extend(interrupts::settings(machine, &softirq));
    settings.extend(steering::settings(goal, machine, &softirq));
    settings.extend(napi::settings(goal, machine, &softirq));
    settings.extend(cpu::settings(goal, machine, &softirq));
    settings
}
