//! Receive packet steering: the kernel moves packets to another core's softIRQ.

use super::super::goal::Goal;
use super::super::machine::Machine;
use super::super::setting::Setting;
use super::super::softirq::Placement;

const WHY: &str = "the core whose softIRQ passes packets to the capture; without one, the \
                   driver's, without a hop to another (scaling.rst, RPS)";

pub(super) fn settings(goal: &Goal, machine: &Machine, softirq: &Placement) -> Vec<Setting> {
    let row = |(index, queue): (usize, &String)| {
        let name = format!("packet steering of {queue}");
        let here = machine.at(machine.steering(queue));
        let now = here.1.map(str::to_owned);
        let wanted = mask(steered_to(goal, machine, softirq, index));
        // The kernel prints more leading zeroes.
        let wanted = now.filter(|now| digits(now) == digits(&wanted)).unwrap_or(wanted);
        Setting::new(name, here, "the kernel has no RPS", WHY).wanting(wanted)
    };
    machine.queues.iter().enumerate().map(row).collect()
}

/// The core to steer packets of the `index`th queue to. A virtual interface's softIRQ runs on the sender's core, which
/// may be the stamping thread's, and the interface has no interrupt that could be moved. Stamps in the softIRQ are
/// taken before the move to another core, which then only costs time.
fn steered_to(goal: &Goal, machine: &Machine, softirq: &Placement, index: usize) -> Option<usize> {
    let is_virtual = machine.vectors.is_empty();
    softirq.core(index).filter(|_| is_virtual && !goal.stamped_in_softirq)
}

/// `core` as a bit mask in hexadecimal groups of 32 bits, the highest first.
fn mask(core: Option<usize>) -> String {
    let Some(core) = core else { return "0".to_owned() };
    let zeroes = ",00000000".repeat(core / 32);
    format!("{:x}{zeroes}", 1_u32 << (core % 32))
}

fn digits(mask: &str) -> &str {
    mask.trim_start_matches(['0', ','])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::fake::{goal, machine};

    fn wanted(goal: Goal, machine: &Machine) -> Vec<String> {
        let own = Placement::Own(vec![1]);
        settings(&goal, machine, &own).into_iter().map(|s| s.wanted.unwrap()).collect()
    }

    #[test]
    fn only_raw_stamps_on_virtual_interfaces_are_steered() {
        let mut machine = machine("veth0", 4);
        machine.queues = vec!["rx-0".into()];
        let steering = machine.steering("rx-0");
        machine = machine.with(steering, "00000000,00000000");
        let kernel = Goal { stamped_in_softirq: true, ..goal() };
        let raw = Goal { stamped_in_softirq: false, ..goal() };
        assert_eq!(wanted(raw.clone(), &machine), ["2"]);
        assert_eq!(wanted(kernel, &machine), ["00000000,00000000"], "as the kernel writes it");
        machine.vectors = vec![30];
        assert_eq!(wanted(raw, &machine), ["00000000,00000000"]);
    }

    #[test]
    fn masks_are_written_in_groups_of_32_bits() {
        assert_eq!(mask(Some(5)), "20");
        assert_eq!(mask(Some(31)), "80000000");
        assert_eq!(mask(Some(64)), "1,00000000,00000000");
        assert_eq!(digits("00000000,00000020"), "20");
    }
}
