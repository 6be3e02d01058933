//! Cores for the softIRQ.

use super::goal::Goal;
use super::machine::Machine;

/// Placement of the softIRQ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// On cores without a thread of the capture, the best first.
    Own(Vec<usize>),
    /// On a core with a thread of the capture, because no other is free.
    Shared(usize),
    /// On the only core.
    Anywhere,
}

impl Placement {
    /// Chooses an otherwise idle core, as in Orosz & Skopko 2013, section III.A: near the card if possible, and
    /// from the last, because most daemons run on the first.
    ///
    /// If no core is idle: with stamps taken in the softIRQ, it may share the acquisition thread's core, because
    /// that thread works only after the stamp; packets are then in that core's cache. A thread that takes the
    /// stamps itself, or never sleeps, must not be interrupted, so the converter's core is the next best.
    pub(super) fn choose(goal: &Goal, machine: &Machine) -> Self {
        if machine.cores.len() < 2 {
            return Self::Anywhere;
        }
        let taken = goal.cores();
        let own: Vec<_> =
            machine.cores.iter().rev().copied().filter(|core| !taken.contains(core)).collect();
        let near: Vec<_> = own.iter().copied().filter(|core| machine.near.contains(core)).collect();
        if !own.is_empty() {
            return Self::Own(if near.is_empty() { own } else { near });
        }
        let acquire = goal.lanes.first().and_then(|lane| lane.acquire);
        let acquires = |core| goal.lanes.iter().any(|lane| lane.acquire == Some(core));
        let other = taken.iter().copied().find(|&core| !acquires(core));
        match (acquire, other) {
            (Some(acquire), _) if goal.stamped_in_softirq && !goal.spins => Self::Shared(acquire),
            (_, Some(other)) => Self::Shared(other),
            _ => Self::Anywhere,
        }
    }

    /// The core for the `index`th interrupt, queue or thread: cores are assigned in turn.
    pub(super) fn core(&self, index: usize) -> Option<usize> {
        match self {
            Self::Own(cores) => cores.get(index % cores.len().max(1)).copied(),
            Self::Shared(core) => Some(*core),
            Self::Anywhere => None,
        }
    }

    /// The cores for `count` interrupts, queues or threads.
    pub(super) fn first(&self, count: usize) -> Vec<usize> {
        match self {
            Self::Own(cores) => cores.iter().copied().take(count.max(1)).collect(),
            Self::Shared(core) => vec![*core],
            Self::Anywhere => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cores;
    use crate::tune::fake::{goal, machine};

    fn placed(cores: usize, near: &[usize], stages: [usize; 2], goal: Goal) -> Placement {
        let cores_of = Cores { acquire: Some(stages[0]), convert: Some(stages[1]), consume: None };
        let machine =
            crate::tune::machine::Machine { near: near.to_vec(), ..machine("eth0", cores) };
        Placement::choose(&Goal { lanes: vec![cores_of], ..goal }, &machine)
    }

    #[test]
    fn idle_core_near_the_card_is_preferred() {
        assert_eq!(placed(4, &[], [3, 2], goal()), Placement::Own(vec![1, 0]));
        assert_eq!(placed(8, &[0, 1, 6, 7], [7, 6], goal()), Placement::Own(vec![1, 0]));
        assert_eq!(placed(8, &[6, 7], [7, 6], goal()), Placement::Own(vec![5, 4, 3, 2, 1, 0]));
    }

    #[test]
    fn without_idle_core_it_shares_the_least_disturbed() {
        let kernel = || Goal { stamped_in_softirq: true, ..goal() };
        let raw = Goal { stamped_in_softirq: false, ..goal() };
        assert_eq!(placed(2, &[], [1, 0], kernel()), Placement::Shared(1));
        assert_eq!(placed(2, &[], [1, 0], Goal { spins: true, ..kernel() }), Placement::Shared(0));
        assert_eq!(placed(2, &[], [1, 0], raw), Placement::Shared(0));
        assert_eq!(placed(1, &[], [0, 0], kernel()), Placement::Anywhere);
    }

    #[test]
    fn cores_are_assigned_in_turn() {
        let own = Placement::Own(vec![5, 4]);
        assert_eq!([0, 1, 2].map(|index| own.core(index)), [Some(5), Some(4), Some(5)]);
        assert_eq!(own.first(1), [5]);
        assert_eq!(own.first(9), [5, 4]);
    }
}
