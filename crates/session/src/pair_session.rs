//! Two running captures with one correlator.

use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use wirestamp_capture::{Capture, CaptureLoss, CapturedPacket, Error, Facts, Ledger, Sink, Stop};
use wirestamp_metrics::{Config, Correlator, Observation, Outcome, Point};
use wirestamp_packet::LinkType;

use crate::figures::Figures;
use crate::point_state::PointState;
use crate::recording::Recording;

/// Correlates the observations of two points on this machine. Calls `record` with every outcome.
pub struct PairSession<R> {
    correlator: Mutex<(Correlator, R)>,
    /// State of each point.
    states: [Mutex<PointState>; 2],
}

/// Result of the capture at one tap.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TapReport {
    /// Settings of the capture.
    pub facts: Facts,
    /// Ledger of its packets.
    pub ledger: Ledger,
    /// Whether the ledger accounts for every packet.
    pub balanced: bool,
    /// Totals of the recording.
    #[serde(flatten)]
    pub figures: Figures,
    /// Packets with no identity: not IP, or cut too short. They are excluded from the measurement.
    pub unidentified: u64,
}

impl<R: FnMut(Outcome) + Send> PairSession<R> {
    /// A session of two points without packets.
    pub fn new(config: Config, record: R) -> Self {
        Self {
            correlator: Mutex::new((Correlator::new(config), record)),
            states: Default::default(),
        }
    }

    /// Sets the initial state of both points; by default they observe every packet.
    #[must_use]
    pub fn with_state(self, state: &PointState) -> Self {
        Self { states: [(); 2].map(|()| Mutex::new(state.clone())), ..self }
    }

    /// Runs the capture at one point to its end, and correlates its packets.
    ///
    /// # Errors
    /// When the capture ends early, or its file cannot be finished.
    pub fn capture(
        &self,
        point: Point,
        capture: Capture,
        recording: Recording<'_>,
        stop: &Stop,
    ) -> Result<TapReport, Error> {
        let facts = capture.facts().clone();
        let mut tap = Tap {
            point,
            session: self,
            recording,
            link: facts.link,
            state: self.state(point).clone(),
        };
        let clock = tap.recording.clock();
        let (ledger, outcome) = capture.run(clock, stop, &mut tap);
        let Tap { recording, state, .. } = tap;
        let unidentified = state.unidentified;
        *self.state(point) = state;
        let (figures, written) = recording.finish(&ledger);
        outcome.and(written)?;
        Ok(TapReport { facts, balanced: ledger.balances(), ledger, figures, unidentified })
    }

    /// Correlates an observation from another source.
    pub(crate) fn observe(&self, point: Point, observation: Observation) {
        let (correlator, record) = &mut *self.lock();
        correlator.observe(point, observation, record);
    }

    /// Records packets that a capture missed.
    pub(crate) fn missed(&self, point: Point, missed: CaptureLoss) {
        self.lock().0.missed(point, missed);
    }

    /// Decides all open outcomes. Returns the states of A and B.
    pub fn finish(self) -> [PointState; 2] {
        let (correlator, mut record) =
            self.correlator.into_inner().unwrap_or_else(PoisonError::into_inner);
        correlator.finish(&mut record);
        self.states.map(|state| state.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// A poisoned lock means that the other tap's thread has panicked, which ends the run anyway.
    fn lock(&self) -> MutexGuard<'_, (Correlator, R)> {
        self.correlator.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// State of a point. A running capture works on its own copy, so the lock is never contended.
    pub(crate) fn state(&self, point: Point) -> MutexGuard<'_, PointState> {
        let state = &self.states[usize::from(point == Point::B)];
        state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One observation point: records the packets of a capture, identifies and correlates them.
struct Tap<'a, R> {
    point: Point,
    session: &'a PairSession<R>,
    recording: Recording<'a>,
    link: LinkType,
    state: PointState,
}

impl<R: FnMut(Outcome) + Send> Sink for Tap<'_, R> {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        self.recording.packet(packet)?;
        let CapturedPacket { bytes, length, stamp, .. } = *packet;
        let Self { session, point, state, link, .. } = self;
        state.take(*link, bytes, length, stamp, |it| session.observe(*point, it));
        Ok(())
    }

    fn missed(&mut self, missed: &CaptureLoss) -> Result<(), Error> {
        self.session.missed(self.point, *missed);
        self.recording.missed(missed)
    }

    fn pause(&mut self) -> Result<(), Error> {
        let clock = self.recording.difference_clock();
        self.session.lock().0.set_difference_clock(clock);
        self.recording.pause()
    }

    fn end(&mut self) -> Result<(), Error> {
        self.recording.end()
    }

    fn lost(&self) -> u64 {
        self.recording.lost()
    }
}
