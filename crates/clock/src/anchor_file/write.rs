//! Writer of anchor files during a capture.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::format::{HEADER, MAX_GAP};
use crate::anchor::{Anchor, Entry};
use crate::{Span, Timeline};

/// Writer of an anchor file.
#[derive(Debug)]
pub struct AnchorWriter<W> {
    out: W,
    clock: String,
    boot_id: String,
    last: Option<Anchor>,
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
        Ok(Self { out, clock, boot_id, last: None, written: 0, gaps: 0, failed: false })
    }

    /// Appends the anchors since the last update, in one write of whole lines.
    ///
    /// Cheap if there are none. A timeline holds the newest 256 anchors: those of a minute, or of less after steps,
    /// because each step adds about seven. An update every half minute misses none, if the clock is stepped at most a
    /// dozen times in between and is not disrupted. A disruption loses the anchors since the last update: with an
    /// update per second at most those of a second.
    ///
    /// # Errors
    /// If they cannot be written. The file may then end with an incomplete line. Every later update with new anchors
    /// fails too, so that no line follows the incomplete one.
    pub fn update(&mut self, timeline: &Timeline) -> io::Result<()> {
        let entries = timeline.entries();
        let is_last = |entry: &Entry| self.last == Some(entry.anchor);
        let old = entries.iter().rposition(is_last).map_or(0, |position| position + 1);
        let Some((oldest, newest)) = entries[old..].first().zip(entries.last()) else {
            return Ok(());
        };
        if self.failed {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let waited = |last: Anchor| oldest.anchor.monotonic_raw - last.monotonic_raw;
        let gap = self.last.map_or(Span::ZERO, waited) > MAX_GAP;
        let mut lines = String::new();
        for entry in &entries[old..] {
            let anchor = entry.anchor;
            let (utc, monotonic) = (anchor.utc.as_nanos(), anchor.monotonic_raw.as_nanos());
            let (error, epoch) = (anchor.error.as_nanos(), entry.epoch);
            let _ = write!(lines, "{},{utc},{monotonic},{error},{epoch},", anchor.raw);
            self.describe(timeline, &mut lines);
        }
        self.failed = true;
        self.out.write_all(lines.as_bytes())?;
        self.out.flush()?;
        self.failed = false;
        self.gaps += u32::from(gap);
        self.written += (entries.len() - old) as u64;
        self.last = Some(newest.anchor);
        Ok(())
    }

    /// The columns that describe the clock.
    fn describe(&self, timeline: &Timeline, line: &mut String) {
        let difference = timeline.difference();
        let (granularity, hertz) = (difference.granularity().as_nanos(), difference.frequency_hz());
        let error = difference.rate_error_ppm();
        let _ = writeln!(line, "{},{},{granularity},{hertz},{error}", self.clock, self.boot_id);
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
