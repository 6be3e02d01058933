//! Packet reports become observations.

use super::*;

const SECOND: i64 = 1_700_000_000;
const CLOCK: MachineClock = MachineClock { machine: [9; 16], error: None };

fn time(nanos: i64) -> Time<Utc> {
    Time::from_nanos(SECOND * 1_000_000_000 + nanos)
}

/// A report of a packet with this digest, observed `nanos` after the base second.
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

fn at(seconds: i64) -> Time<Utc> {
    time(seconds * 1_000_000_000)
}

/// An exporter and a collector of its reports.
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

    /// For all points, with the time before the first second complete.
    fn begun() -> Self {
        let mut reported = Self::of(None);
        reported.report(0, &[report(1, 1, 100)]);
        let seen = reported.report(3, &[report(1, 2, 2_500_000_000)]).unwrap();
        assert_eq!((ids(&seen), seen.complete_until), (vec![1], at(1)));
        reported
    }

    fn send(&mut self, second: i64, rows: &[Row<'_>]) -> Vec<u8> {
        let template = rows.first().map(|row| row.template(256, 0).unwrap().part());
        let parts: Vec<_> =
            template.into_iter().chain(rows.iter().map(|row| row.part(256))).collect();
        let second = u32::try_from(SECOND + second).unwrap();
        self.export.messages(second, &parts).concat()
    }

    fn take(&mut self, bytes: &[u8]) -> Option<ObservationBatch> {
        self.digests.take(&self.session.read(bytes).unwrap());
        let seen = self.digests.ready();
        seen.as_ref().inspect(|seen| assert_is_taken(seen));
        assert_eq!(self.digests.ready(), None);
        seen
    }

    /// Sends reports `second` seconds after the base second, and returns the next batch.
    fn report(&mut self, second: i64, rows: &[Row<'_>]) -> Option<ObservationBatch> {
        let bytes = self.send(second, rows);
        self.take(&bytes)
    }
}

/// Checks that the batch can be decoded by a collector.
fn assert_is_taken(seen: &ObservationBatch) {
    assert_eq!(ObservationBatch::decode(&seen.encode()).as_ref(), Ok(seen));
}

fn ids(seen: &ObservationBatch) -> Vec<u64> {
    seen.observations.iter().map(|it| it.id.0).collect()
}

fn missed(seen: &ObservationBatch) -> Vec<(Time<Utc>, Time<Utc>, u64)> {
    seen.missed.iter().map(|it| (it.from, it.until, it.packets)).collect()
}

#[test]
fn complete_packets_are_returned_in_order() {
    let mut reported = Reported::of(Some(3));
    let rows = [report(3, 8, 200), report(4, 9, 150), report(3, 7, 100)];
    assert_eq!(reported.report(0, &rows), None);
    assert_eq!(reported.report(2, &[report(3, 10, 2_000_000_005)]), None);
    let seen = reported.report(3, &[report(3, 11, 1_500_000_000)]).unwrap();
    assert_eq!(ids(&seen), [7, 8]);
    let first = &seen.observations[0];
    assert_eq!((first.stamp.utc, first.stamp.error), (time(100), Span::from_nanos(1)));
    assert_eq!(first.flow.to_string(), "192.0.2.1:5004 > 192.0.2.2:5006 udp");
    assert_eq!(first.length, 200);
    // Reports before the first message are unknown.
    assert_eq!((seen.begin, seen.complete_until), (Some(at(1)), at(1)));
    assert_eq!((seen.missed, seen.clock), (Vec::new(), CLOCK));
    let seen = reported.report(5, &[report(4, 12, 4_000_000_000)]).unwrap();
    assert_eq!((seen.begin, seen.complete_until, ids(&seen)), (None, at(3), vec![11, 10]));
    assert_eq!(reported.digests.not_taken(), NotTaken::default());
}

#[test]
fn lost_messages_count_as_missed() {
    let mut reported = Reported::begun();
    drop(reported.send(3, &[report(1, 3, 0), report(1, 4, 0)]));
    drop(reported.send(4, &[report(1, 5, 0)]));
    assert_eq!(reported.report(5, &[report(1, 6, 4_900_000_000)]), None);
    assert_eq!(reported.report(7, &[report(1, 7, 6_900_000_000)]), None);
    let seen = reported.report(8, &[report(1, 8, 7_900_000_000)]).unwrap();
    assert_eq!((ids(&seen), missed(&seen)), (vec![2, 6], vec![(at(1), at(6), 3)]));
    // The sequence numbers of a restarted exporter do not show earlier losses.
    reported.export = Export::new(1, 65_535);
    assert_eq!(reported.report(9, &[report(1, 9, 8_900_000_000)]), None);
    let seen = reported.report(12, &[report(1, 10, 11_900_000_000)]).unwrap();
    assert_eq!((seen.begin, ids(&seen), missed(&seen)), (Some(at(10)), vec![7, 8, 9], vec![]));
}

#[test]
fn continuous_losses_do_not_block_results() {
    let mut reported = Reported::begun();
    let mut delivered = Vec::new();
    for second in 4..30 {
        drop(reported.send(second, &[report(1, 0, 0)]));
        delivered.extend(reported.report(second, &[report(1, 1, second * 1_000_000_000)]));
    }
    assert_eq!(delivered.last().unwrap().complete_until, at(29 - 5));
    let sum: u64 = delivered.iter().flat_map(|it| &it.missed).map(|it| it.packets).sum();
    assert_eq!(sum, 23);
}

#[test]
fn overtaken_messages_are_not_missed() {
    let mut reported = Reported::begun();
    let [late, first, second] =
        [3, 4, 5].map(|it| reported.send(it, &[report(1, 7, it * 1_000_000_000 - 1)]));
    assert_eq!(reported.take(&first), None);
    assert_eq!(reported.take(&second).map(|_| ()), None);
    let seen = reported.take(&late).unwrap();
    assert_eq!((ids(&seen), missed(&seen)), (vec![2, 7], vec![]));
    assert_eq!(reported.take(&late), None);
    let seen = reported.report(8, &[report(1, 9, 7_900_000_000)]).unwrap();
    assert_eq!((ids(&seen), missed(&seen)), (vec![7, 7], vec![]));
}

#[test]
fn late_reports_count_as_missed() {
    let mut reported = Reported::begun();
    assert_eq!(reported.report(3, &[report(1, 3, 900_000_000)]), None);
    let seen = reported.report(4, &[report(1, 4, 3_500_000_000)]).unwrap();
    assert_eq!((ids(&seen), missed(&seen)), (vec![], vec![(time(900_000_000), at(1), 1)]));
    assert_eq!(reported.digests.not_taken(), NotTaken { late: 1, ..NotTaken::default() });
}

#[test]
fn silent_exporter_is_closed_with_a_gap() {
    let mut reported = Reported::begun();
    let seen = reported.digests.close(at(40)).unwrap();
    assert_is_taken(&seen);
    assert_eq!((ids(&seen), seen.begin, seen.complete_until), (vec![2], Some(at(40)), at(40)));
    assert_eq!(reported.digests.close(at(40)), None);
    // The exporter continues without losses.
    assert_eq!(reported.report(41, &[report(1, 3, 40_500_000_000)]), None);
    let seen = reported.report(43, &[report(1, 4, 42_500_000_000)]).unwrap();
    assert_eq!((ids(&seen), seen.begin, missed(&seen)), (vec![3], None, vec![]));
}

#[test]
fn dropped_packets_count_as_missed() {
    let mut reported = Reported::begun();
    reported.report(3, &[report(1, 3, 2_600_000_000)]);
    assert_eq!(reported.digests.held(), 2);
    reported.digests.give_up();
    assert_eq!(reported.digests.held(), 0);
    let seen = reported.report(6, &[report(1, 4, 5_500_000_000)]).unwrap();
    let gap = (time(2_500_000_000), time(2_600_000_000), 2);
    assert_eq!((ids(&seen), missed(&seen)), (vec![], vec![gap]));
    // The last batch was not stored.
    reported.digests.begin_anew();
    assert_eq!(reported.report(8, &[report(1, 5, 7_500_000_000)]), None);
    let seen = reported.report(9, &[report(1, 6, 8_500_000_000)]).unwrap();
    assert_eq!((ids(&seen), seen.begin), (vec![4], Some(at(7))));
}

#[test]
fn skipped_message_leaves_a_gap() {
    let mut reported = Reported::begun();
    let left_out = reported.send(4, &[report(1, 3, 3_500_000_000)]);
    assert_eq!(reported.session.read(&left_out).unwrap().order, Order::Missed(0));
    reported.digests.interrupt();
    assert_eq!(reported.report(6, &[report(1, 4, 5_500_000_000)]), None);
    let seen = reported.report(9, &[report(1, 5, 8_500_000_000)]).unwrap();
    assert_eq!((seen.begin, ids(&seen), missed(&seen)), (Some(at(7)), vec![2, 4], vec![]));
}

#[test]
fn earlier_times_are_accepted_after_a_reset() {
    let mut reported = Reported::begun();
    reported.digests.reset();
    assert_eq!(reported.digests.not_taken(), NotTaken { dropped: 1, ..NotTaken::default() });
    reported.digests.settled(at(-15));
    let rows = [report(1, 3, -15_500_000_000), report(1, 4, -14_500_000_000)];
    assert_eq!(reported.report(-14, &rows), None);
    let seen = reported.report(-11, &[report(1, 5, -11_500_000_000)]).unwrap();
    assert_eq!((seen.begin, seen.complete_until, ids(&seen)), (Some(at(-13)), at(-13), vec![4]));
    let NotTaken { late, dropped, .. } = reported.digests.not_taken();
    assert_eq!((late, dropped), (1, 1));
}

#[test]
fn invalid_reports_are_rejected() {
    let mut reported = Reported::of(None);
    let (no_digest, no_time) = (report(1, 1, 0).0[..2].to_vec(), report(1, 1, 0).0[2..].to_vec());
    reported.report(0, &[Row(no_digest)]);
    reported.report(0, &[Row(no_time)]);
    reported.report(0, &[report(1, 1, 1_000_000_001)]);
    assert_eq!(reported.digests.held(), 0);
    assert_eq!(
        reported.digests.not_taken(),
        NotTaken { other: 2, early: 1, ..NotTaken::default() }
    );
}

#[test]
fn missing_fields_have_defaults() {
    let row = |element, value| {
        Row(vec![(element::DIGEST_HASH_VALUE, Value::U64(u64::MAX)), (element, value)])
    };
    let micros = Value::Time(time(5000));
    let millis = Value::U64(u64::try_from(SECOND).unwrap() * 1000 + 7);
    for (element, value, nanos, error) in [
        (element::OBSERVATION_TIME_MICROSECONDS, micros, 5000, Span::from_micros(1)),
        (element::OBSERVATION_TIME_MILLISECONDS, millis, 7_000_000, Span::from_millis(1)),
    ] {
        let mut reported = Reported::of(None);
        reported.report(0, &[row(element, value)]);
        let seen = reported.digests.close(at(1)).unwrap();
        let seen = seen.observations.first().unwrap();
        assert_eq!((seen.stamp.utc, seen.stamp.error, seen.id.0), (time(nanos), error, u64::MAX));
        assert_eq!(
            (seen.flow.to_string().as_str(), seen.length),
            ("0.0.0.0 > 0.0.0.0 protocol 0", 0)
        );
    }
}

proptest! {
    /// All reports become valid batches in order of time, and every complete report is counted.
    #[test]
    fn arbitrary_reports_become_valid_batches(
        messages in prop::collection::vec(
            (any::<bool>(), -3..20_i64,
             prop::collection::vec((0..3_u64, any::<u32>(), -4_000_000_000..20_000_000_000_i64), 1..6)), 1..8),
        close: Option<i8>,
    ) {
        let mut reported = Reported::of(Some(1));
        let (mut all, mut taken) = (Vec::new(), 0);
        for (comes, second, rows) in &messages {
            let rows: Vec<_> = rows.iter().map(|(point, digest, nanos)| report(*point, *digest, *nanos)).collect();
            let bytes = reported.send(*second, &rows);
            if *comes {
                taken += rows.iter().filter(|row| row.0[0].1 == Value::U64(1)).count() as u64;
                all.extend(reported.take(&bytes));
            }
        }
        if let Some(second) = close {
            all.extend(reported.digests.close(at(second.into())));
        }
        let mut complete = None;
        for seen in &all {
            assert_is_taken(seen);
            let times = seen.observations.iter().map(|it| Some(it.stamp.utc));
            prop_assert!(std::iter::once(complete).chain(times).is_sorted());
            prop_assert!(complete < Some(seen.complete_until));
            complete = Some(seen.complete_until);
        }
        let delivered: usize = all.iter().map(|it| it.observations.len()).sum();
        let NotTaken { early, late, .. } = reported.digests.not_taken();
        prop_assert_eq!(delivered as u64 + early + late + reported.digests.held() as u64, taken);
    }
}
