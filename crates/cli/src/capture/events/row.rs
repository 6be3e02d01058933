//! The file of recorded kernel events: a row for each event.

use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::sync::Arc;

use wirestamp_capture::events::format::Value;
use wirestamp_capture::events::{Error, EventSink, TraceClock, TraceEvent};
use wirestamp_clock::{ClockService, Domain, Stamp};
use wirestamp_results::{Field, Table, TableFile};

/// Rows that are written together.
const BATCH: usize = 32_768;

/// An event, with its stamp converted. Unknown values are empty.
struct Row {
    raw: u64,
    stamp: Option<Stamp>,
    clock: TraceClock,
    cpu: u32,
    context: Option<&'static str>,
    pid: Option<u64>,
    event: String,
    interface: Option<String>,
    /// A pseudonym of the buffer's address.
    skb: Option<u64>,
    length: Option<u64>,
    lost_before: Option<u64>,
    /// The other fields.
    fields: String,
}

/// The columns, described in docs/guide.md.
const COLUMNS: &[Field<Row>] = &[
    Field::whole("raw", |row| whole(Some(row.raw))),
    Field::text("clock", |row| Some(row.clock.name().to_owned())),
    Field::whole("time_ns", |row| row.stamp.map(|stamp| stamp.utc.as_nanos())),
    Field::whole("error_ns", |row| row.stamp.map(|stamp| stamp.error.as_nanos())),
    Field::whole("cpu", |row| Some(row.cpu.into())),
    Field::text("context", |row| row.context.map(ToOwned::to_owned)),
    Field::whole("pid", |row| whole(row.pid)),
    Field::text("event", |row| Some(row.event.clone())),
    Field::text("interface", |row| row.interface.clone()),
    Field::text("skb", |row| row.skb.map(|skb| format!("{skb:016x}"))),
    Field::whole("length_bytes", |row| whole(row.length)),
    Field::whole("lost_before", |row| whole(row.lost_before)),
    Field::text("fields", |row| Some(row.fields.clone())),
];

/// A column's number; none beyond its range, which no counter reaches in decades.
fn whole(value: Option<u64>) -> Option<i64> {
    value.and_then(|value| value.try_into().ok())
}

/// The file, and the rows that are not written yet.
pub(super) struct EventFile {
    file: TableFile,
    clock: TraceClock,
    service: Arc<ClockService>,
    domain: Option<Domain>,
    rows: Vec<Row>,
    /// Number of the first rows, whose stamps are converted.
    converted: usize,
    pseudonyms: RandomState,
}

impl EventFile {
    /// Creates the file.
    pub(super) fn create(
        path: &Path,
        clock: TraceClock,
        service: Arc<ClockService>,
    ) -> Result<Self, wirestamp_results::Error> {
        let file = TableFile::create(path, COLUMNS)?;
        let domain = clock.domain(service.counter());
        let (rows, pseudonyms) = (Vec::new(), RandomState::new());
        Ok(Self { file, clock, service, domain, rows, converted: 0, pseudonyms })
    }

    /// A note if the stamps are not converted.
    pub(super) fn note(&self) -> Option<String> {
        self.domain.is_none().then(|| {
            format!(
                "events stamped by {} have no system time: time_ns and error_ns are empty; use \
                 --events-clock {}",
                self.clock,
                TraceClock::of_counter(self.service.counter())
            )
        })
    }

    /// Converts the stamps of the newest rows. The timeline is newer than all of them.
    fn convert(&mut self) {
        let Some(domain) = self.domain else { return };
        let rows = &mut self.rows[self.converted..];
        let raw: Vec<_> = rows.iter().map(|row| row.raw).collect();
        let mut stamps = Vec::with_capacity(raw.len());
        self.service.convert_batch(domain, &raw, &mut stamps);
        for (row, stamp) in rows.iter_mut().zip(stamps) {
            row.stamp = Some(stamp);
        }
        self.converted = self.rows.len();
    }

    fn write(&mut self) -> Result<(), wirestamp_results::Error> {
        self.file.append(&Table::of(&self.rows, COLUMNS))?;
        self.rows.clear();
        self.converted = 0;
        Ok(())
    }

    /// Writes the last rows, and completes the file.
    pub(super) fn finish(mut self) -> Result<(), wirestamp_results::Error> {
        self.convert();
        self.write()?;
        self.file.finish()
    }
}

impl EventSink for EventFile {
    fn event(&mut self, event: &TraceEvent<'_>) -> Result<(), Error> {
        self.rows.push(row(event, self.clock, &self.pseudonyms));
        Ok(())
    }

    fn end_of_batch(&mut self) -> Result<(), Error> {
        self.convert();
        if self.rows.len() < BATCH {
            return Ok(());
        }
        self.write().map_err(|error| Error::Sink(error.to_string()))
    }
}

/// The row of an event. Addresses of the kernel are replaced by pseudonyms, the same for the same address: with the
/// addresses, the file would help an attacker of the kernel.
fn row(event: &TraceEvent<'_>, clock: TraceClock, pseudonyms: &RandomState) -> Row {
    let pseudonym = |address: u64| pseudonyms.hash_one(address);
    let interface = event.interface();
    let skb = event.number("skbaddr");
    let mut fields = String::new();
    for (name, value) in event.fields() {
        let has_column = match name {
            "skbaddr" => true,
            "len" => skb.is_some(),
            _ => interface.is_some() && interface == event.field(name),
        };
        if has_column {
            continue;
        }
        let separator = if fields.is_empty() { "" } else { " " };
        let _ = match value {
            Value::Pointer(address) if address != 0 => {
                write!(fields, "{separator}{name}={:016x}", pseudonym(address))
            }
            value => write!(fields, "{separator}{name}={value}"),
        };
    }
    Row {
        raw: event.raw,
        stamp: None,
        clock,
        cpu: event.cpu,
        context: event.context().map(|context| context.name()),
        pid: event.pid(),
        event: event.name().to_owned(),
        interface: interface.map(|name| name.to_string()),
        skb: skb.map(pseudonym),
        length: skb.and_then(|_| event.number("len")),
        lost_before: event.lost_before.number(),
        fields,
    }
}
