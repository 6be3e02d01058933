//! Memory stays within its limit, with more packets in flight than fit.

mod peak;
mod traffic;

use peak::peak_of;
use traffic::Traffic;
use wirestamp_clock::Span;
use wirestamp_metrics::{CaptureLoss, Config, Correlator, Outcome, UndeterminedReason};

const MEMORY: usize = 8 << 20;
const PACKETS: u64 = 1_000_000;

/// Peak memory of a correlator as a share of its limit, and the number of packets undetermined for lack of memory. If
/// `missing`, the captures lose packets continuously.
fn run(traffic: Traffic, timeout: Span, missing: bool) -> (f64, u64) {
    let config = Config { timeout, memory: MEMORY, ..Config::default() };
    let mut undetermined = 0;
    let mut seen = Vec::with_capacity(4);
    let peak = peak_of(|| {
        let mut sink = |outcome| {
            let memory =
                matches!(outcome, Outcome::Undetermined { reason: UndeterminedReason::Memory, .. });
            undetermined += u64::from(memory);
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
    (share, undetermined)
}

/// No packet arrives before the memory is full.
const NONE_ARRIVES: Traffic = Traffic { under_way: u64::MAX, flows: 1, random_flows: false };

#[test]
fn memory_stays_within_the_limit() {
    let long = Span::from_secs(3600);
    for traffic in [
        NONE_ARRIVES,
        Traffic { flows: 30_000, ..NONE_ARRIVES },
        Traffic { flows: 1 << 24, ..NONE_ARRIVES },
        Traffic { under_way: 500_000, flows: 1000, random_flows: true },
    ] {
        let (share, undetermined) = run(traffic, long, false);
        assert!((0.9..1.1).contains(&share), "{share} of the limit, {traffic:?}");
        assert!(undetermined > 0, "{traffic:?}");
    }
    // All packets arrive too late, and may be capture losses.
    let late = Traffic { under_way: 5000, ..NONE_ARRIVES };
    let (share, undetermined) = run(late, Span::from_millis(1), true);
    assert!(share < 1.1 && undetermined > 0, "{share} of the limit, {undetermined} undetermined");
}
