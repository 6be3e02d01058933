//! Claims of the paper, and their verdicts here.

use super::findings::StepResult;
use super::paper::STEP_NS;
use crate::experiment::{Claim, Estimate};
use wirestamp_report::format::{count, duration};

/// The technique of the paper's Figure 3: the shared ring, stamped by the kernel.
const RING: &str = "ring:kernel";

/// The paper's claims with verdicts from all runs with its step. A step is masked if a random difference is
/// larger than the measured step.
pub(super) fn claims(findings: &StepResult) -> Vec<Claim> {
    let of_ring = findings.techniques.iter().find(|it| it.technique == RING);
    let step = of_ring.and_then(|ring| ring.steps.iter().find(|step| step.true_ns == STEP_NS));
    let numbers = step.and_then(|step| {
        Some(format!(
            "a third of {} packets was raised by it and measured {} above the rest, and chance makes {} \
             once in 100",
            count(findings.packets.into()),
            duration(step.measured_ns?.mean),
            duration(step.chance_ns?.mean)
        ))
    });
    let lead = step.and_then(|step| Estimate::of(&step.masked_ns));
    let claim = format!("{STEP_NS} ns are masked by the fluctuations of software stamps");
    let cause = || {
        Some(format!(
            "the error of one packet's delay deviates by {}, which masks the step, but the medians of many packets do not \
             fluctuate as much",
            duration(of_ring?.error_deviation_ns?)
        ))
    };
    vec![Claim::of(claim, vec![lead], &numbers.unwrap_or_default()).caused_by(cause)]
}
