//! Records the outcomes of a live measurement.

use wirestamp_clock::ClockService;
use wirestamp_metrics::{ClockSkew, FlowTable, Outcome, Point};
use wirestamp_packet::MatchRule;
use wirestamp_results::Error;
use wirestamp_session::{OutcomeRecorder, RuleChoice, RuleMatches};

use super::super::arguments::Arguments;
use super::super::packet_rows::PacketRows;
use super::super::result::DelayResult;
use super::super::seconds::Seconds;
use super::super::unknown_loss::UnknownLoss;
use super::coverage::{Coverage, now};
use crate::metrics::delay::Exported;
use crate::output::{Output, count};

/// The outcomes of a live measurement, and the times for which both points have captured.
pub(super) struct Recorder<'a> {
    arguments: &'a Arguments,
    clock: &'a ClockService,
    coverage: &'a Coverage,
    output: Output,
    exported: Exported,
    /// Whether both points have one clock, so that each delay has its error.
    is_one_clock: bool,
    pub(super) flows: FlowTable,
    pub(super) skew: ClockSkew,
    rows: Result<PacketRows, Error>,
    seconds: Option<Seconds>,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(
        arguments: &'a Arguments,
        clock: &'a ClockService,
        coverage: &'a Coverage,
        output: Output,
        exported: Exported,
        is_one_clock: bool,
    ) -> Result<Self, Error> {
        Ok(Self {
            arguments,
            clock,
            coverage,
            output,
            exported,
            is_one_clock,
            flows: arguments.flow_table(),
            skew: ClockSkew::default(),
            rows: Ok(rows(arguments, is_one_clock)?),
            seconds: arguments.per_second.then(Seconds::default),
        })
    }

    /// Adds the choice of the rule, the seconds and the rows to a result whose captures have ended.
    pub(super) fn finish(self, choice: RuleChoice, result: &mut DelayResult) {
        result.seconds = self.seconds;
        result.set_unknown_loss();
        result.reject_skew_of_identical();
        if let RuleChoice::Suggested(matches) = choice {
            result.unknown_loss.get_or_insert(UnknownLoss::of_rule(matches.rule));
        }
        result.has_tried_rules = choice == RuleChoice::NoneMatches;
        result.remarks.extend(remark(choice));
        match self.rows {
            Ok(rows) => result.finish_rows(rows),
            Err(error) => result.rows_error = Some(error),
        }
    }
}

impl OutcomeRecorder for &mut Recorder<'_> {
    fn record(&mut self, outcome: Outcome) {
        let outcome = self.coverage.exclude_uncaptured(outcome);
        if let Outcome::Matched { sent, delay, .. } = &outcome {
            self.skew.record(sent.stamp.utc, *delay);
        }
        self.flows.record(&outcome);
        if let Ok(rows) = &mut self.rows {
            rows.record(&outcome);
        }
        self.seconds.iter_mut().for_each(|seconds| seconds.record(&outcome, false));
        self.exported.record(&outcome);
    }

    fn restart(&mut self, rule: MatchRule) {
        // Packets on the way now are in neither measurement.
        for point in [Point::A, Point::B] {
            self.coverage.begins(point, now(self.clock));
        }
        self.flows = self.arguments.flow_table();
        self.skew = ClockSkew::default();
        self.rows = rows(self.arguments, self.is_one_clock);
        self.seconds = self.arguments.per_second.then(Seconds::default);
        self.exported.restart();
        self.output.remark(format!(
            "hardly any packet is recognised by its addresses and content; measuring again by --match {rule}"
        ));
    }
}

fn rows(arguments: &Arguments, has_errors: bool) -> Result<PacketRows, Error> {
    let rows = PacketRows::create(arguments)?;
    Ok(if has_errors { rows } else { rows.without_errors() })
}

/// What the trial of the rules found; none if the first rule was kept.
fn remark(choice: RuleChoice) -> Option<String> {
    let share = |RuleMatches { matched, sent, .. }| {
        format!("{} of {} packets of the first seconds", count(matched), count(sent))
    };
    match choice {
        RuleChoice::First => None,
        RuleChoice::NoneMatches => {
            Some("also tried without success: all other rules of --match".into())
        }
        RuleChoice::Switched(matches) => Some(format!(
            "--match {} recognises {}; the results begin after these",
            matches.rule,
            share(matches)
        )),
        RuleChoice::Suggested(matches) => {
            Some(format!("--match {} recognises {}; add it", matches.rule, share(matches)))
        }
    }
}
