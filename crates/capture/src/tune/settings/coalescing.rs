//! Interrupt coalescing: interrupts delayed by the card.

use super::super::machine::Machine;
use super::super::place::{Knob, Place};
use super::super::setting::Setting;

const WHY: &str = "the stamp waits as long as the interrupt is held back (ethtool(8), -C)";
const ABSENT: &str = "the driver has no interrupt coalescing";

pub(super) fn settings(machine: &Machine) -> Vec<Setting> {
    let row = |name, knob, value: &str| {
        Setting::new(name, machine.at(Place::Ethtool(knob)), ABSENT, WHY).wanting(value)
    };
    vec![
        // First, because the driver would otherwise continue to change the other.
        row("adaptive interrupt delay", Knob::AdaptiveRx, "off"),
        row("interrupt delay in us", Knob::RxUsecs, "0"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::fake::machine;

    #[test]
    fn driver_without_coalescing_is_reported() {
        let settings = settings(&machine("veth0", 2));
        assert!(settings.iter().all(|s| s.obstacle.as_deref() == Some(ABSENT) && !s.changes()));
    }

    #[test]
    fn interrupts_are_not_delayed() {
        let machine = machine("eth0", 2)
            .with(Place::Ethtool(Knob::AdaptiveRx), "on")
            .with(Place::Ethtool(Knob::RxUsecs), "50");
        let wanted: Vec<_> = settings(&machine).into_iter().map(|s| s.wanted.unwrap()).collect();
        assert_eq!(wanted, ["off", "0"]);
    }
}
