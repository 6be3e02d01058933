//! Disruptions of the counter: by a suspend, or a migration to another host.

use wirestamp_clock::Span;

use super::{SECOND, SETTLING_TIME, Tallies, each_run};
use crate::machine::{Conditions, Event, Random};

/// Runs a disruption at some time, and lets the clock recover. The disruption is not visible until `anchors` anchors
/// are taken. Stamps from before the disruption were converted before it, and are not converted again.
fn assert_recovery(scenario: &str, anchors: usize, happens: impl Fn(&mut Random) -> Vec<Event>) {
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
            } else if truth.elapsed > SETTLING_TIME {
                tallies.live.add(&packet.live, truth);
            }
        }
        let last = run.packets.last().unwrap();
        assert!(last.live.error < Span::from_nanos(3_000), "seed {seed}: {:?}", last.live);
    });
    tallies.check();
    // The largest bound is that of a slow counter in coarse steps, after the first 200 us.
    tallies.live.assert_limits(40.0, 8_000);
    tallies.bracketed.assert_median(200);
}

#[test]
fn stamps_before_a_disruption_become_unbounded() {
    let conditions = |seed| Conditions::with(seed, [(3.0 * SECOND, Event::CounterJump(SECOND))]);
    each_run(4.0, conditions, |seed, run| {
        let before = |elapsed| elapsed < 3.0 * SECOND;
        for (packet, stamp) in run.converted().filter(|(packet, _)| before(packet.truth.elapsed)) {
            assert_eq!(stamp.error, Span::MAX, "seed {seed}: {:?}", packet.truth);
        }
    });
}

/// Counter and `CLOCK_MONOTONIC_RAW` stop, and UTC is set from another clock afterwards.
#[test]
fn suspend_that_stops_the_counter_is_a_step() {
    assert_recovery("suspend, counter stops", 1, |random| {
        vec![Event::Step(random.between(1.0, 3_600.0) * SECOND)]
    });
}

#[test]
fn suspend_that_resets_the_counter_is_a_disruption() {
    assert_recovery("suspend, counter starts again", 1, |random| {
        vec![Event::Step(random.between(1.0, 3_600.0) * SECOND), Event::CounterReset]
    });
}

/// Some TSCs keep running during a suspend (`nonstop_tsc_s3` of /proc/cpuinfo).
#[test]
fn suspend_with_running_counter_is_a_disruption() {
    assert_recovery("suspend, counter keeps running", 1, |random| {
        let asleep = random.between(1.0, 3_600.0) * SECOND;
        vec![Event::Step(asleep), Event::CounterJump(asleep)]
    });
}

/// The new host's counter has another value and another rate; the hypervisor keeps the system's clocks.
#[test]
fn migration_to_another_rate_is_a_disruption() {
    assert_recovery("migration", 1, |random| {
        let rate = random.magnitude(1.001, 4.0);
        let rate = if rate > 0.0 { rate } else { -1.0 / rate };
        vec![Event::CounterRate(rate), Event::CounterJump(random.magnitude(1e4, 60.0 * SECOND))]
    });
}

#[test]
fn migration_to_a_similar_rate_is_a_disruption() {
    assert_recovery("migration, rates differ by 12 to 1000 ppm", 2, |random| {
        vec![Event::CounterRate(1.0 + random.magnitude(12e-6, 1_000e-6))]
    });
}

/// Also by less than a sampling interval, so that the counter is ahead of the last anchor at the next one.
#[test]
fn counter_set_back_is_a_disruption() {
    assert_recovery("counter set back by 10 us to 1 min", 1, |random| {
        vec![Event::CounterJump(-random.magnitude(1e4, 60.0 * SECOND).abs())]
    });
}
