//! Two running captures with one correlator.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Serialize;
use wirestamp_capture::{Capture, CaptureLoss, CapturedPacket, Error, Facts, Ledger, Sink, Stop};
use wirestamp_clock::{DifferenceClock, Stamp};
use wirestamp_metrics::{Config, Correlator, Observation, Point};
use wirestamp_packet::{LinkType, MatchRule};

use crate::figures::Figures;
use crate::outcome_recorder::OutcomeRecorder;
use crate::point_state::PointState;
use crate::recording::Recording;
use crate::rule_trial::{RuleChoice, RuleTrial};

/// Correlates the observations of two points on this machine. Calls `record` with every outcome.
pub struct PairSession<R> {
    correlation: Mutex<Correlation<R>>,
    /// State of each point.
    states: [Mutex<PointState>; 2],
    trial: Mutex<Trial>,
    /// Whether packets are on trial. Read without the lock of `trial`.
    is_trying: AtomicBool,
    /// The rule with which the measurement has begun again.
    switched: OnceLock<MatchRule>,
}

/// The correlator and the recorder of its outcomes.
struct Correlation<R> {
    correlator: Correlator,
    record: R,
    config: Config,
    /// The rule of the observations.
    rule: MatchRule,
    difference_clock: Option<DifferenceClock>,
}

/// The trial of match rules; none before and after it. The choice is made at its end.
#[derive(Default)]
struct Trial {
    trial: Option<RuleTrial>,
    choice: RuleChoice,
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

impl<R: OutcomeRecorder + Send> PairSession<R> {
    /// A session of two points without packets.
    pub fn new(config: Config, record: R) -> Self {
        let (correlator, rule) = (Correlator::new(config), MatchRule::default());
        Self {
            correlation: Mutex::new(Correlation {
                correlator,
                record,
                config,
                rule,
                difference_clock: None,
            }),
            states: Default::default(),
            trial: Mutex::default(),
            is_trying: AtomicBool::new(false),
            switched: OnceLock::new(),
        }
    }

    /// Sets the initial state of both points; by default they observe every packet.
    #[must_use]
    pub fn with_state(self, state: &PointState) -> Self {
        lock(&self.correlation).rule = state.rule();
        Self { states: [(); 2].map(|()| Mutex::new(state.clone())), ..self }
    }

    /// Tries all match rules on the packets of the first seconds. If hardly any packet is matched, and another rule matches
    /// more, the measurement begins again with that rule.
    #[must_use]
    pub fn with_trial(self) -> Self {
        let trial = {
            let correlation = lock(&self.correlation);
            RuleTrial::new(correlation.rule, &correlation.config)
        };
        lock(&self.trial).trial = Some(trial);
        Self { is_trying: AtomicBool::new(true), ..self }
    }

    /// The choice of the rule, after both captures have ended.
    pub fn rule_choice(&self) -> RuleChoice {
        let trial = lock(&self.trial);
        match trial.trial.as_ref().map(RuleTrial::choice_at_end) {
            Some(RuleChoice::Switched(matches)) => RuleChoice::Suggested(matches),
            Some(choice) => choice,
            None => trial.choice,
        }
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
        let Tap { recording, mut state, .. } = tap;
        if let Some(rule) = self.switched(state.rule()) {
            state.switch(rule);
        }
        let unidentified = state.unidentified;
        *self.state(point) = state;
        let (figures, written) = recording.finish(&ledger);
        outcome.and(written)?;
        Ok(TapReport { facts, balanced: ledger.balances(), ledger, figures, unidentified })
    }

    /// Correlates an observation recognised by `rule`. One that was recognised before the rule changed is discarded.
    pub(crate) fn observe(&self, point: Point, observation: Observation, rule: MatchRule) {
        let Correlation { correlator, record, rule: current, .. } = &mut *lock(&self.correlation);
        if rule == *current {
            correlator.observe(point, observation, &mut |outcome| record.record(outcome));
        }
    }

    /// Records packets that a capture missed.
    pub(crate) fn missed(&self, point: Point, missed: CaptureLoss) {
        lock(&self.correlation).correlator.missed(point, missed);
    }

    /// The rule to use from now on, if it is another one than `rule`.
    pub(crate) fn switched(&self, rule: MatchRule) -> Option<MatchRule> {
        self.switched.get().copied().filter(|switched| *switched != rule)
    }

    /// Tries the rules on a frame, while there is a trial.
    pub(crate) fn try_rules(
        &self,
        point: Point,
        link: LinkType,
        bytes: &[u8],
        length: u32,
        stamp: Stamp,
    ) {
        if !self.is_trying.load(Ordering::Relaxed) {
            return;
        }
        let mut trial = lock(&self.trial);
        let Some(trying) = &mut trial.trial else { return };
        let Some(choice) = trying.take(point, link, bytes, length, stamp) else { return };
        *trial = Trial { trial: None, choice };
        self.is_trying.store(false, Ordering::Relaxed);
        if let RuleChoice::Switched(matches) = choice {
            self.switch(matches.rule);
        }
    }

    /// Begins again with this rule.
    fn switch(&self, to: MatchRule) {
        let mut correlation = lock(&self.correlation);
        let Correlation { correlator, record, config, rule, difference_clock } = &mut *correlation;
        *correlator = Correlator::new(*config);
        difference_clock.iter().for_each(|clock| correlator.set_difference_clock(*clock));
        *rule = to;
        record.restart(to);
        self.switched.get_or_init(|| to);
    }

    /// Decides all open outcomes. Returns the states of A and B.
    pub fn finish(self) -> [PointState; 2] {
        let Correlation { correlator, mut record, .. } =
            self.correlation.into_inner().unwrap_or_else(PoisonError::into_inner);
        correlator.finish(&mut |outcome| record.record(outcome));
        self.states.map(|state| state.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// State of a point. A running capture works on its own copy, so the lock is never contended.
    pub(crate) fn state(&self, point: Point) -> MutexGuard<'_, PointState> {
        lock(&self.states[usize::from(point == Point::B)])
    }
}

/// A poisoned lock means that the other tap's thread has panicked, which ends the run anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One observation point: records the packets of a capture, identifies and correlates them.
struct Tap<'a, R> {
    point: Point,
    session: &'a PairSession<R>,
    recording: Recording<'a>,
    link: LinkType,
    state: PointState,
}

impl<R: OutcomeRecorder + Send> Sink for Tap<'_, R> {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        self.recording.packet(packet)?;
        let CapturedPacket { bytes, length, stamp, .. } = *packet;
        let Self { session, point, state, link, .. } = self;
        if let Some(rule) = session.switched(state.rule()) {
            state.switch(rule);
        }
        let rule = state.rule();
        state.take(*link, bytes, length, stamp, |it| session.observe(*point, it, rule));
        session.try_rules(*point, *link, bytes, length, stamp);
        Ok(())
    }

    fn missed(&mut self, missed: &CaptureLoss) -> Result<(), Error> {
        self.session.missed(self.point, *missed);
        self.recording.missed(missed)
    }

    fn pause(&mut self) -> Result<(), Error> {
        let clock = self.recording.difference_clock();
        let mut correlation = lock(&self.session.correlation);
        correlation.correlator.set_difference_clock(clock);
        correlation.difference_clock = Some(clock);
        drop(correlation);
        self.recording.pause()
    }

    fn end(&mut self) -> Result<(), Error> {
        self.recording.end()
    }

    fn lost(&self) -> u64 {
        self.recording.lost()
    }
}
