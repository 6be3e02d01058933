//! The counter is disrupted: by a suspend, or a migration to another host.

use wirestamp_clock::Span;

use super::{SECOND, SETTLED, Tallies, each_run};
use crate::machine::{Conditions, Event, Random};

/// Runs what happens at once, at some time, and lets the clock recover. Until so many `anchors` have
/// come, it is unseen. What was stamped before the disruption was converted before it, and is not
/// converted again.
fn the_clock_recovers(scenario: &str, anchors: usize, happens: impl Fn(&mut Random) -> Vec<Event>) {
    let mut tallies = Tallies::new(scenario);
    let conditions = |seed: u64| {
        let mut random = Random(!seed);
        let at = random.between(3.0, 5.0) * SECOND;
        let events: Vec<_> = happens(&mut random).into_iter().map(|event| (at, event)).collect();
        Conditions::with(seed, events)
    };
    each_run(9.0, conditions, |seed, run| {
        assert_eq!(run.timeline.steps(), 1, "seed {seed}");
        let at = run.events().next().unwrap();
        for (packet, stamp) in run.converted() {
            let truth = &packet.truth;
            if run.unseen(packet, anchors) {
                tallies.unseen.add(&packet.live, truth);
            } else if truth.elapsed > at {
                tallies.live.add(&packet.live, truth);
                tallies.fresh.add(&packet.fresh, truth);
                tallies.bracketed.add(&stamp, truth);
            } else if truth.elapsed > SETTLED {
                tallies.live.add(&packet.live, truth);
            }
        }
        let last = run.packets.last().unwrap();
        assert!(last.live.error < Span::from_nanos(3_000), "seed {seed}: {:?}", last.live);
    });
    tallies.check();
    // The widest is that of a slow counter in coarse steps, of which the first 200 us are known.
    tallies.live.assert_limits(40.0, 8_000);
    tallies.bracketed.assert_median(200);
}

/// What the history before is worth afterwards.
#[test]
fn stamps_from_before_a_disruption_are_unknown_after_it() {
    let conditions = |seed| Conditions::with(seed, [(3.0 * SECOND, Event::CounterJump(SECOND))]);
    each_run(4.0, conditions, |seed, run| {
        let before = |elapsed| elapsed < 3.0 * SECOND;
        for (packet, stamp) in run.converted().filter(|(packet, _)| before(packet.truth.elapsed)) {
            assert_eq!(stamp.error, Span::MAX, "seed {seed}: {:?}", packet.truth);
        }
    });
}

/// Counter and `CLOCK_MONOTONIC_RAW` stand still, and UTC is set from another clock afterwards.
#[test]
fn a_suspend_that_stops_the_counter_is_a_step() {
    the_clock_recovers("suspend, counter stops", 1, |random| {
        vec![Event::Step(random.between(1.0, 3_600.0) * SECOND)]
    });
}

#[test]
fn a_suspend_that_resets_the_counter_is_a_disruption() {
    the_clock_recovers("suspend, counter starts again", 1, |random| {
        vec![Event::Step(random.between(1.0, 3_600.0) * SECOND), Event::CounterReset]
    });
}

/// As TSCs that are non-stop in sleep do (the `nonstop_tsc_s3` of /proc/cpuinfo).
#[test]
fn a_suspend_in_which_the_counter_goes_on_is_a_disruption() {
    the_clock_recovers("suspend, counter goes on", 1, |random| {
        let asleep = random.between(1.0, 3_600.0) * SECOND;
        vec![Event::Step(asleep), Event::CounterJump(asleep)]
    });
}

/// To a host whose counter shows another value and runs at another rate; the hypervisor keeps the
/// system's clocks.
#[test]
fn a_migration_to_another_rate_is_a_disruption() {
    the_clock_recovers("migration", 1, |random| {
        let rate = random.magnitude(1.001, 4.0);
        let rate = if rate > 0.0 { rate } else { -1.0 / rate };
        vec![Event::CounterRate(rate), Event::CounterJump(random.magnitude(1e4, 60.0 * SECOND))]
    });
}

#[test]
fn a_migration_to_a_nearly_equal_rate_is_a_disruption() {
    the_clock_recovers("migration, rates differ by 12 to 1000 ppm", 2, |random| {
        vec![Event::CounterRate(1.0 + random.magnitude(12e-6, 1_000e-6))]
    });
}

/// By less than a sampling interval too, after which it is still ahead of the last anchor.
#[test]
fn a_counter_that_is_set_back_is_a_disruption() {
    the_clock_recovers("counter set back by 10 us to 1 min", 1, |random| {
        vec![Event::CounterJump(-random.magnitude(1e4, 60.0 * SECOND).abs())]
    });
}
