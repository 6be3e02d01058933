//! A capture that is read while it is written, at a meeting with one that runs here.

use wirestamp_capture::file::{Provenance, Reader};
use wirestamp_capture::{Error, Stop};
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{CaptureLoss, Outcome, Point};

use super::clocks::clock_error;
use super::correction::Correction;
use super::file::{self, File};
use super::terms::Terms;
use crate::pair_session::{PairSession, TapReport};

/// What was read from a pipe.
#[derive(Clone, Debug)]
pub struct PipeReport {
    /// Packets that the capture says it lost, if it has got to say it.
    pub capture_lost: u64,
    /// Those of them of which it does not say when.
    pub undated: u64,
    /// Where the capture broke off.
    pub damage: Option<String>,
    /// What it says of the clocks of its packets.
    clocks: Vec<Option<Provenance>>,
}

impl PipeReport {
    /// How wrong a delay can be because of the clocks of the pipe's capture and of one that ran here,
    /// or why that cannot be known.
    ///
    /// # Errors
    /// That reason.
    pub fn clock_error(&self, here: &TapReport) -> Result<Span, String> {
        let here = Provenance::of(&here.facts, here.figures.error_ns.unwrap_or(0));
        let there: Vec<_> = self.clocks.iter().map(Option::as_ref).collect();
        clock_error(&there, &[Some(&here)])
    }
}

impl<R: FnMut(Outcome) + Send> PairSession<R> {
    /// Brings the packets of a pipe to the meeting, until its writer is done or the stop requested. A
    /// pipe that breaks off has been good up to there: that is no error, but in the report.
    ///
    /// # Errors
    /// When what is in it is no capture.
    pub fn attend_pipe(
        &self,
        point: Point,
        reader: Reader,
        terms: &Terms<'_>,
        stop: &Stop,
    ) -> Result<PipeReport, Error> {
        let sight = self.sight(point).clone();
        let mut file = File::new(reader, true, terms.filter, sight);
        let Correction { offset, .. } = terms.correction;
        // The stamps of the interface stay as they are: what B would lose, A is given.
        let corrected = |time: Time<Utc>| match point {
            Point::A => time + offset,
            Point::B => time - offset,
        };
        loop {
            let next = file.next()?;
            for missed in file.take_missed() {
                let [from, until] = [missed.from, missed.until].map(corrected);
                self.missed(point, CaptureLoss { from, until, ..missed });
            }
            let Some(mut observation) = next else { break };
            observation.stamp = file::stamp(corrected(observation.stamp.utc));
            self.observe(point, observation);
        }
        let report = PipeReport {
            capture_lost: file.reader.capture_lost(),
            undated: file.undated(),
            clocks: file.used().into_iter().map(Option::<&Provenance>::cloned).collect(),
            damage: file.damage.filter(|_| !stop.is_requested()),
        };
        *self.sight(point) = file.sight;
        Ok(report)
    }
}
