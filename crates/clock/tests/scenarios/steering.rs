//! A time daemon steers the system clock by changing its rate.

use super::{SECOND, Tallies, each_run};
use crate::machine::{Conditions, Event, Random};

/// A change of rate by up to 1 ppm every few seconds, each of unprecedented size.
#[test]
fn live_bound_covers_ordinary_corrections() {
    let mut tallies = Tallies::new("corrections of up to 1 ppm");
    let conditions = |seed: u64| {
        let mut random = Random(!seed);
        let (mut at, mut slew) = (0.0, 0.0);
        let corrections = (0..10).map(|_| {
            at += random.between(1.0, 4.0) * SECOND;
            slew += random.around_zero(1e-6);
            (at, Event::Slew(slew))
        });
        Conditions::with(seed, corrections.collect::<Vec<_>>())
    };
    each_run(20.0, conditions, |_, run| tallies.count(run, 0));
    tallies.check();
    tallies.live.assert_limits(30.0, 1_000);
    tallies.bracketed.assert_limits(12.0, 1_000);
}

/// The clock is slewed by up to 50 ppm repeatedly. The first time it is unprecedented.
#[test]
fn live_bound_covers_repeated_slews() {
    let mut tallies = Tallies::new("slews of up to 50 ppm with a precedent");
    let conditions = |seed: u64| {
        let mut random = Random(!seed);
        let slew = random.around_zero(50e-6);
        let mut at = 2.0 * SECOND;
        let slews = [slew, 0.0].into_iter().cycle().take(6).map(|slew| {
            at += random.between(1.0, 2.0) * SECOND;
            (at, Event::Slew(slew))
        });
        Conditions::with(seed, slews.collect::<Vec<_>>())
    };
    each_run(15.0, conditions, |_, run| {
        // Three anchors after the first slew its size is known.
        let known_from = run.events().next().unwrap() + SECOND;
        for packet in run.packets.iter().filter(|packet| packet.truth.elapsed > known_from) {
            tallies.live.add(&packet.live, &packet.truth);
        }
        for (packet, stamp) in run.converted() {
            tallies.fresh.add(&packet.fresh, &packet.truth);
            tallies.bracketed.add(&stamp, &packet.truth);
        }
    });
    tallies.check();
    tallies.bracketed.assert_median(200);
}
