//! `capture --list`: pairs of method and stamp, and with `-i` the interface's support for each.

use std::process::ExitCode;

use serde_json::{Value, json};
use wirestamp_capture::capabilities::{Capabilities, CardStamps, Obstacle, verdict};
use wirestamp_capture::{PAIRS, Pair};

use crate::output::Output;
use crate::target::Target;

/// Prints the list, for `target` if there is one.
pub(super) fn list(target: Option<&Target>, output: Output) -> anyhow::Result<ExitCode> {
    match target {
        None => {
            let documents: Vec<_> = PAIRS.iter().map(document).collect();
            output.result(&documents, |_| {
                "method     stamp\n".to_owned() + &PAIRS.iter().map(line).collect::<String>()
            })?;
        }
        Some(target) => {
            let of = target.query(|| Capabilities::of(&target.interface))?;
            let verdicts: Vec<_> = PAIRS.iter().map(|pair| (pair, verdict(pair, &of))).collect();
            let documents: Vec<_> = verdicts.iter().map(verdict_document).collect();
            output.result(&documents, |_| {
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

fn document(pair: &Pair) -> Value {
    json!({
        "method": pair.method.name(),
        "stamp": pair.stamp.name(),
        "taken": pair.taken,
        "limits": pair.limits,
    })
}

fn verdict_document((pair, verdict): &PairVerdict) -> Value {
    let mut document = document(pair);
    document["possible"] = verdict.is_ok().into();
    document["reason"] = verdict.as_ref().err().map(Obstacle::to_string).into();
    if let Ok(taken) = verdict {
        document["taken"] = (*taken).into();
    }
    document
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
