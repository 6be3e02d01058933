//! The cores on which the softIRQ shall work.

use super::goal::Goal;
use super::machine::Machine;

/// Where the softIRQ shall work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// On cores that no thread of the capture was given, the best first.
    Own(Vec<usize>),
    /// On a core that such a thread has too, for want of another.
    Shared(usize),
    /// There is only one core.
    Anywhere,
}

impl Placement {
    /// An otherwise idle core, as Orosz & Skopko 2013, section III.A, assign it; near the card if
    /// there is one, and from the last, because most daemons sit on the first.
    ///
    /// Without one, stamps of the softIRQ itself may share with the acquisition thread, which has
    /// nothing to do before they are taken; its packets are then in that core's cache. A thread
    /// that takes the stamps itself, or never sleeps, must not be interrupted, so that the
    /// converter's core is the next best.
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

    /// The core for the `index`th interrupt, queue or thread: they are dealt out in turn.
    pub(super) fn core(&self, index: usize) -> Option<usize> {
        match self {
            Self::Own(cores) => cores.get(index % cores.len().max(1)).copied(),
            Self::Shared(core) => Some(*core),
            Self::Anywhere => None,
        }
    }

    /// The cores for so many interrupts, queues or threads.
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
    fn a_core_that_nobody_has_is_taken_near_the_card_first() {
        assert_eq!(placed(4, &[], [3, 2], goal()), Placement::Own(vec![1, 0]));
        assert_eq!(placed(8, &[0, 1, 6, 7], [7, 6], goal()), Placement::Own(vec![1, 0]));
        assert_eq!(placed(8, &[6, 7], [7, 6], goal()), Placement::Own(vec![5, 4, 3, 2, 1, 0]));
    }

    #[test]
    fn for_want_of_one_it_shares_with_the_thread_that_it_disturbs_least() {
        let kernel = || Goal { stamped_in_softirq: true, ..goal() };
        let raw = Goal { stamped_in_softirq: false, ..goal() };
        assert_eq!(placed(2, &[], [1, 0], kernel()), Placement::Shared(1));
        assert_eq!(placed(2, &[], [1, 0], Goal { spins: true, ..kernel() }), Placement::Shared(0));
        assert_eq!(placed(2, &[], [1, 0], raw), Placement::Shared(0));
        assert_eq!(placed(1, &[], [0, 0], kernel()), Placement::Anywhere);
    }

    #[test]
    fn what_is_dealt_out_goes_round() {
        let own = Placement::Own(vec![5, 4]);
        assert_eq!([0, 1, 2].map(|index| own.core(index)), [Some(5), Some(4), Some(5)]);
        assert_eq!(own.first(1), [5]);
        assert_eq!(own.first(9), [5, 4]);
    }
}
