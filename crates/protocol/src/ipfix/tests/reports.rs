//! Packet reports become observations.

use super::*;

const SECOND: i64 = 1_700_000_000;
const CLOCK: MachineClock = MachineClock { machine: [9; 16], error: None };

fn time(nanos: i64) -> Time<Utc> {
    Time::from_nanos(SECOND * 1_000_000_000 + nanos)
}

/// A report of a packet with this digest, which was observed so many nanoseconds after the second.
fn report(point: u64, digest: u32, nanos: i64) -> Row<'static> {
    Row(vec![
        (element::OBSERVATION_POINT_ID, Value::U64(point)),
        (element::OBSERVATION_TIME_NANOSECONDS, Value::Time(time(nanos))),
        (element::DIGEST_HASH_VALUE, Value::U32(digest)),
        (element::SOURCE_IPV4_ADDRESS, Value::U32(0xc000_0201)),
        (element::DESTINATION_IPV4_ADDRESS, Value::U32(0xc000_0202)),
        (element::SOURCE_TRANSPORT_PORT, Value::U16(5004)),
        (element::DESTINATION_TRANSPORT_PORT, Value::U16(5006)),
        (element::PROTOCOL_IDENTIFIER, Value::U8(17)),
        (element::IP_TOTAL_LENGTH, Value::U16(200)),
    ])
}

/// An exporter that sends reports, and somebody who makes observations of them.
struct Reported {
    export: Export,
    session: Session,
    digests: Digests,
}

impl Reported {
    fn of(point: Option<u64>) -> Self {
        let digests = Digests::new(point, CLOCK);
        Self { export: Export::new(1, 65_535), session: fresh(), digests }
    }

    fn send(&mut self, rows: &[Row<'_>]) -> Vec<u8> {
        let template = rows.first().map(|row| row.template(256, 0).unwrap().part());
        let parts: Vec<_> =
            template.into_iter().chain(rows.iter().map(|row| row.part(256))).collect();
        let second = u32::try_from(SECOND).unwrap();
        self.export.messages(second, &parts).concat()
    }

    fn take(&mut self, bytes: &[u8]) -> Option<Seen> {
        let seen = self.digests.take(&self.session.read(bytes).unwrap());
        // It is what a collector takes.
        if let Some(seen) = &seen {
            assert_eq!(Seen::decode(&seen.encode()).as_ref(), Ok(seen));
        }
        seen
    }

    fn report(&mut self, rows: &[Row<'_>]) -> Option<Seen> {
        let bytes = self.send(rows);
        self.take(&bytes)
    }
}

fn ids(seen: &Seen) -> Vec<u64> {
    seen.observations.iter().map(|it| it.id.0).collect()
}

#[test]
fn packets_are_told_of_in_their_order() {
    let mut reported = Reported::of(Some(3));
    let seen = reported.report(&[report(3, 8, 200), report(4, 9, 150), report(3, 7, 100)]).unwrap();
    assert_eq!(ids(&seen), [7, 8]);
    let first = &seen.observations[0];
    assert_eq!((first.stamp.utc, first.stamp.error), (time(100), Span::from_nanos(1)));
    assert_eq!(first.flow.to_string(), "192.0.2.1:5004 > 192.0.2.2:5006 udp");
    assert_eq!(first.length, 200);
    assert_eq!((seen.begin, seen.complete_until), (Some(time(100)), time(200)));
    assert_eq!((seen.missed, seen.clock), (Vec::new(), CLOCK));
    let seen = reported.report(&[report(3, 10, 300)]).unwrap();
    assert_eq!((seen.begin, seen.complete_until, ids(&seen)), (None, time(300), vec![10]));
    assert_eq!(reported.report(&[report(4, 11, 400)]), None);
    assert_eq!(reported.digests.not_taken(), NotTaken::default());
}

#[test]
fn what_is_lost_on_the_way_was_missed() {
    let mut reported = Reported::of(None);
    reported.report(&[report(1, 1, 100)]).unwrap();
    drop(reported.send(&[report(1, 2, 200), report(1, 3, 210)]));
    drop(reported.send(&[report(1, 4, 220)]));
    let seen = reported.report(&[report(1, 5, 300)]).unwrap();
    let missed = seen.missed.first().unwrap();
    assert_eq!((missed.from, missed.until, missed.packets), (time(100), time(300), 3));
    // One that begins anew says nothing of what was before.
    reported.export = Export::new(1, 65_535);
    let seen = reported.report(&[report(1, 6, 400)]).unwrap();
    assert_eq!((seen.begin, seen.missed.len()), (Some(time(400)), 0));
}

#[test]
fn what_comes_too_late_was_missed() {
    let mut reported = Reported::of(None);
    reported.report(&[report(1, 1, 100), report(1, 2, 200)]).unwrap();
    let seen = reported.report(&[report(1, 3, 150), report(1, 4, 250)]).unwrap();
    assert_eq!(ids(&seen), [4]);
    let missed = seen.missed.first().unwrap();
    assert_eq!((missed.from, missed.until, missed.packets), (time(150), time(200), 1));
    let seen = reported.report(&[report(1, 5, 150)]).unwrap();
    assert_eq!((ids(&seen), seen.complete_until, seen.missed.len()), (vec![], time(250), 1));
    assert_eq!(reported.digests.not_taken(), NotTaken { late: 2, ..NotTaken::default() });
}

#[test]
fn what_cannot_be_is_not_taken() {
    let mut reported = Reported::of(None);
    let (no_digest, no_time) = (report(1, 1, 0).0[..2].to_vec(), report(1, 1, 0).0[2..].to_vec());
    assert_eq!(reported.report(&[Row(no_digest)]), None);
    assert_eq!(reported.report(&[Row(no_time)]), None);
    assert_eq!(reported.report(&[report(1, 1, 1_000_000_001)]), None);
    assert_eq!(reported.digests.not_taken(), NotTaken { other: 2, early: 1, late: 0 });
}

#[test]
fn times_and_flows_are_taken_as_far_as_they_are_told() {
    let row = |element, value| {
        Row(vec![(element::DIGEST_HASH_VALUE, Value::U64(u64::MAX)), (element, value)])
    };
    let micros = Value::Time(time(5000));
    let millis = Value::U64(u64::try_from(SECOND).unwrap() * 1000 + 7);
    for (element, value, nanos, error) in [
        (element::OBSERVATION_TIME_MICROSECONDS, micros, 5000, Span::from_micros(1)),
        (element::OBSERVATION_TIME_MILLISECONDS, millis, 7_000_000, Span::from_millis(1)),
    ] {
        let seen = Reported::of(None).report(&[row(element, value)]).unwrap();
        let seen = seen.observations.first().unwrap();
        assert_eq!((seen.stamp.utc, seen.stamp.error, seen.id.0), (time(nanos), error, u64::MAX));
        assert_eq!(
            (seen.flow.to_string().as_str(), seen.length),
            ("0.0.0.0 > 0.0.0.0 protocol 0", 0)
        );
    }
}

proptest! {
    #[test]
    fn any_reports_become_what_a_collector_takes(
        messages in prop::collection::vec(
            (any::<bool>(), prop::collection::vec((0..3_u64, any::<u32>(), any::<i32>()), 1..6)), 1..8),
    ) {
        let mut reported = Reported::of(Some(1));
        let mut complete = None;
        for (comes, rows) in &messages {
            let rows: Vec<_> = rows.iter().map(|(point, digest, nanos)| report(*point, *digest, i64::from(*nanos))).collect();
            let bytes = reported.send(&rows);
            let Some(seen) = comes.then(|| reported.take(&bytes)).flatten() else { continue };
            let times = seen.observations.iter().map(|it| Some(it.stamp.utc));
            prop_assert!(std::iter::once(complete).chain(times).is_sorted());
            prop_assert!(complete <= Some(seen.complete_until));
            complete = Some(seen.complete_until);
        }
    }
}
