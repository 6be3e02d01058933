//! `capture --list`: pairs of method and stamp, and with `-i` the interface's support for each.

use std::process::ExitCode;

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_capture::capabilities::{Capabilities, CardStamps, Obstacle, verdict};
use wirestamp_capture::{Method, PAIRS, Pair, StampSource};

use crate::output::Output;
use crate::target::Target;

/// Prints the list, for `target` if there is one.
pub(super) fn list(target: Option<&Target>, output: Output) -> anyhow::Result<ExitCode> {
    match target {
        None => {
            let rows: Vec<_> = PAIRS.iter().map(row).collect();
            output.result(&rows, |_| {
                "method     stamp\n".to_owned() + &PAIRS.iter().map(line).collect::<String>()
            })?;
        }
        Some(target) => {
            let of = target.query(|| Capabilities::of(&target.interface))?;
            let verdicts: Vec<_> = PAIRS.iter().map(|pair| (pair, verdict(pair, &of))).collect();
            let rows: Vec<_> = verdicts.iter().map(verdict_row).collect();
            output.result(&rows, |_| {
                let lines: String = verdicts.iter().map(verdict_line).collect();
                format!(
                    "{}: {}\nmethod     stamp    supported\n{lines}",
                    target.interface,
                    facts(&of)
                )
            })?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A pair, and where the interface takes its stamps, or why it is not supported.
type PairVerdict = (&'static Pair, Result<&'static str, Obstacle>);

/// A reception method with a timestamp source.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Pair")]
pub(crate) struct Row {
    /// Limits on the captured packets or bytes; empty if everything up to the snap length is captured.
    limits: &'static str,
    /// Reception method.
    #[schemars(extend("enum" = Method::names()))]
    method: &'static str,
    /// The interface's support. Absent without an interface.
    #[serde(flatten)]
    support: Option<Support>,
    /// Timestamp source.
    #[schemars(extend("enum" = StampSource::names()))]
    stamp: &'static str,
    /// Where on a packet's path the stamp is taken.
    taken: &'static str,
}

/// The interface's support of a pair.
#[derive(Serialize, JsonSchema)]
struct Support {
    /// Whether the interface supports it.
    possible: bool,
    /// Why it does not. Null if it does.
    reason: Option<String>,
}

fn row(pair: &Pair) -> Row {
    Row {
        limits: pair.limits,
        method: pair.method.name(),
        support: None,
        stamp: pair.stamp.name(),
        taken: pair.taken,
    }
}

fn verdict_row((pair, verdict): &PairVerdict) -> Row {
    let reason = verdict.as_ref().err().map(Obstacle::to_string);
    Row {
        support: Some(Support { possible: reason.is_none(), reason }),
        taken: verdict.as_ref().map_or(pair.taken, |taken| *taken),
        ..row(pair)
    }
}

fn line(pair: &Pair) -> String {
    let limits = if pair.limits.is_empty() { String::new() } else { format!(" ({})", pair.limits) };
    let (method, stamp) = (pair.method.name(), pair.stamp.name());
    format!("{method:<10} {stamp:<8} stamped {}{limits}\n", pair.taken)
}

fn verdict_line((pair, verdict): &PairVerdict) -> String {
    let (method, stamp) = (pair.method.name(), pair.stamp.name());
    match verdict {
        Ok(taken) => format!("{method:<10} {stamp:<8} yes  stamped {taken}\n"),
        Err(obstacle) => format!("{method:<10} {stamp:<8} no   {obstacle}\n"),
    }
}

/// The interface's capabilities, in a line.
fn facts(of: &Capabilities) -> String {
    let driver =
        of.driver.as_deref().map_or("no driver".to_owned(), |name| format!("driver {name}"));
    let queues = match of.queues {
        Some(1) => ", 1 receive queue".to_owned(),
        Some(queues) => format!(", {queues} receive queues"),
        None => String::new(),
    };
    let xdp = match of.xdp {
        Some(xdp) if xdp.in_driver && xdp.zero_copy => "XDP in the driver, zero-copy",
        Some(xdp) if xdp.in_driver => "XDP in the driver",
        Some(_) => "no XDP in the driver",
        None => "XDP unknown",
    };
    let card = match of.stamping.card {
        CardStamps::Nothing => "no hardware stamps",
        CardStamps::SomePackets => "hardware stamps for some packets",
        CardStamps::AllPackets => "hardware stamps for all packets",
    };
    let (major, minor) = of.kernel;
    let state = if of.up { "up" } else { "down" };
    format!("{state}, {driver}{queues}, {xdp}, {card}; Linux {major}.{minor}")
}
