//! Merging of received packets (GRO, LRO).

use super::super::goal::Goal;
use super::super::machine::Machine;
use super::super::place::{Knob, Place};
use super::super::setting::Setting;

const WHY: &str = "merged packets differ in length and number from the wire, and have one stamp \
                   (ethtool(8), -K; segmentation-offloads.rst)";

pub(super) fn settings(goal: &Goal, machine: &Machine) -> Vec<Setting> {
    let row = |name, knob, absent| {
        let setting = Setting::new(name, machine.at(Place::Ethtool(knob)), absent, WHY);
        if goal.taken_before_gro && knob == Knob::Gro {
            setting.left("the method takes frames before they are merged")
        } else {
            setting.wanting("off")
        }
    };
    vec![
        row("joining by the kernel (GRO)", Knob::Gro, "the driver does not report it"),
        row("joining by the card (LRO)", Knob::Lro, "the driver does not report it"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tune::fake::{goal, machine};

    #[test]
    fn merging_is_disabled_unless_frames_are_taken_before() {
        let machine = machine("eth0", 4)
            .with(Place::Ethtool(Knob::Gro), "on")
            .with(Place::Ethtool(Knob::Lro), "off");
        let changes = |goal| settings(&goal, &machine).iter().map(Setting::changes).collect();
        let ring: Vec<_> = changes(goal());
        assert_eq!(ring, [true, false]);
        let xdp: Vec<_> = changes(Goal { taken_before_gro: true, ..goal() });
        assert_eq!(xdp, [false, false]);
    }
}
