//! Results that are stored and read again.

use std::collections::BTreeMap;

use wirestamp_clock::{Domain, RawStamp, Span, Stamp};
use wirestamp_metrics::{Config, Correlator, Observation, Quality};
use wirestamp_packet::{FlowKey, PacketId};

use super::*;

const SECOND: i64 = 1_000_000_000;

fn observation(id: u64, nanos: i64) -> Observation {
    let end = std::net::SocketAddr::from(([192, 0, 2, 1], 5004));
    let raw = RawStamp { domain: Domain::Realtime, value: 0 };
    Observation {
        id: PacketId(id),
        flow: FlowKey { source: end, destination: end, protocol: 17 },
        length: 100,
        stamp: Stamp { raw, utc: Time::from_nanos(nanos), error: Span::from_nanos(10) },
    }
}

/// Of ten packets one is lost, and the others take 1, 2, 3... us.
fn window(offset: Result<Span, NotSynchronised>) -> Window {
    let (mut quality, mut correlator) = (Quality::new(), Correlator::new(Config::default()));
    let mut record = |outcome| quality.record(&outcome);
    for id in 0..10_i64 {
        let number = id.unsigned_abs();
        correlator.observe(Point::A, observation(number, id * 10_000), &mut record);
        if id > 0 {
            correlator.observe(Point::B, observation(number, id * 11_000), &mut record);
        }
    }
    correlator.finish(&mut record);
    Window { quality, offset, least: Some(Span::ZERO) }
}

fn settled(until: i64, windows: Vec<(i64, Window)>, acknowledged: [u64; 2]) -> Settled {
    let windows = windows.into_iter().map(|(begin, window)| (Time::from_nanos(begin), window));
    Settled {
        until: Time::from_nanos(until),
        windows: windows.collect::<BTreeMap<_, _>>(),
        acknowledged,
        given_up: [0, 5],
        late: 0,
    }
}

#[test]
fn what_was_stored_is_there_again_with_how_far_the_task_has_come() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results");
    let mut results = Results::open(&path).unwrap();
    let beginning = results.progress(7).unwrap();
    assert_eq!(beginning.settled_until, Time::from_nanos(i64::MIN));
    assert_eq!(beginning.delivered, [Delivered::default(); 2]);
    results.begin_spool(7, Point::A, 70, 0).unwrap();
    results.begin_spool(7, Point::B, 71, 0).unwrap();
    let known = window(Ok(Span::from_nanos(500)));
    let unknown = window(Err(NotSynchronised::Second));
    let windows = vec![(SECOND, known.clone()), (3 * SECOND, unknown.clone())];
    results.store(7, &settled(4 * SECOND, windows, [3, 4])).unwrap();
    results.store(7, &settled(5 * SECOND, vec![(4 * SECOND, known.clone())], [4, 4])).unwrap();
    results.store(8, &settled(2 * SECOND, vec![(SECOND, known.clone())], [0, 0])).unwrap();
    drop(results);
    let mut results = Results::open(&path).unwrap();
    let first = Delivered { spool: Some(70), acknowledged: 4, given_up: 0, is_unknown: false };
    let second = Delivered { spool: Some(71), given_up: 10, ..first };
    let progress = results.progress(7).unwrap();
    assert_eq!(progress.settled_until, Time::from_nanos(5 * SECOND));
    assert_eq!(progress.delivered, [first, second]);
    let measured = results.measured(7, 0, 4 * SECOND, 9).unwrap();
    let of = |begin, window: &Window| Measured::new(Time::from_nanos(begin), window);
    assert_eq!(measured, [of(SECOND, &known), of(3 * SECOND, &unknown)]);
    assert_eq!(results.measured(7, SECOND + 1, i64::MAX, 1).unwrap(), measured[1..]);
    results.begin_spool(7, Point::B, 72, 6).unwrap();
    let second = Delivered { spool: Some(72), acknowledged: 6, given_up: 10, is_unknown: true };
    assert_eq!(results.progress(7).unwrap().delivered, [first, second]);
}

#[test]
fn without_synchronised_clocks_only_differences_of_delays_are_told() {
    let measured = Measured::new(Time::from_nanos(0), &window(Err(NotSynchronised::First)));
    let value = serde_json::to_value(&measured).unwrap();
    assert_eq!((&value["sent"], &value["lost"]), (&10.into(), &1.into()));
    assert_eq!((&value["delay_ns"], &value["error_ns"]), (&().into(), &().into()));
    assert_eq!(value["not_synchronised"], "first");
    assert_eq!(value["above_minimum_ns"]["max"], 8000);
    let measured = Measured::new(Time::from_nanos(0), &window(Ok(Span::from_nanos(500))));
    let delay = measured.delay_ns.unwrap();
    assert_eq!((delay.min, delay.max, measured.error_ns), (1000, 9000, Some(520)));
}
