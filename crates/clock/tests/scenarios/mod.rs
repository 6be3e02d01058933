//! Scenarios of the simulated machine, with the bounds that must hold.

mod anchor_file;
mod disruptions;
mod nic;
mod oscillator;
mod slews;
mod spans;
mod steering;
mod steps;

use crate::machine::{Conditions, Run, Tally, run};

/// Runs of each scenario, each with another machine.
const SEEDS: u64 = 1_000;

const SECOND: f64 = 1e9;

/// The live bounds of the first seconds, with few anchors before them, are counted separately.
const SETTLING_TIME: f64 = 2.0 * SECOND;

/// The tallies of a scenario.
struct Tallies {
    /// Converted at once.
    live: Tally,
    /// Converted at once, after an unprecedented event that too few anchors have shown yet: outside of the stated
    /// coverage.
    unseen: Tally,
    /// Converted again after one more anchor, in the newest segment.
    fresh: Tally,
    /// Converted again at the end, with anchors and segments on both sides.
    bracketed: Tally,
}

impl Tallies {
    fn new(scenario: &str) -> Self {
        let tally = |kind| Tally::new(&format!("{scenario}, {kind}"));
        Self {
            live: tally("live"),
            unseen: tally("live but unseen"),
            fresh: tally("just bracketed"),
            bracketed: tally("bracketed"),
        }
    }

    /// Counts the conversions of a run in which `anchors` anchors reveal an event.
    fn count(&mut self, run: &Run, anchors: usize) {
        for (packet, stamp) in run.converted() {
            let truth = &packet.truth;
            if run.unseen(packet, anchors) {
                self.unseen.add(&packet.live, truth);
            } else if truth.elapsed > SETTLING_TIME {
                self.live.add(&packet.live, truth);
            }
            self.fresh.add(&packet.fresh, truth);
            self.bracketed.add(&stamp, truth);
        }
    }

    /// Prints all lines, and asserts the coverage of all but the unseen conversions.
    fn check(&mut self) {
        self.unseen.report();
        for tally in [&mut self.live, &mut self.fresh, &mut self.bracketed] {
            tally.report().assert_coverage();
        }
    }
}

/// Runs a scenario with all seeds.
fn each_run(seconds: f64, conditions: impl Fn(u64) -> Conditions, mut with: impl FnMut(u64, &Run)) {
    for seed in 0..SEEDS {
        with(seed, &run(seed, seconds, conditions(seed)));
    }
}
