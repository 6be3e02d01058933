//! Writer of anchor files during a capture.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::format::{HEADER, MAX_GAP, RowKind};
use crate::anchor::{Anchor, Entry};
use crate::piece::Piece;
use crate::vdso::history::Lines;
use crate::{RawStamp, Span, Timeline};

/// Writer of an anchor file.
#[derive(Debug)]
pub struct AnchorWriter<W> {
    out: W,
    clock: String,
    boot_id: String,
    last: Option<Anchor>,
    /// Start of the last written line of the kernel.
    last_line: Option<u64>,
    written: u64,
    gaps: u32,
    /// True if the file may end with an incomplete line. Then nothing more is written.
    failed: bool,
}

impl<W: Write> AnchorWriter<W> {
    /// Starts a file of the anchors of `clock` (`tsc`, `CLOCK_MONOTONIC`), taken during the boot `boot_id`
    /// (`/proc/sys/kernel/random/boot_id`; empty if unknown).
    ///
    /// # Errors
    /// If the header cannot be written, or a name is not valid in a line of CSV.
    pub fn new(mut out: W, clock: &str, boot_id: &str) -> io::Result<Self> {
        for name in [clock, boot_id] {
            if name.bytes().any(|byte| !byte.is_ascii_graphic() || b",\"'".contains(&byte)) {
                let reason = format!("{name:?} cannot stand in a line of CSV");
                return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
            }
        }
        writeln!(out, "{HEADER}")?;
        out.flush()?;
        let (clock, boot_id) = (clock.to_owned(), boot_id.to_owned());
        Ok(Self {
            out,
            clock,
            boot_id,
            last: None,
            last_line: None,
            written: 0,
            gaps: 0,
            failed: false,
        })
    }

    /// Appends the anchors and the kernel's lines since the last update, in one write of whole rows.
    ///
    /// Cheap if there are none. A timeline holds the newest 256 anchors: those of a minute, or of less after steps,
    /// because each step adds about seven. It holds the kernel's lines of at least two seconds. An update per second
    /// misses none, if the clock is stepped at most a dozen times in between and is not disrupted. A disruption loses the
    /// anchors since the last update.
    ///
    /// # Errors
    /// If they cannot be written. The file may then end with an incomplete row. Every later update with new rows
    /// fails too, so that no row follows the incomplete one.
    pub fn update(&mut self, timeline: &Timeline) -> io::Result<()> {
        self.append(timeline, None)
    }

    /// As [`Self::update`], and states up to which raw value the kernel's newest line applies. Call it after the last
    /// stamp, with a timeline that was made after it.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub fn finish(&mut self, timeline: &Timeline) -> io::Result<()> {
        self.append(timeline, timeline.kernel_lines())
    }

    fn append(&mut self, timeline: &Timeline, end: Option<&Lines>) -> io::Result<()> {
        let entries = timeline.entries();
        let is_last = |entry: &Entry| self.last == Some(entry.anchor);
        let old = entries.iter().rposition(is_last).map_or(0, |position| position + 1);
        let mut rows: Vec<Row> = entries[old..].iter().copied().map(Row::Anchor).collect();
        let lines = timeline.kernel_lines().filter(|_| !entries.is_empty());
        rows.extend(lines.into_iter().flat_map(|lines| self.new_lines(lines)));
        rows.extend(
            end.filter(|_| !entries.is_empty())
                .map(|lines| Row::line(lines.newest().piece_from(lines.until()), false)),
        );
        if rows.is_empty() {
            return Ok(());
        }
        if self.failed {
            return Err(io::ErrorKind::WriteZero.into());
        }
        rows.sort_by_key(Row::raw);
        let text: String = rows.iter().map(|row| self.row(row, timeline)).collect();
        self.failed = true;
        self.out.write_all(text.as_bytes())?;
        self.out.flush()?;
        self.failed = false;
        if let Some((oldest, newest)) = entries[old..].first().zip(entries.last()) {
            let waited = |last: Anchor| oldest.anchor.monotonic_raw - last.monotonic_raw;
            self.gaps += u32::from(self.last.map_or(Span::ZERO, waited) > MAX_GAP);
            self.written += (entries.len() - old) as u64;
            self.last = Some(newest.anchor);
        }
        self.last_line = timeline.kernel_lines().map(|lines| lines.newest().start());
        Ok(())
    }

    /// The lines that begin after the last written one.
    fn new_lines(&self, lines: &Lines) -> impl Iterator<Item = Row> {
        let continues = self.last_line.is_some_and(|last| last >= lines.first());
        let written = self.last_line.filter(|_| continues);
        let starts = lines.older().chain([lines.newest()]);
        let new = starts.filter(move |segment| written.is_none_or(|last| segment.start() > last));
        let pieces: Vec<_> = new.map(|segment| segment.piece()).collect();
        pieces
            .into_iter()
            .enumerate()
            .map(move |(index, piece)| Row::line(piece, index == 0 && !continues))
    }

    /// The text of a row.
    fn row(&self, row: &Row, timeline: &Timeline) -> String {
        let mut text = String::new();
        let Entry { anchor, epoch } = row.entry(timeline);
        let (utc, monotonic) = (anchor.utc.as_nanos(), anchor.monotonic_raw.as_nanos());
        let error = anchor.error.as_nanos();
        let _ = write!(text, "{},{utc},{monotonic},{error},{epoch},", anchor.raw);
        let difference = timeline.difference();
        let (granularity, hertz) = (difference.granularity().as_nanos(), difference.frequency_hz());
        let error = difference.rate_error_ppm();
        let _ = write!(text, "{},{},{granularity},{hertz},{error},", self.clock, self.boot_id);
        let kind = row.kind().name();
        let _ = match row.piece(timeline) {
            Some(piece) => {
                let (slope, error) = (piece.slope.to_f64(), piece.error.as_nanos());
                writeln!(text, "{kind},{slope},{error}")
            }
            None => writeln!(text, "{kind},,"),
        };
        text
    }

    /// The underlying writer.
    #[must_use]
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// Number of anchors written so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Number of gaps of more than half a minute between anchors, because an update came too late or no anchor was
    /// taken. Stamps in such a gap cannot be converted again.
    #[must_use]
    pub fn gaps(&self) -> u32 {
        self.gaps
    }
}

/// A row of the file.
enum Row {
    Anchor(Entry),
    Line {
        /// The line from its first raw value on.
        piece: Piece,
        is_first: bool,
    },
}

impl Row {
    fn line(piece: Piece, is_first: bool) -> Self {
        Self::Line { piece, is_first }
    }

    fn raw(&self) -> u64 {
        match self {
            Self::Anchor(entry) => entry.anchor.raw,
            Self::Line { piece, .. } => piece.start,
        }
    }

    fn kind(&self) -> RowKind {
        match self {
            Self::Anchor(_) => RowKind::Anchor,
            Self::Line { is_first: true, .. } => RowKind::FirstLine,
            Self::Line { is_first: false, .. } => RowKind::Line,
        }
    }

    /// The kernel's line in force at the row.
    fn piece(&self, timeline: &Timeline) -> Option<Piece> {
        match self {
            Self::Anchor(entry) => timeline.kernel_piece(entry.anchor.raw).copied(),
            Self::Line { piece, .. } => Some(*piece),
        }
    }

    /// The anchor of the row. That of a line has its time; the rest is derived from the anchor before. The timeline has
    /// an anchor.
    fn entry(&self, timeline: &Timeline) -> Entry {
        let piece = match self {
            Self::Anchor(entry) => return *entry,
            Self::Line { piece, .. } => piece,
        };
        let before = timeline.entries().partition_point(|entry| entry.anchor.raw <= piece.start);
        let Entry { anchor: nearest, epoch } = timeline.entries()[before.saturating_sub(1)];
        let stamp = |value| RawStamp { domain: timeline.domain(), value };
        let elapsed = timeline.difference().span(stamp(nearest.raw), stamp(piece.start));
        let anchor = Anchor {
            raw: piece.start,
            utc: piece.origin_utc,
            monotonic_raw: nearest.monotonic_raw + elapsed.unwrap_or(Span::ZERO),
            error: nearest.error + piece.error,
        };
        Entry { anchor, epoch }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::Rate;
    use crate::{Domain, Time};

    /// Accepts `room` bytes, fails once, and accepts everything after that.
    struct Disk {
        file: Vec<u8>,
        room: Option<usize>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.room.take() {
                Some(0) => Err(io::ErrorKind::StorageFull.into()),
                Some(room) => {
                    self.room = Some(0);
                    self.file.extend_from_slice(&bytes[..room]);
                    Ok(room)
                }
                None => {
                    self.file.extend_from_slice(bytes);
                    Ok(bytes.len())
                }
            }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nothing_follows_an_incomplete_line() {
        let anchor = |second: i64| Anchor {
            raw: second.unsigned_abs() * 1_000_000_000,
            utc: Time::from_nanos(second * 1_000_000_000),
            monotonic_raw: Time::from_nanos(second * 1_000_000_000),
            error: Span::from_nanos(40),
        };
        let rate = Rate { nanos_per_tick: 1.0, error: 1e-6 };
        let nanosecond = Span::from_nanos(1);
        let mut history =
            crate::history::History::new(Domain::Counter, anchor(1), rate, nanosecond);
        let disk = Disk { file: Vec::new(), room: None };
        let mut writer = AnchorWriter::new(disk, "tsc", "b").unwrap();
        writer.update(&history.timeline()).unwrap();
        writer.out.room = Some(20);
        let whole = writer.out.file.len();
        history.push(anchor(2));
        let error = writer.update(&history.timeline()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);

        history.push(anchor(3));
        assert!(writer.update(&history.timeline()).is_err());
        assert_eq!((writer.out.file.len(), writer.written()), (whole + 20, 1));
    }
}
