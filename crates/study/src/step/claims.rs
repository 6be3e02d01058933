//! What the paper finds, and what the data here say of it.

use super::findings::{Data, Findings};
use super::paper::STEP_NS;
use crate::experiment::{Claim, Estimate, Runs};
use crate::replicas::Block;
use crate::report::format::{count, duration};

/// The technique of the paper's Figure 3: the shared ring, stamped by the kernel.
const RING: &str = "ring:kernel";

/// The paper's claims, held against all runs. Smallest steps are compared by their logarithms: they
/// follow deviations, which are spread alike in those whatever their size (Bartlett and Kendall,
/// "The statistical analysis of variance-heterogeneity", 1946).
pub(super) fn claims(runs: &Runs<Block>, findings: &Findings) -> Vec<Claim> {
    let of_ring = findings.techniques.iter().find(|it| it.technique == RING);
    let numbers = of_ring.and_then(|ring| {
        let smallest = duration(ring.smallest_ns?.mean);
        Some(format!(
            "of {} packets a third raised by {smallest} is found 99 times in 100",
            count(findings.packets.into())
        ))
    });
    let data = Data { runs, packets: findings.packets };
    let smallest = data.runs_of(RING).filter_map(|run| data.smallest(run));
    let lead: Vec<_> = smallest.map(|smallest| (smallest / f64::from(STEP_NS)).ln()).collect();
    let lead = Estimate::of(&lead);
    let claim = format!("{STEP_NS} ns are masked by the fluctuations of software stamps");
    vec![Claim::of(claim, vec![lead], &numbers.unwrap_or_default())]
}
