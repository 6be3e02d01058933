//! Synthetic machines for tests.

use super::goal::Goal;
use super::machine::Machine;
use super::place::Place;
use crate::Cores;

/// A machine with `cores` cores, and nothing else.
pub(super) fn machine(interface: &str, cores: usize) -> Machine {
    Machine { interface: interface.to_owned(), cores: (0..cores).collect(), ..Machine::default() }
}

impl Machine {
    /// Adds a setting.
    pub(super) fn with(mut self, place: Place, value: &str) -> Self {
        self.values.insert(place, value.to_owned());
        self
    }
}

/// A capture that reads the counter in its own thread, which sleeps.
pub(super) fn goal() -> Goal {
    Goal {
        lanes: vec![Cores::default()],
        stamped_in_softirq: false,
        taken_before_gro: false,
        spins: false,
        busy_polls: false,
        realtime: false,
    }
}
