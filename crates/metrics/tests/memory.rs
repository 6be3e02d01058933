//! Memory stays within its bound, with more packets under way than fit.

mod peak;
mod traffic;

use peak::peak_of;
use traffic::Traffic;
use wirestamp_clock::Span;
use wirestamp_metrics::{Config, Correlator, Missed, Outcome, Reason};

const MEMORY: usize = 8 << 20;
const PACKETS: u64 = 1_000_000;

/// The peak of a correlator's memory as a share of its bound, and how many packets were given up.
fn run(traffic: Traffic, memory: usize, missing: bool) -> (f64, u64) {
    let config = Config { timeout: Span::from_secs(3600), memory, ..Config::default() };
    let mut given_up = 0;
    let mut seen = Vec::with_capacity(4);
    let peak = peak_of(|| {
        let mut sink = |outcome| {
            given_up +=
                u64::from(matches!(outcome, Outcome::GivenUp { reason: Reason::Memory, .. }));
        };
        let mut correlator = Correlator::new(config);
        for number in 0..PACKETS {
            traffic.step(number, &mut seen);
            for (point, observation) in seen.drain(..) {
                if missing && number.is_multiple_of(100) {
                    let at = observation.stamp.utc;
                    correlator.missed(point, Missed { from: at, until: at, packets: 1 });
                }
                correlator.observe(point, observation, &mut sink);
            }
        }
        correlator.finish(&mut sink);
    });
    #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
    let share = peak as f64 / memory as f64;
    (share, given_up)
}

/// No packet arrives before the memory is full.
const NONE_ARRIVES: Traffic = Traffic { under_way: u64::MAX, flows: 1, random_flows: false };

#[test]
fn packets_under_way_take_what_is_allowed_and_no_more() {
    for (traffic, least) in [
        (NONE_ARRIVES, 0.9),
        (Traffic { flows: 1 << 24, ..NONE_ARRIVES }, 0.9),
        (Traffic { flows: 30_000, ..NONE_ARRIVES }, 0.9),
        (Traffic { under_way: 500_000, flows: 1000, random_flows: true }, 0.9),
        (Traffic { under_way: 10, ..NONE_ARRIVES }, 0.0),
    ] {
        let (share, given_up) = run(traffic, MEMORY, false);
        assert!((least..1.1).contains(&share), "{share} of the bound, {traffic:?}");
        assert!(given_up > 0, "{traffic:?}");
    }
}
