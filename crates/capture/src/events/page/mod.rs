//! Pages of the kernel's trace ring: header, times and lengths of records.
//!
//! The layout is that of `Documentation/trace/ring-buffer-design.rst` and of the files `events/header_page` and
//! `events/header_event` of tracefs. This module reads bytes only and accepts any.

/// Flag beside the length of the page's data: events were lost before this page.
const MISSED: u32 = 1 << 31;
/// Flag beside [`MISSED`]: the number of lost events is stored behind the data.
const MISSED_IS_STORED: u32 = 1 << 30;

/// Types of entries; smaller values are the length of a record in words.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of the time difference in the first word of an entry.
const DELTA_BITS: u32 = 27;
/// The bits that an absolute stamp (`TIME_STAMP`) does not contain: it has 59.
const BEYOND_ABSOLUTE: u64 = 0xf8 << 56;

/// Layout of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageLayout {
    timestamp: usize,
    commit: usize,
    /// Bytes of an `unsigned long`.
    long: usize,
    data: usize,
    size: usize,
}

/// Events that were lost before a page or an event, on the same CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missed {
    /// None.
    #[default]
    None,
    /// This many.
    Events(u64),
    /// Some; the page has no room for their number.
    Unknown,
}

impl Missed {
    /// Events lost at two places, together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, it) | (it, Self::None) => it,
            (Self::Events(a), Self::Events(b)) => Self::Events(a.saturating_add(b)),
            _ => Self::Unknown,
        }
    }

    /// The number; none if it is unknown.
    #[must_use]
    pub const fn number(self) -> Option<u64> {
        match self {
            Self::None => Some(0),
            Self::Events(number) => Some(number),
            Self::Unknown => None,
        }
    }
}

/// A page of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page<'a> {
    /// Stamp from which the first record's time difference counts.
    pub timestamp: u64,
    /// Events lost before this page.
    pub missed: Missed,
    /// Bytes of records that the kernel had written when the page was read.
    pub committed: usize,
    /// The whole data area.
    pub data: &'a [u8],
}

/// A record: its stamp, and the event's fields as the kernel stores them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Stamp in the unit of the trace clock.
    pub time: u64,
    /// The event's fields.
    pub data: &'a [u8],
}

/// An entry whose length leads beyond the page. The rest of the page is not readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Position in the data of a page, which the kernel may still extend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    at: usize,
    time: u64,
}

impl PageLayout {
    /// The layout in the text of `events/header_page`; none if a field is missing or has an unknown size.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let ends = |declaration: &str| declaration.split_whitespace().last() == Some(name);
            let mut lines = text.lines().map(|line| line.split(';'));
            let mut line = lines.find(|line| line.clone().next().is_some_and(ends))?;
            let mut number = |key: &str| {
                line.find_map(|part| part.trim().strip_prefix(key)?.parse::<usize>().ok())
            };
            Some((number("offset:")?, number("size:")?))
        };
        let (timestamp, 8) = field("timestamp")? else { return None };
        let (commit, long @ (4 | 8)) = field("commit")? else { return None };
        let (data, length) = field("data")?;
        let size = data.checked_add(length)?;
        let is_before_data = |at: usize, size| at.checked_add(size).is_some_and(|end| end <= data);
        let fits = is_before_data(timestamp, 8) && is_before_data(commit, long);
        fits.then_some(Self { timestamp, commit, long, data, size })
    }

    /// Bytes of a page with its header.
    #[must_use]
    pub const fn page_size(&self) -> usize {
        self.size
    }

    /// The page in these bytes; none if they are too few.
    #[must_use]
    pub fn page<'a>(&self, bytes: &'a [u8]) -> Option<Page<'a>> {
        let data = bytes.get(self.data..)?;
        let timestamp = u64_at(bytes, self.timestamp)?;
        // The flags are in the low half of the word on every machine.
        let low_half = if cfg!(target_endian = "big") { self.long - 4 } else { 0 };
        let word = u32_at(bytes, self.commit + low_half)?;
        let committed = (word & !(MISSED | MISSED_IS_STORED)) as usize;
        let stored = || match self.long {
            8 => u64_at(data, committed),
            _ => u32_at(data, committed).map(u64::from),
        };
        let missed = match (word & MISSED != 0, word & MISSED_IS_STORED != 0) {
            (false, _) => Missed::None,
            (true, true) => stored().map_or(Missed::Unknown, Missed::Events),
            (true, false) => Missed::Unknown,
        };
        Some(Page { timestamp, missed, committed: committed.min(data.len()), data })
    }
}

impl Cursor {
    /// The position before the first record of a page with this timestamp.
    #[must_use]
    pub const fn new(timestamp: u64) -> Self {
        Self { at: 0, time: timestamp }
    }

    /// Bytes before the position.
    #[must_use]
    pub const fn position(&self) -> usize {
        self.at
    }

    /// The next record in `data`, the part of the page's data that the kernel has written; none at its end. After an
    /// error the position is the end.
    pub fn next<'a>(&mut self, data: &'a [u8]) -> Option<Result<Record<'a>, Malformed>> {
        while self.at < data.len() {
            match self.entry(data) {
                Some(Some(record)) => return Some(Ok(record)),
                Some(None) => {}
                None => {
                    self.at = data.len();
                    return Some(Err(Malformed));
                }
            }
        }
        None
    }

    /// Passes one entry, and returns its record if it is one. None if the entry leads beyond `data`.
    fn entry<'a>(&mut self, data: &'a [u8]) -> Option<Option<Record<'a>>> {
        let word = u32_at(data, self.at)?;
        let (kind, delta) = if cfg!(target_endian = "big") {
            (word >> DELTA_BITS, word & ((1 << DELTA_BITS) - 1))
        } else {
            (word & 0x1f, word >> 5)
        };
        let body = self.at + 4;
        if kind == PADDING && delta == 0 {
            self.at = data.len(); // the rest of the page is empty
            return Some(None);
        }
        let argument = || u32_at(data, body);
        let long_delta = || Some((u64::from(argument()?) << DELTA_BITS) + u64::from(delta));
        match kind {
            TIME_EXTEND => {
                self.time = self.time.wrapping_add(long_delta()?);
                self.at = body + 4;
                Some(None)
            }
            TIME_STAMP => {
                self.time = completed(long_delta()?, self.time);
                self.at = body + 4;
                Some(None)
            }
            PADDING => {
                // A record that an event filter rejected. A difference of 0 is stored as 1.
                let difference = if delta == 1 { 0 } else { delta };
                self.time = self.time.wrapping_add(difference.into());
                let length = argument()? as usize;
                self.at = body.checked_add(length).filter(|&end| end <= data.len())?;
                Some(None)
            }
            words => {
                // Long records store their length, including that of the length's own word.
                let (start, end) = match words {
                    0 => (body + 4, body.checked_add(argument()? as usize)?),
                    _ => (body, body + 4 * words as usize),
                };
                let record = data.get(start..end)?;
                self.time = self.time.wrapping_add(delta.into());
                self.at = end;
                Some(Some(Record { time: self.time, data: record }))
            }
        }
    }
}

/// An absolute stamp of 59 bits, completed by the upper bits of the stamp before it.
fn completed(absolute: u64, before: u64) -> u64 {
    let upper = before & BEYOND_ABSOLUTE;
    let time = absolute | upper;
    if upper != 0 && time < before { time.wrapping_add(1 << 59) } else { time }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests;
