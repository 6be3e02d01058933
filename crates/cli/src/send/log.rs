//! The CSV file of `--log`: a row for each sent packet.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use anyhow::Context;
use wirestamp_capture::Error;
use wirestamp_clock::{Time, Utc};
use wirestamp_traffic::{SentPacket, StampKind};

/// Packets that may wait for the disk; beyond that, sending is delayed.
const MAX_WAITING: usize = 1 << 16;

/// A file written by its own thread, so that sending does not wait for the disk.
pub(super) struct Log {
    path: PathBuf,
    lines: SyncSender<SentPacket>,
    writing: JoinHandle<io::Result<()>>,
}

impl Log {
    /// Creates the file.
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        let file =
            File::create(path).map_err(|cause| Error::Write { path: path.to_owned(), cause })?;
        let (lines, packets) = sync_channel(MAX_WAITING);
        let writing = thread::Builder::new()
            .name("ws-log".into())
            .spawn(move || write(BufWriter::new(file), &packets))
            .context("cannot start a thread")?;
        Ok(Self { path: path.to_owned(), lines, writing })
    }

    /// Adds a packet.
    pub(super) fn record(&self, sent: &SentPacket) {
        // Fails only after a write error, which `finish` reports.
        let _ = self.lines.send(*sent);
    }

    /// Waits until everything is written.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        drop(self.lines);
        let written = self.writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(written.map_err(|cause| Error::Write { path: self.path, cause })?)
    }
}

fn write(mut file: impl Write, packets: &Receiver<SentPacket>) -> io::Result<()> {
    writeln!(file, "sequence,intended,actual,sched,software,hardware")?;
    for sent in packets {
        let SentPacket { sequence, intended, actual, stamps, .. } = sent;
        write!(file, "{sequence},{},{}", intended.as_nanos(), actual.as_nanos())?;
        for stamp in StampKind::ALL.map(|kind| *stamps.of(kind)) {
            write!(
                file,
                ",{}",
                stamp.map(Time::<Utc>::as_nanos).map_or(String::new(), |n| n.to_string())
            )?;
        }
        writeln!(file)?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::Span;
    use wirestamp_traffic::PerStampKind;

    use super::*;

    #[test]
    fn missing_stamp_leaves_its_column_empty() {
        let (lines, packets) = sync_channel(1);
        let stamps = PerStampKind { sched: Some(Time::from_nanos(3)), ..PerStampKind::default() };
        let (intended, actual) = (Time::from_nanos(1), Time::from_nanos(2));
        let pacing_error = Span::ZERO;
        lines
            .send(SentPacket { stream: 1, sequence: 7, intended, actual, pacing_error, stamps })
            .unwrap();
        drop(lines);
        let mut file = Vec::new();
        write(&mut file, &packets).unwrap();
        let expected = "sequence,intended,actual,sched,software,hardware\n7,1,2,3,,\n";
        assert_eq!(String::from_utf8(file).unwrap(), expected);
    }
}
