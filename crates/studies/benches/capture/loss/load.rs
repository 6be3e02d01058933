//! The load: live frames to an unused address.

use std::time::Duration;

use anyhow::ensure;
use wirestamp_clock::Span;
use wirestamp_studies::tester::{self, Ends};
use wirestamp_traffic::live::{Limit, LiveReport, Pace};

use crate::bench::Bench;
use crate::rate::Rate;
use crate::statistics::real;

/// Max size of a capture file, which must fit the page cache; otherwise the disk would be measured.
const FILE_BYTES: f64 = 2e9;
/// Max bytes that a file format adds to a frame: an enhanced packet block of pcapng.
const RECORD_BYTES: u16 = 36;
/// Upper bound of the generator's rate past a tap in frames per second, to estimate the file size.
const FASTEST: f64 = 1.5e6;

/// Frames of one size at one rate, for some time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Check sequence included.
    pub(super) frame_bytes: u16,
    pub(super) rate: Rate,
    time: Duration,
}

impl Load {
    /// A load for `time`, or for less if capture files would exceed [`FILE_BYTES`].
    pub(super) fn new(frame_bytes: u16, rate: Rate, time: Duration) -> Self {
        let frames_a_second = match rate {
            Rate::Paced(rate) => real(rate),
            Rate::Max => FASTEST,
        };
        let bytes_a_second = frames_a_second * f64::from(frame_bytes + RECORD_BYTES);
        let time = time.min(Duration::from_secs_f64(FILE_BYTES / bytes_a_second));
        Self { frame_bytes, rate, time }
    }
}

/// Sends the load. An error if it is interrupted.
pub(super) fn send(bench: &Bench, load: Load) -> anyhow::Result<LiveReport> {
    let pace = match load.rate {
        Rate::Paced(rate) => Pace::rate(rate)?,
        Rate::Max => Pace::full_speed(),
    };
    let duration = Span::from_nanos(i64::try_from(load.time.as_nanos())?);
    let limit = Limit { frames: None, duration: Some(duration) };
    let ends = Ends::of_the_bed();
    let load = tester::Load { frame_bytes: load.frame_bytes, pace, limit, ends };
    let report = load.send(&bench.bed, &bench.clock, &bench.stop)?;
    ensure!(!report.stopped, "interrupted");
    Ok(report)
}
