//! Correlation of a capture read from a pipe with a local capture.

use wirestamp_capture::file::{Provenance, Reader};
use wirestamp_capture::{Error, Stop};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Point};

use super::clocks::clock_error;
use super::correction::Correction;
use super::file::{self, File};
use super::terms::Terms;
use crate::outcome_recorder::OutcomeRecorder;
use crate::pair_session::{PairSession, TapReport};

/// Result of reading a pipe.
#[derive(Clone, Debug)]
pub struct PipeReport {
    /// Packets lost by the capture; none if the pipe does not include its statistics.
    pub capture_lost: Option<u64>,
    /// Losses of unknown time.
    pub undated: u64,
    /// The latest corrected stamp of all packets read, also of those that do not pass the filter: later packets were not
    /// delivered. None without packets.
    pub latest: Option<Time<Utc>>,
    /// Position at which the capture broke off.
    pub damage: Option<String>,
    /// Clock errors of its interfaces.
    clocks: Vec<Option<Provenance>>,
}

impl PipeReport {
    /// Max clock error of a delay between the pipe's capture and a local one.
    ///
    /// # Errors
    /// The reason why it is unknown.
    pub fn clock_error(&self, here: &TapReport) -> Result<Span, String> {
        let here = Provenance::of(&here.facts, here.figures.error_ns.unwrap_or(0));
        let there: Vec<_> = self.clocks.iter().map(Option::as_ref).collect();
        clock_error(&there, &[Some(&here)])
    }
}

impl<R: OutcomeRecorder + Send> PairSession<R> {
    /// Correlates the packets of a pipe until it ends or the stop is requested. A pipe that breaks off is not an error;
    /// the report contains the position.
    ///
    /// # Errors
    /// When the data is no capture.
    pub fn read_pipe(
        &self,
        point: Point,
        reader: Reader,
        terms: &Terms<'_>,
        stop: &Stop,
    ) -> Result<PipeReport, Error> {
        let state = self.state(point).clone();
        let mut file = File::new(reader, true, terms.filter, state);
        let Correction { offset, .. } = terms.correction;
        // The local stamps stay unchanged: A gets the correction of B with the opposite sign.
        let corrected = |time: Time<Utc>| match point {
            Point::A => time + offset,
            Point::B => time - offset,
        };
        loop {
            if let Some(rule) = self.switched(file.state.rule()) {
                file.switch(rule);
            }
            let rule = file.state.rule();
            let next = file.next_with(|packet| {
                let stamp = file::stamp(corrected(packet.time));
                self.try_rules(point, packet.link, &packet.bytes, packet.length, stamp);
            })?;
            for missed in file.take_missed() {
                let [from, until] = [missed.from, missed.until].map(corrected);
                self.missed(point, CaptureLoss { from, until, ..missed });
            }
            let Some(mut observation) = next else { break };
            observation.stamp = file::stamp(corrected(observation.stamp.utc));
            self.observe(point, observation, rule);
        }
        let report = PipeReport {
            capture_lost: file.reader.capture_lost(),
            undated: file.undated(),
            latest: file.latest.map(corrected),
            clocks: file.used().into_iter().map(Option::<&Provenance>::cloned).collect(),
            damage: file.damage.filter(|_| !stop.is_requested()),
        };
        if let Some(rule) = self.switched(file.state.rule()) {
            file.state.switch(rule);
        }
        *self.state(point) = file.state;
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use wirestamp_capture::Filter;
    use wirestamp_metrics::{Config, Outcome};

    use super::*;

    /// A classic capture in nanoseconds of an empty Ethernet frame at each of these times.
    fn classic(times: &[u32]) -> Vec<u8> {
        let words = [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1];
        let mut file: Vec<u8> = words.into_iter().flat_map(u32::to_ne_bytes).collect();
        for time in times {
            file.extend([0, *time, 14, 14].into_iter().flat_map(u32::to_ne_bytes));
            file.extend([0; 14]);
        }
        file
    }

    #[test]
    fn latest_stamp_of_a_pipe_is_that_of_any_packet() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("packets");
        let filter = Filter::compile("udp").unwrap();
        let correction = Correction { offset: Span::from_nanos(5), skew: None };
        let terms = Terms { filter: Some(&filter), correction, ..Terms::default() };
        let latest = |point, times: &[u32]| {
            fs::write(&path, classic(times)).unwrap();
            let session = PairSession::new(Config::default(), |_: Outcome| {});
            let reader = Reader::open(&path).unwrap();
            let report = session.read_pipe(point, reader, &terms, &Stop::new().unwrap()).unwrap();
            report.latest.map(Time::as_nanos)
        };
        assert_eq!(latest(Point::A, &[1000, 3000, 2000]), Some(3005));
        assert_eq!(latest(Point::B, &[1000]), Some(995));
        assert_eq!(latest(Point::B, &[]), None);
    }
}
