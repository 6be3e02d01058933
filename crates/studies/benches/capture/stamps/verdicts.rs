//! Targets for stamps of the softIRQ.

use super::Row;
use super::report::flows;
use crate::results::Results;
use crate::statistics::{Spread, micros};

/// Max ratio of the spread of errors with a busy core to that with an idle core.
const WIDER: f64 = 1.5;
/// Max ratio of the spread of errors at the tracepoint to that of kernel stamps.
const TRACED: f64 = 1.2;

pub(super) fn give(rows: &[Row], results: &mut Results) {
    for flow in flows(rows) {
        let of_flow = Flow { rows, flow };
        for name in ["xdp-pass/xdp", "xdp/xdp"] {
            of_flow.steady(name, results);
        }
        for busy in [false, true] {
            of_flow.narrow(busy, results);
            of_flow.even(busy, results);
            of_flow.traced(busy, results);
        }
    }
}

/// The rows of one flow.
struct Flow<'a> {
    rows: &'a [Row],
    flow: &'static str,
}

impl Flow<'_> {
    /// The median of the repetitions, in microseconds.
    fn median(&self, name: &str, busy: bool, number: fn(&Row) -> i64) -> Option<f64> {
        let is_it =
            |row: &&Row| row.flow == self.flow && row.contender == name && row.busy_core == busy;
        Some(Spread::of(self.rows.iter().filter(is_it).map(|row| micros(number(row))))?.median)
    }

    fn spread(&self, name: &str, busy: bool) -> Option<f64> {
        self.median(name, busy, |row| row.error_spread)
    }

    /// Target: a busy core does not widen the errors of softIRQ stamps by more than [`WIDER`].
    fn steady(&self, name: &str, results: &mut Results) {
        let (Some(idle), Some(busy)) = (self.spread(name, false), self.spread(name, true)) else {
            return;
        };
        let text = format!(
            "{}: p99-p50 of {name} with a busy core is at most {WIDER} of the idle one: {busy:.2} us \
             to {idle:.2} us",
            self.flow
        );
        results.verdict(busy <= WIDER * idle, text);
    }

    /// Target: the errors of softIRQ stamps spread less than those of user-space stamps.
    fn narrow(&self, busy: bool, results: &mut Results) {
        for name in ["ring/raw", "recvmsg/raw"] {
            let (Some(ours), Some(theirs)) =
                (self.spread("xdp-pass/xdp", busy), self.spread(name, busy))
            else {
                continue;
            };
            let text = format!(
                "{}, {}: p99-p50 of xdp-pass/xdp is below that of {name} of the same packets: \
                 {ours:.2} us to {theirs:.2} us",
                self.flow,
                condition(busy)
            );
            results.verdict(ours < theirs, text);
        }
    }

    /// Target: intervals of softIRQ stamps are at least as accurate as those of kernel stamps.
    fn even(&self, busy: bool, results: &mut Results) {
        let interval = |name| self.median(name, busy, |row| row.interval_p99);
        let (Some(ours), Some(kernels)) = (interval("xdp-pass/xdp"), interval("ring/kernel"))
        else {
            return;
        };
        let text = format!(
            "{}, {}: p99 of what intervals are off by is with xdp-pass/xdp no worse than with \
             ring/kernel: {ours:.2} us to {kernels:.2} us",
            self.flow,
            condition(busy)
        );
        results.verdict(ours <= kernels, text);
    }

    /// Target: raw stamps at the tracepoint spread at most [`TRACED`] times as much as kernel stamps.
    fn traced(&self, busy: bool, results: &mut Results) {
        let (Some(ours), Some(kernels)) =
            (self.spread("trace-pass/raw", busy), self.spread("ring/kernel", busy))
        else {
            return;
        };
        let text = format!(
            "{}, {}: p99-p50 of trace-pass/raw is at most {TRACED} of that of ring/kernel of the same \
             packets: {ours:.2} us to {kernels:.2} us",
            self.flow,
            condition(busy)
        );
        results.verdict(ours <= TRACED * kernels, text);
    }
}

const fn condition(busy: bool) -> &'static str {
    if busy { "busy" } else { "idle" }
}
