//! Lost packets of a measurement, kept in a temporary file: whether they count as lost is known at its end.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, Write};

use serde::{Deserialize, Serialize};
use wirestamp_metrics::Observation;
use wirestamp_packet::FlowKey;
use wirestamp_results::Error;

/// A packet that A observed and B did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LostRow {
    pub(super) flow: FlowKey,
    /// Length on the wire in bytes.
    pub(super) length: u32,
    pub(super) sequence: u64,
    /// Time at A, in nanoseconds since 1970 UTC.
    pub(super) a_ns: i64,
}

/// Lost packets in the order in which they are recorded.
#[derive(Default)]
pub(super) struct LostRows {
    file: Option<BufWriter<File>>,
    failed: Option<io::Error>,
}

impl LostRows {
    /// Adds a packet. After an error no more is kept; [`Self::read`] returns it.
    pub(super) fn record(&mut self, sent: &Observation, sequence: u64) {
        let Observation { flow, length, stamp, .. } = *sent;
        let row = LostRow { flow, length, sequence, a_ns: stamp.utc.as_nanos() };
        if self.failed.is_none() {
            self.failed = self.write(&row).err();
        }
    }

    fn write(&mut self, row: &LostRow) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(BufWriter::new(tempfile::tempfile()?)),
        };
        serde_json::to_writer(&mut *file, row)?;
        file.write_all(b"\n")
    }

    /// Calls `each` with all packets.
    pub(super) fn read(self, mut each: impl FnMut(LostRow)) -> Result<(), Error> {
        let read = || {
            if let Some(error) = self.failed {
                return Err(error);
            }
            let Some(file) = self.file else { return Ok(()) };
            let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
            file.rewind()?;
            for row in serde_json::Deserializer::from_reader(BufReader::new(file)).into_iter() {
                each(row?);
            }
            Ok(())
        };
        read().map_err(|cause| Error::Write { path: std::env::temp_dir(), cause })
    }
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time};
    use wirestamp_packet::PacketId;

    use super::*;

    #[test]
    fn packets_are_read_as_recorded() {
        let flow = FlowKey {
            source: "[fd00::1]:5000".parse().unwrap(),
            destination: "10.0.0.2:80".parse().unwrap(),
            protocol: 17,
        };
        let mut rows = LostRows::default();
        for number in 0..3_u32 {
            let utc = Time::from_nanos(-i64::from(number));
            let raw = RawStamp { domain: Domain::Realtime, value: 0 };
            let stamp = Stamp { raw, utc, error: Span::ZERO };
            rows.record(&Observation { id: PacketId(1), flow, length: number, stamp }, 7);
        }
        let mut read = Vec::new();
        rows.read(|row| read.push(row)).unwrap();
        let row = |length: u32| LostRow { flow, length, sequence: 7, a_ns: -i64::from(length) };
        assert_eq!(read, [0, 1, 2].map(row));
        LostRows::default().read(|row| panic!("{row:?}")).unwrap();
    }
}
