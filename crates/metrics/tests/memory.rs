//! Memory stays within its bound, with more packets under way than fit.

mod peak;
mod traffic;

use peak::peak_of;
use traffic::Traffic;
use wirestamp_clock::Span;
use wirestamp_metrics::{CaptureLoss, Config, Correlator, Outcome, UndeterminedReason};

const MEMORY: usize = 8 << 20;
const PACKETS: u64 = 1_000_000;

/// The peak of a correlator's memory as a share of its bound, and how many packets were given up for
/// want of it. If `missing`, the captures lose packets all the time.
fn run(traffic: Traffic, timeout: Span, missing: bool) -> (f64, u64) {
    let config = Config { timeout, memory: MEMORY, ..Config::default() };
    let mut given_up = 0;
    let mut seen = Vec::with_capacity(4);
    let peak = peak_of(|| {
        let mut sink = |outcome| {
            let memory =
                matches!(outcome, Outcome::Undetermined { reason: UndeterminedReason::Memory, .. });
            given_up += u64::from(memory);
        };
        let mut correlator = Correlator::new(config);
        for number in 0..PACKETS {
            traffic.step(number, &mut seen);
            for (point, observation) in seen.drain(..) {
                if missing && number.is_multiple_of(100) {
                    let at = observation.stamp.utc;
                    correlator.missed(point, CaptureLoss { from: at, until: at, packets: 1 });
                }
                correlator.observe(point, observation, &mut sink);
            }
        }
        correlator.finish(&mut sink);
    });
    #[expect(clippy::cast_precision_loss, reason = "some megabytes")]
    let share = peak as f64 / MEMORY as f64;
    (share, given_up)
}

/// No packet arrives before the memory is full.
const NONE_ARRIVES: Traffic = Traffic { under_way: u64::MAX, flows: 1, random_flows: false };

#[test]
fn packets_under_way_take_what_is_allowed_and_no_more() {
    let long = Span::from_secs(3600);
    for traffic in [
        NONE_ARRIVES,
        Traffic { flows: 30_000, ..NONE_ARRIVES },
        Traffic { flows: 1 << 24, ..NONE_ARRIVES },
        Traffic { under_way: 500_000, flows: 1000, random_flows: true },
    ] {
        let (share, given_up) = run(traffic, long, false);
        assert!((0.9..1.1).contains(&share), "{share} of the bound, {traffic:?}");
        assert!(given_up > 0, "{traffic:?}");
    }
    // All that arrives is too late, and may be what the captures lost.
    let late = Traffic { under_way: 5000, ..NONE_ARRIVES };
    let (share, given_up) = run(late, Span::from_millis(1), true);
    assert!(share < 1.1 && given_up > 0, "{share} of the bound, {given_up} given up");
}
