//! Round trips and the return path of active tests: results, and their table with merged longer windows.

use std::collections::BTreeMap;
use std::ops::Range;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, Transaction, params, params_from_iter};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::CompactHistogram;

use super::{Measured, MeasuredReturn, NoTimes, NotReported, Spread, Step, histograms, spreads};
use crate::collector::ReturnPath;
use crate::database::unsigned;

/// A row of the table.
#[derive(Clone, Debug, Default)]
struct Stored {
    answered: u64,
    lost: u64,
    contradicts: bool,
    /// Times exist whose error is unknown.
    is_error_unknown: bool,
    round_trip: Times,
    delay: Times,
}

/// Distribution of times and their max error in nanoseconds.
#[derive(Clone, Debug, Default)]
struct Times {
    error: Option<i64>,
    spread: Option<Spread>,
    histogram: CompactHistogram,
}

/// Columns before those of the distributions.
const AHEAD: usize = 9;
const DELAY: usize = AHEAD + spreads::COLUMNS;
const HISTOGRAMS: usize = DELAY + spreads::COLUMNS;

/// Key of a row.
type Key = (u64, Step, Time<Utc>);

impl Stored {
    /// The row of a window whose clocks differ by at most `offset`; none if they are not synchronised.
    fn of(path: &ReturnPath, offset: Option<Span>) -> Self {
        let spread = |it: &wirestamp_metrics::Distribution| it.summary().as_ref().map(Spread::from);
        let nanos = |it: Option<Span>| it.map(Span::as_nanos);
        let known = offset.map(|_| CompactHistogram::from(&path.delay));
        Self {
            answered: path.answered,
            lost: path.lost,
            contradicts: path.contradicts_the_clocks(offset),
            is_error_unknown: path.has_times() && path.sending.is_none(),
            round_trip: Times {
                error: nanos(path.round_trip_error()),
                spread: spread(&path.round_trip),
                histogram: CompactHistogram::from(&path.round_trip),
            },
            delay: Times {
                error: nanos(path.delay_error(offset)),
                spread: spread(&path.delay),
                histogram: known.unwrap_or_default(),
            },
        }
    }

    fn merge(&mut self, other: &Self) {
        self.answered = self.answered.saturating_add(other.answered);
        self.lost = self.lost.saturating_add(other.lost);
        self.contradicts |= other.contradicts;
        self.is_error_unknown |= other.is_error_unknown;
        self.round_trip.merge(&other.round_trip);
        self.delay.merge(&other.delay);
    }

    fn insert(&self, change: &Transaction<'_>, (task, step, begin): Key) -> rusqlite::Result<()> {
        let numbers = [
            task.cast_signed(),
            step.seconds(),
            begin.as_nanos(),
            self.answered.cast_signed(),
            self.lost.cast_signed(),
            self.contradicts.into(),
            self.is_error_unknown.into(),
        ];
        let mut values: Vec<Value> = numbers.map(Value::from).into();
        let both = [&self.round_trip, &self.delay];
        values.extend(both.map(|times| Value::from(times.error)));
        both.iter().for_each(|times| values.extend(spreads::columns(times.spread.as_ref())));
        values.extend(both.map(|times| Value::from(times.histogram.encode())));
        let places = vec!["?"; values.len()].join(", ");
        let query = format!("INSERT OR REPLACE INTO return_path VALUES ({places})");
        change.prepare_cached(&query)?.execute(params_from_iter(values))?;
        Ok(())
    }

    /// Without histograms.
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let histogram = CompactHistogram::default;
        Ok(Self {
            answered: unsigned(row, 3)?,
            lost: unsigned(row, 4)?,
            contradicts: row.get(5)?,
            is_error_unknown: row.get(6)?,
            round_trip: Times {
                error: row.get(7)?,
                spread: spreads::read(row, AHEAD)?,
                histogram: histogram(),
            },
            delay: Times {
                error: row.get(8)?,
                spread: spreads::read(row, DELAY)?,
                histogram: histogram(),
            },
        })
    }

    /// The result of a window.
    fn measured(self, window: &Measured) -> MeasuredReturn {
        let Self { answered, lost, contradicts, is_error_unknown, round_trip, delay } = self;
        let no_times = match (round_trip.spread, answered) {
            (Some(_), _) => None,
            (None, 0) => Some(NoTimes::NoAnswer),
            (None, _) => Some(NoTimes::NotValid),
        };
        let is_synchronised = window.not_synchronised.is_none();
        let undetermined = window.counts.matched.saturating_sub(answered).saturating_sub(lost);
        MeasuredReturn {
            answered,
            lost,
            undetermined,
            round_trip_ns: round_trip.spread,
            round_trip_error_ns: round_trip.error.filter(|_| !is_error_unknown),
            delay_ns: delay.spread.filter(|_| is_synchronised),
            error_ns: delay.error.filter(|_| is_synchronised && !is_error_unknown),
            no_times,
            no_error: is_error_unknown.then_some(NotReported::NotReported),
            contradicts_the_clocks: contradicts,
        }
    }
}

impl Times {
    fn merge(&mut self, other: &Self) {
        self.error = self.error.max(other.error);
        self.spread = spreads::merged(self.spread, other.spread);
        self.histogram.merge(&other.histogram);
    }

    /// Adds the percentiles of merged windows.
    fn add_percentiles(&mut self) {
        self.spread = self.spread.map(|it| spreads::with_percentiles(it, &self.histogram));
    }
}

impl Measured {
    /// Adds the reason why an active test has no return path, if it has none.
    pub(crate) fn of_active_test(self) -> Self {
        let no_return_path = self.return_path.is_none().then_some(NotReported::NotReported);
        Self { no_return_path, ..self }
    }
}

/// Stores the return path of a window whose clocks differ by at most `offset`; none if they are not synchronised.
pub(super) fn insert(
    change: &Transaction<'_>,
    key: Key,
    path: &ReturnPath,
    offset: Option<Span>,
) -> rusqlite::Result<()> {
    Stored::of(path, offset).insert(change, key)
}

/// Merges rows into those of longer windows.
pub(super) fn merge(
    change: &Transaction<'_>,
    task: u64,
    (of, step): (Step, Step),
    range: Range<i64>,
) -> rusqlite::Result<()> {
    let mut together: BTreeMap<Time<Utc>, Stored> = BTreeMap::new();
    let query = "SELECT * FROM return_path WHERE task = ? AND step = ? AND begin >= ? AND begin < ?
                 ORDER BY begin";
    let mut statement = change.prepare_cached(query)?;
    let values = params![task.cast_signed(), of.seconds(), range.start, range.end];
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        let mut part = Stored::read(row)?;
        part.round_trip.histogram = histograms::decoded(row, HISTOGRAMS)?;
        part.delay.histogram = histograms::decoded(row, HISTOGRAMS + 1)?;
        let begin = Time::from_nanos(row.get(2)?).interval_begin(step.length());
        together.entry(begin).or_default().merge(&part);
    }
    for (begin, mut stored) in together {
        stored.round_trip.add_percentiles();
        stored.delay.add_percentiles();
        stored.insert(change, (task, step, begin))?;
    }
    Ok(())
}

/// Adds the stored return paths to windows, which are ordered by time.
pub(super) fn add(
    database: &Connection,
    task: u64,
    step: Step,
    windows: &mut [Measured],
) -> rusqlite::Result<()> {
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else { return Ok(()) };
    let query = "SELECT * FROM return_path
                 WHERE task = ? AND step = ? AND begin >= ? AND begin <= ?";
    let mut statement = database.prepare_cached(query)?;
    let values = params![task.cast_signed(), step.seconds(), first.begin_ns, last.begin_ns];
    let rows = statement.query_map(values, |row| Ok((row.get(2)?, Stored::read(row)?)))?;
    let mut found = rows.collect::<rusqlite::Result<BTreeMap<i64, Stored>>>()?;
    for window in windows {
        let stored = found.remove(&window.begin_ns);
        window.return_path = stored.map(|it| it.measured(window));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use wirestamp_metrics::Quality;

    use super::*;
    use crate::collector::{NotSynchronised, ResultRange, Results, Settled, Window};
    use crate::protocol::TestAnswer;

    const SECOND: i64 = 1_000_000_000;

    /// A window of a second with answers; `sending` is the reflector's report.
    fn window(
        trips: &[i64],
        sending: Option<Span>,
        offset: Result<Span, NotSynchronised>,
    ) -> Window {
        let mut path = ReturnPath { sending, lost: 1, ..ReturnPath::default() };
        for micros in trips {
            path.answered += 1;
            path.record(&TestAnswer {
                identity: wirestamp_packet::PacketId(0),
                sent: Time::from_nanos(0),
                round_trip: Span::from_micros(*micros),
                back: Span::from_micros(micros / 2),
                error: Span::from_micros(1),
            });
        }
        Window { quality: Quality::new(), offset, least: None, return_path: Some(path) }
    }

    fn stored(results: &mut Results, windows: Vec<(i64, Window)>, until: i64) {
        let at = |second: i64| Time::from_nanos(second * SECOND);
        let windows = windows.into_iter().map(|(second, it)| (at(second), it)).collect();
        results.store(7, &Settled { windows, ..Settled::nothing(at(until)) }).unwrap();
    }

    fn read(results: &Results, step: Step) -> Vec<Measured> {
        let range = ResultRange { step, from: i64::MIN, until: i64::MAX, most: 9 };
        results.measured(7, &range).unwrap()
    }

    #[test]
    fn return_paths_are_stored_and_merged() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::open(&folder.path().join("results")).unwrap();
        let us = Span::from_micros;
        let first = window(&[100, 300], Some(us(10)), Ok(us(5)));
        let second = window(&[200], Some(us(20)), Ok(us(4)));
        let without = Window { return_path: None, ..first.clone() };
        stored(&mut results, vec![(1, first), (2, second), (3, without)], 60);
        let [one, two, three] = read(&results, Step::AsMeasured).try_into().unwrap();
        let path = one.return_path.unwrap();
        let trip = path.round_trip_ns.unwrap();
        assert_eq!((path.answered, path.lost, path.no_times), (2, 1, None));
        assert_eq!(
            (trip.count, trip.min, trip.p50, trip.max),
            (2, 100_000, Some(100_000), 300_000)
        );
        assert_eq!((path.round_trip_error_ns, path.error_ns), (Some(11_000), Some(15_000)));
        assert_eq!(path.delay_ns.unwrap().max, 150_000);
        assert_eq!(two.return_path.unwrap().round_trip_error_ns, Some(21_000));
        assert_eq!((three.return_path, three.no_return_path), (None, None));
        let why = three.of_active_test().no_return_path;
        assert_eq!(why, Some(NotReported::NotReported));
        assert_eq!(results.newest(7).unwrap().unwrap().return_path, None);
        let [minute] = read(&results, Step::Minute).try_into().unwrap();
        let path = minute.return_path.unwrap();
        let trip = path.round_trip_ns.unwrap();
        assert_eq!((path.answered, path.lost), (3, 2));
        assert_eq!((trip.count, trip.min, trip.max), (3, 100_000, 300_000));
        assert!((trip.mean - 200_000.0).abs() < 1e-6, "{trip:?}");
        let median = trip.p50.unwrap() - 200_000;
        assert!(median.abs() < 2_000, "{median}");
        assert_eq!((path.round_trip_error_ns, path.error_ns), (Some(21_000), Some(24_000)));
    }

    #[test]
    fn unknown_values_are_null_with_a_reason() {
        let folder = tempfile::tempdir().unwrap();
        let mut results = Results::open(&folder.path().join("results")).unwrap();
        let us = Span::from_micros;
        let silent = window(&[], Some(us(10)), Ok(us(5)));
        let old = window(&[100], None, Ok(us(5)));
        let apart = window(&[100], Some(us(10)), Err(NotSynchronised::First));
        stored(&mut results, vec![(1, silent), (2, old), (3, apart)], 60);
        let found = read(&results, Step::AsMeasured);
        let [silent, old, apart] = [0, 1, 2].map(|nth| found[nth].return_path.unwrap());
        assert_eq!((silent.round_trip_ns, silent.no_times), (None, Some(NoTimes::NoAnswer)));
        assert_eq!((silent.round_trip_error_ns, silent.no_error), (None, None));
        assert_eq!((old.round_trip_error_ns, old.error_ns), (None, None));
        assert_eq!((old.round_trip_ns.is_some(), old.delay_ns.is_some()), (true, true));
        assert_eq!(old.no_error, Some(NotReported::NotReported));
        // Round trips need no synchronised clocks.
        assert_eq!((apart.delay_ns, apart.error_ns), (None, None));
        assert_eq!(apart.round_trip_error_ns, Some(11_000));
        let minute = read(&results, Step::Minute)[0].return_path.unwrap();
        assert_eq!((minute.round_trip_ns.unwrap().count, minute.round_trip_error_ns), (2, None));
        assert_eq!((minute.delay_ns, minute.error_ns), (None, None));
        let written = serde_json::to_value(silent).unwrap();
        assert_eq!(
            (&written["round_trip_ns"], &written["no_times"]),
            (&().into(), &"no-answer".into())
        );
    }
}
