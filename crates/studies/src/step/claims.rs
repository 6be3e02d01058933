//! Claims of the paper and of this project, and their verdicts here.

use super::detection::DetectionCount;
use super::findings::{Step, StepResult};
use super::paper::STEP_NS;
use crate::experiment::{Claim, Estimate};
use wirestamp_report::format::{count, duration};

/// The technique of the paper's Figure 3: the shared ring, stamped by the kernel.
const RING: &str = "ring:kernel";

/// End of the names of techniques whose program takes the stamp.
const RAW: &str = ":raw";

/// The claims with verdicts from all runs: the paper's about single packets, and this project's about their medians.
pub(super) fn claims(findings: &StepResult) -> Vec<Claim> {
    vec![of_single_packets(findings), of_medians(findings)]
}

/// A step is masked if the error of a packet's delay deviates by more than the step.
fn of_single_packets(findings: &StepResult) -> Claim {
    let ring = findings.techniques.iter().find(|it| it.technique == RING);
    let deviation = ring.and_then(|ring| Estimate::of(&ring.error_deviations_ns));
    let lead = deviation.map(|it| it.around(it.mean - f64::from(STEP_NS)));
    let numbers = deviation.map(|it| {
        format!("standard deviation of a packet's error {} with {RING}", it.text(duration))
    });
    let claim = format!(
        "a step of {STEP_NS} ns is masked by the fluctuations of software stamps of single packets"
    );
    Claim::of(claim, vec![lead], &numbers.unwrap_or_default())
}

/// Medians detect the step if it is larger than the threshold, with each kernel or XDP stamp.
fn of_medians(findings: &StepResult) -> Claim {
    let steps = |is_raw: bool| -> Vec<&Step> {
        let techniques = findings.techniques.iter();
        let techniques = techniques.filter(|it| it.technique.ends_with(RAW) == is_raw);
        techniques.filter_map(|it| it.steps.iter().find(|step| step.true_ns == STEP_NS)).collect()
    };
    let lead = |step: &Step| Estimate::of(&step.masked_ns).map(|masked| masked.times(-1.0));
    let leads = steps(false).into_iter().map(lead);
    let claim = format!(
        "medians of {} packets detect a step of {STEP_NS} ns with kernel and XDP stamps",
        count(findings.packets.into())
    );
    let found = |is_raw: bool| {
        let found = steps(is_raw).into_iter().map(|step| step.found);
        found.fold(DetectionCount::default(), DetectionCount::with)
    };
    let [by_kernel, by_program] = [found(false), found(true)];
    let mut numbers = Vec::new();
    if by_kernel.of > 0 {
        numbers.push(format!(
            "detected in {} of {} runs with kernel or XDP stamps, in {} of {} with stamps of a program (raw)",
            count(by_kernel.found),
            count(by_kernel.of),
            count(by_program.found),
            count(by_program.of)
        ));
    }
    numbers.extend(of_ring(findings));
    Claim::goal(claim, leads.collect(), &numbers.join("; "))
}

/// The measured step of the paper's technique, and the threshold.
fn of_ring(findings: &StepResult) -> Option<String> {
    let ring = findings.techniques.iter().find(|it| it.technique == RING)?;
    let step = ring.steps.iter().find(|step| step.true_ns == STEP_NS)?;
    Some(format!(
        "the delay of {} of {} packets was raised by {STEP_NS} ns; measured with {RING}: {}; 1 % of the differences \
         without a step exceed {}",
        count((findings.packets / 3).into()),
        count(findings.packets.into()),
        duration(step.measured_ns?.mean),
        duration(step.chance_ns?.mean)
    ))
}
