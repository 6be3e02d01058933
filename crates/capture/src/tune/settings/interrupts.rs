//! Cores of the card's interrupts, which are the cores of the softIRQ.

use super::super::machine::Machine;
use super::super::place::Place;
use super::super::setting::Setting;
use super::super::softirq::Placement;

const WHY: &str = "the softIRQ works on the core of its interrupt, best an otherwise idle one \
                   (Orosz & Skopko 2013, III.A; scaling.rst, RSS IRQ Configuration)";

pub(super) fn settings(machine: &Machine, softirq: &Placement) -> Vec<Setting> {
    if machine.vectors.is_empty() {
        let nowhere = (Place::Proc("irq".to_owned()), None);
        let absent = "the interface has no interrupts of its own (MSI)";
        return vec![Setting::new("cores of the interrupts", nowhere, absent, WHY)];
    }
    let row = |(index, &vector): (usize, &u32)| {
        let name = format!("core of interrupt {vector}");
        let here = machine.at(Place::vector(vector));
        let setting = Setting::new(name, here, "the interrupt is not in use", WHY);
        match softirq.core(index) {
            Some(core) => setting.wanting(core.to_string()),
            None => setting.left("there is only one core"),
        }
    };
    machine.vectors.iter().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::fake::machine;

    #[test]
    fn vectors_are_assigned_to_softirq_cores() {
        let mut machine = machine("eth0", 4);
        machine.vectors = vec![30, 31, 32];
        for vector in [30, 31, 32] {
            machine = machine.with(Place::vector(vector), "0-3");
        }
        let settings = settings(&machine, &Placement::Own(vec![1, 0]));
        let wanted: Vec<_> = settings.iter().map(|s| s.wanted.as_deref().unwrap()).collect();
        assert_eq!(wanted, ["1", "0", "1"]);
    }

    #[test]
    fn virtual_interface_and_single_core_have_obstacles() {
        let settings_of = |machine: &Machine| settings(machine, &Placement::Anywhere);
        assert!(settings_of(&machine("veth0", 1))[0].obstacle.is_some());
        let mut machine = machine("eth0", 1).with(Place::vector(30), "0");
        machine.vectors = vec![30];
        let obstacle = settings_of(&machine)[0].obstacle.clone();
        assert_eq!(obstacle.as_deref(), Some("there is only one core"));
    }
}
