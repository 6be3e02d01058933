//! Measures the cost of a stamp in an XDP program, in the driver's softIRQ, and in a tracing program.
//!
//! All stamps are measured in turn in every round, so that a drift of the CPU's frequency affects them equally. The
//! cost of a run without a stamp of the same kind of program is subtracted within a round. Run by `make bench`, as root; prints one table.

#[expect(dead_code, reason = "not every benchmark needs all of it")]
#[path = "../../clock/benches/common/mod.rs"]
mod common;

use std::process::ExitCode;

use common::{machine, quantile};
use wirestamp_capture::softirq_cost::{Cost, Kind, measure};
use wirestamp_clock::Counter;

const ROUNDS: usize = 31;
const FRAMES: u32 = 1_000_000;

/// Median, and the range from the 10th to the 90th percentile.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_unstable_by(f64::total_cmp);
    let [low, median, high] = [0.1, 0.5, 0.9].map(|part| quantile(&values, part));
    format!("{median:>8.1} {low:>8.1} ..{high:>8.1}")
}

fn row(cost: &Cost, unstamped: &[f64]) -> String {
    match &cost.nanos {
        Ok(nanos) => {
            let stamp = nanos.iter().zip(unstamped).map(|(with, without)| with - without);
            let (whole, stamp) = (spread(nanos.clone()), spread(stamp.collect()));
            format!("{:<31}{whole}  {stamp}", cost.stamp)
        }
        Err(obstacle) => format!("{:<31}not loaded: {obstacle}", cost.stamp),
    }
}

fn main() -> ExitCode {
    println!("{}", machine(Counter::select()));
    println!("{ROUNDS} rounds of {FRAMES} frames, in turn; median, p10..p90");
    let costs = match measure(ROUNDS, FRAMES) {
        Ok(costs) => costs,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    for of_kind in costs.chunk_by(|a, b| a.kind == b.kind) {
        let kind = match of_kind[0].kind {
            Kind::Xdp => "XDP, ns per frame",
            Kind::Tracing => "tracing, ns per stamp",
        };
        let unstamped = of_kind[0].nanos.as_deref().unwrap_or_default();
        println!("{kind:<31}{:<29}above no stamp", "");
        of_kind.iter().for_each(|cost| println!("{}", row(cost, unstamped)));
    }
    ExitCode::SUCCESS
}
