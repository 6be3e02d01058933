//! A network card's clock, which is slow to read, and slewed and stepped as the system clock is.

use super::{SECOND, Tallies, each_run};
use crate::machine::{Conditions, Event, Random};

/// A daemon slews the card's clock for some seconds, and reverts it.
fn slewed(seed: u64, largest: f64) -> Conditions {
    let mut random = Random(!seed);
    let factor = 1.0 + random.magnitude(0.5e-6, largest);
    let from = random.between(2.0, 3.0) * SECOND;
    let until = from + random.between(1.0, 6.0) * SECOND;
    let events = [(from, Event::CounterRate(factor)), (until, Event::CounterRate(1.0 / factor))];
    Conditions::nic(seed, events)
}

#[test]
fn free_running_nic_clock_is_within_its_reads() {
    let mut tallies = Tallies::new("card's clock");
    each_run(
        12.0,
        |seed| Conditions::nic(seed, []),
        |seed, run| {
            tallies.count(run, 2);
            assert_eq!(run.timeline.steps(), 0, "seed {seed}");
        },
    );
    tallies.check();
    tallies.live.assert_median(5_000);
    tallies.bracketed.assert_median(5_000);
}

#[test]
fn nic_clock_slew_is_no_disruption() {
    let mut tallies = Tallies::new("card's clock slewed by up to 100 ppm");
    each_run(
        12.0,
        |seed| slewed(seed, 100e-6),
        |seed, run| {
            tallies.count(run, 2);
            assert_eq!(run.timeline.steps(), 0, "seed {seed}: a slew is no step");
        },
    );
    tallies.check();
    tallies.bracketed.assert_median(5_000);
}

/// As ptp4l does at its start, when the card still has an old time or none.
#[test]
fn nic_clock_step_is_counted_and_keeps_times() {
    let mut tallies = Tallies::new("card's clock stepped forward");
    let conditions = |seed: u64| {
        let mut random = Random(!seed);
        let step = Event::CounterJump(random.magnitude(1e6, 1e15).abs());
        Conditions::nic(seed, [(random.between(2.0, 4.0) * SECOND, step)])
    };
    each_run(6.0, conditions, |seed, run| {
        tallies.count(run, 1);
        assert_eq!(run.timeline.steps(), 1, "seed {seed}");
    });
    tallies.check();
    tallies.bracketed.assert_median(5_000);
}

/// Values repeat, and stamps from before the step become unknown.
#[test]
fn nic_clock_set_back_restarts_the_calibration() {
    let mut tallies = Tallies::new("card's clock set back");
    let conditions = |seed: u64| {
        let mut random = Random(!seed);
        let step = Event::CounterJump(-random.magnitude(1e9, 1e14).abs());
        Conditions::nic(seed, [(random.between(2.0, 4.0) * SECOND, step)])
    };
    each_run(6.0, conditions, |seed, run| {
        let stepped = run.events().next().unwrap();
        assert_eq!(run.timeline.steps(), 1, "seed {seed}");
        for (packet, stamp) in run.converted().filter(|(p, _)| !run.unseen(p, 1)) {
            if packet.truth.elapsed > stepped {
                tallies.bracketed.add(&stamp, &packet.truth);
            }
        }
    });
    tallies.bracketed.report().assert_coverage().assert_median(5_000);
}

#[test]
fn system_clock_slews_and_steps_are_followed() {
    let mut tallies = Tallies::new("card's clock beside a slewed and stepped system clock");
    let conditions = |seed: u64| {
        let mut random = Random(!seed);
        let slew = Event::Slew(random.magnitude(0.5e-6, 100e-6));
        let step = Event::Step(random.magnitude(1e6, 1e15));
        let from = random.between(2.0, 3.0) * SECOND;
        Conditions::nic(seed, [(from, slew), (from + 3.0 * SECOND, step)])
    };
    each_run(9.0, conditions, |seed, run| {
        tallies.count(run, 2);
        assert_eq!(run.timeline.steps(), 1, "seed {seed}");
    });
    tallies.check();
}
