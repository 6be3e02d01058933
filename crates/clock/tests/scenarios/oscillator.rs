//! A wandering oscillator and disturbed reads, without events.

use super::{SECOND, SETTLING_TIME, Tallies, each_run};
use crate::machine::{Conditions, Tally};

#[test]
fn wandering_oscillator_is_followed() {
    let mut tallies = Tallies::new("wander");
    each_run(12.0, Conditions::usual, |_, run| tallies.count(run, 0));
    tallies.check();
    tallies.live.assert_limits(20.0, 800);
    tallies.bracketed.assert_limits(12.0, 800);
}

#[test]
fn warming_oscillator_is_followed() {
    let mut tallies = Tallies::new("wander of 0.2 ppm in a second");
    let conditions = |seed| Conditions { wander: 10e-9, ..Conditions::usual(seed) };
    each_run(12.0, conditions, |_, run| tallies.count(run, 0));
    tallies.check();
    tallies.live.assert_limits(25.0, 800);
    tallies.bracketed.assert_limits(12.0, 800);
}

/// Hardly one joint read in thirty is clean, so that one anchor in three is off by microseconds.
#[test]
fn preempted_reads_widen_the_bound() {
    let mut tallies = Tallies::new("preempted reads");
    let conditions =
        |seed| Conditions { interrupted: 0.3, interruption: 1e6, ..Conditions::usual(seed) };
    each_run(12.0, conditions, |_, run| tallies.count(run, 0));
    tallies.check();
    tallies.live.assert_limits(200e3, 2_000_000);
    tallies.bracketed.assert_limits(100e3, 2_500_000);
}

#[test]
fn bound_holds_and_shrinks_from_the_start() {
    let edges = [0.0, 1e-3, 10e-3, 100e-3, 1.0, SETTLING_TIME / SECOND];
    let mut tallies: Vec<Tally> = edges
        .windows(2)
        .map(|edge| Tally::new(&format!("start, live from {} s to {} s", edge[0], edge[1])))
        .collect();
    each_run(2.1, Conditions::usual, |_, run| {
        for packet in &run.packets {
            let since_start = (packet.truth.elapsed - run.start.elapsed) / SECOND;
            let window = edges.partition_point(|&edge| edge <= since_start);
            if let Some(tally) = tallies.get_mut(window - 1) {
                tally.add(&packet.live, &packet.truth);
            }
        }
    });
    let limits = [(600, 3_000), (300, 3_000), (300, 2_500), (300, 2_500), (300, 700)];
    for (tally, (median, widest)) in tallies.iter_mut().zip(limits) {
        tally.report().assert_coverage().assert_limits(60.0, widest).assert_median(median);
    }
}
