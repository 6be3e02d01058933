//! Errors of the stamps in a file.

use std::path::Path;

use anyhow::Context;
use wirestamp_capture::file::Reader;
use wirestamp_clock::Span;
use wirestamp_metrics::{Distribution, Summary};
use wirestamp_traffic::Payload;

use super::flow::Departures;

/// Ethernet, IPv4 and UDP headers.
const PAYLOAD_AT: usize = 14 + 20 + 8;

/// The stamps of one capture against the sender's record.
pub(super) struct Errors {
    /// Packets of the flow in the file.
    pub(super) captured: u64,
    /// Stamp minus send time.
    pub(super) error: Summary,
    /// Interval between two stamps, minus interval between the two send times.
    pub(super) interval: Summary,
    /// Absolute value of `interval`.
    pub(super) interval_size: Summary,
}

impl Errors {
    /// The errors of the file at `path`. Packets without a known send time are counted, but have no error.
    pub(super) fn of(path: &Path, departures: &Departures) -> anyhow::Result<Self> {
        let mut reader = Reader::open(path)?;
        let (mut captured, mut before) = (0, None);
        let (mut errors, mut intervals, mut sizes) =
            (Distribution::new(), Distribution::new(), Distribution::new());
        while let Some(packet) = reader.next_packet()? {
            let payload = packet.bytes.get(PAYLOAD_AT..).and_then(Payload::decode);
            let Some(Payload { sequence, .. }) = payload else { continue };
            captured += 1;
            let Some(sent) = departures.of(sequence) else { continue };
            let error = packet.time - sent;
            errors.record(error);
            // Intervals are between packets that follow each other.
            if let Some((last, its_error)) = before.replace((sequence, error))
                && last + 1 == sequence
            {
                let difference: Span = error - its_error;
                intervals.record(difference);
                sizes.record(Span::from_nanos(difference.as_nanos().saturating_abs()));
            }
        }
        let summary = |distribution: Distribution| {
            distribution.summary().context("too few packets were captured, or sent without a break")
        };
        let (error, interval, interval_size) =
            (summary(errors)?, summary(intervals)?, summary(sizes)?);
        Ok(Self { captured, error, interval, interval_size })
    }
}
