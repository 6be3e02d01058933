//! Claims of the paper, and their verdicts here.

use super::findings::{CellFindings, overheads};
use super::kernel_stamp::AddedByClock;
use super::measured::{Measured, cell};
use super::packets::Stamped;
use super::paper::{Method, PUBLISHED, Published, Traffic};
use super::series::{self, deviation_of_999};
use crate::experiment::{Claim, Estimate, Runs, mean};
use wirestamp_report::estimate::{Sign, coefficient};
use wirestamp_report::format::duration;

/// A figure of a run by which the methods are compared.
struct Measure {
    claim: &'static str,
    of: fn(&[f64]) -> Option<f64>,
    /// The mean of it over the runs of a cell.
    of_cell: fn(&CellFindings) -> Option<f64>,
    /// The lead of raw stamps, from the values of ktime and of raw.
    lead: fn(f64, f64) -> f64,
    /// How it is written.
    text: fn(f64) -> String,
    /// How a lead in user space is written, where the verdict needs it.
    difference: Option<fn(Estimate) -> String>,
    /// Value in the paper's tables.
    published: Option<fn(Method, Traffic) -> Option<f64>>,
    /// The lead of the counter over ktime as clock of the kernel's events.
    in_softirq: fn(&AddedByClock) -> Option<Estimate>,
    /// Whether that lead can answer the question: what else is in the interval between two events must not hide it.
    decides: bool,
    /// How that lead is written.
    lead_text: fn(Estimate) -> String,
    /// Begin of the text with the stamps of BPF programs in the softIRQ; none where they are left out.
    programs: Option<&'static str>,
}

const MEASURES: [Measure; 3] = [
    Measure {
        claim: "a raw stamp has less overhead than one of ktime",
        of: mean,
        of_cell: |cell| Some(cell.mean_ns?.mean),
        lead: |ktime, raw| ktime - raw,
        text: duration,
        difference: None,
        published: Some(|method, pattern| Some(published(method, pattern)?.mean_ns)),
        in_softirq: |ktime| ktime.middle_mean_ns,
        decides: true,
        lead_text: |lead| {
            format!("ktime takes {} longer (mean of the middle half)", lead.text(duration))
        },
        programs: Some(
            "in the softIRQ, the raw stamp of a BPF program, which cannot execute the counter's instruction, takes",
        ),
    },
    Measure {
        claim: "the overhead of a raw stamp deviates less",
        // Without the longest thousandth, whose causes the report lists: one packet of these would hide all others.
        of: deviation_of_999,
        of_cell: |cell| Some(cell.deviation_of_999_ns?.mean),
        // The variance of logarithms of deviations does not depend on their size (Bartlett and Kendall, "The
        // statistical analysis of variance-heterogeneity", 1946).
        lead: |ktime, raw| (ktime / raw).ln(),
        text: duration,
        difference: None,
        published: Some(|method, pattern| Some(published(method, pattern)?.variance)),
        in_softirq: |ktime| ktime.log_deviation_ratio,
        decides: false,
        lead_text: |log| {
            format!("the deviation with ktime is {:.2} times that with the counter", log.mean.exp())
        },
        programs: None,
    },
    Measure {
        claim: "with raw stamps the overhead of a packet predicts the next better, by the auto-correlation",
        of: |run| series::autocorrelation(run, 1)?.first().copied(),
        of_cell: |cell| cell.autocorrelation.first().copied(),
        lead: |ktime, raw| raw - ktime,
        text: |correlation| coefficient(Estimate::new(correlation, None)),
        difference: Some(coefficient),
        published: None,
        in_softirq: |ktime| ktime.autocorrelation.map(negated),
        decides: true,
        lead_text: |lead| {
            let direction = if lead.mean < 0.0 { "lower" } else { "higher" };
            let size = coefficient(lead.around(lead.mean.abs()));
            format!("auto-correlation {direction} by {size} with the counter than with ktime")
        },
        programs: Some("in the softIRQ, stamps of BPF programs have"),
    },
];

fn published(method: Method, pattern: Traffic) -> Option<Published> {
    PUBLISHED.into_iter().find(|row| row.method == method && row.pattern == pattern)
}

/// The estimate of the difference in the other direction.
fn negated(Estimate { mean, ci95, .. }: Estimate) -> Estimate {
    Estimate::new(-mean, ci95)
}

/// The lead of raw stamps in user space with each pattern, for each claim.
pub(super) type Leads = [Vec<Option<Estimate>>; 3];

/// The leads of complete repetitions.
pub(super) fn leads(runs: &Runs<Stamped>) -> Leads {
    MEASURES.map(|measure| measure.leads(runs))
}

/// The leads in the claims of a document with this number of repetitions.
pub(super) fn documented_leads(claims: &[Claim], repetitions: u32) -> Leads {
    // Documents have no degrees of freedom.
    let freedom = Some(f64::from(repetitions.saturating_sub(1)));
    MEASURES.map(|measure| {
        let claim = claims.iter().find(|claim| claim.claim == measure.claim);
        let lead = |place: usize| {
            let lead = claim?.lead.get(place).copied().flatten()?;
            Some(Estimate { freedom, ..lead })
        };
        (0..Traffic::ALL.len()).map(lead).collect()
    })
}

/// The paper's claims, with verdicts from the leads in user space, and in the softIRQ where events were recorded.
pub(super) fn claims(leads: Leads, measured: &Measured) -> Vec<Claim> {
    let [overhead, deviation, memory] = MEASURES;
    let [of_overhead, of_deviation, of_memory] = leads;
    let deviation = match deviation.of_steps(measured) {
        // The leads stay in the document, from which the claims are computed again.
        Some(claim) => Claim { lead: of_deviation, ..claim },
        None => deviation.claim(of_deviation, measured),
    };
    let memory = memory.claim(of_memory.clone(), measured);
    let memory = memory.caused_by(|| steps_of_the_counter(measured, &of_memory));
    vec![overhead.claim(of_overhead, measured), deviation, memory]
}

/// An overhead that does not change has one of two values, a step of the counter apart, by the phase of the counter at the
/// first checkpoint, which is another one for each packet.
fn steps_of_the_counter(measured: &Measured, leads: &[Option<Estimate>]) -> Option<String> {
    if !measured.has_two_values() {
        return None;
    }
    let share = |method, pattern| cell(&measured.cells, method, pattern)?.share_of_two_values;
    let (mut shares, mut explained, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for (pattern, lead) in Traffic::ALL.into_iter().zip(leads) {
        let [raw, ktime] = [share(Method::Raw, pattern)?, share(Method::Ktime, pattern)?];
        shares.push(format!(
            "{:.1} % with raw and {:.1} % with ktime for the {}",
            100.0 * raw,
            100.0 * ktime,
            pattern.name()
        ));
        match lead.map(|lead| lead.sign()) {
            Some(Sign::Below) if raw > ktime => explained.push(pattern.name()),
            Some(Sign::Open) => open.push(pattern.name()),
            _ => (),
        }
    }
    let mut cause = format!(
        "most overheads have one of two values, a step of the counter apart ({}); an overhead that does not change gives \
         two such values, and its auto-correlation is then that of the counter's phase",
        shares.join(", ")
    );
    if !explained.is_empty() {
        cause += &format!(". This explains the {}", explained.join(" and the "));
    }
    if !open.is_empty() {
        let open = open.join(" and the ");
        cause += &format!("; for the {open} the difference is not significant");
    }
    Some(cause)
}

impl Measure {
    fn claim(&self, mut lead: Vec<Option<Estimate>>, measured: &Measured) -> Claim {
        let compared = Traffic::ALL.into_iter().zip(&lead);
        let compared =
            compared.filter_map(|(pattern, lead)| self.compared(pattern, *lead, measured));
        let compared = compared.collect::<Vec<_>>().join(", ");
        let mut numbers = Vec::new();
        if !compared.is_empty() {
            numbers.push(format!("in user space, {compared}"));
        }
        if let Some(in_softirq) = measured.ktime().and_then(self.in_softirq) {
            let mut of_events = (self.lead_text)(in_softirq);
            if self.decides {
                lead.push(Some(in_softirq));
            } else {
                of_events += ", but what else is between two events deviates more than both, so that it decides nothing";
            }
            numbers.push(format!("in the softIRQ, as clock of an event, {of_events}"));
        }
        numbers.extend(self.of_programs(&measured.cells_in_softirq));
        Claim::of(self.claim, lead, &numbers.join("; "))
    }

    /// The claim on deviations if the step of the counter decides about them; none otherwise.
    fn of_steps(&self, measured: &Measured) -> Option<Claim> {
        let values = Traffic::ALL.map(|pattern| self.values(&measured.cells, pattern));
        let values: Vec<_> = values.into_iter().flatten().collect();
        if values.is_empty() || !measured.has_two_values() {
            return None;
        }
        let mut reason = format!(
            "in user space most overheads have one of two values, a step of the counter ({}) apart, which dominates their \
             deviation ({})",
            duration(measured.step_ns),
            values.join(", ")
        );
        if measured.ktime().is_some() {
            reason += "; in the softIRQ the rest of the interval deviates more than either clock";
        }
        let requirement =
            "a counter with steps of 1 ns or less, read in the kernel by its instruction";
        Some(Claim::not_the_same_question(self.claim, &reason, requirement))
    }

    /// Text with the values of raw and ktime for a pattern, the lead where the verdict needs it, and the paper's values; none
    /// without values.
    fn compared(
        &self,
        pattern: Traffic,
        lead: Option<Estimate>,
        measured: &Measured,
    ) -> Option<String> {
        let mut compared = self.values(&measured.cells, pattern)?;
        if let Some((text, lead)) = self.difference.zip(lead) {
            compared += &format!(" (difference {})", text(lead));
        }
        if let Some(published) = self.published {
            let [raw, ktime] =
                [Method::Raw, Method::Ktime].map(|method| published(method, pattern));
            let [raw, ktime] = [raw?, ktime?].map(self.text);
            compared += &format!(" (paper: {raw} against {ktime})");
        }
        Some(compared)
    }

    /// Text with the values of raw and ktime for a pattern.
    fn values(&self, cells: &[CellFindings], pattern: Traffic) -> Option<String> {
        let text = |method| Some((self.text)((self.of_cell)(cell(cells, method, pattern)?)?));
        let (raw, ktime) = (text(Method::Raw)?, text(Method::Ktime)?);
        Some(format!("{raw} against {ktime} for the {}", pattern.name()))
    }

    /// Text with the values of the stamps of BPF programs in the softIRQ.
    fn of_programs(&self, cells: &[CellFindings]) -> Option<String> {
        let begin = self.programs?;
        let values = Traffic::ALL.map(|pattern| self.values(cells, pattern));
        let values: Vec<_> = values.into_iter().flatten().collect();
        (!values.is_empty()).then(|| format!("{begin} {}", values.join(", ")))
    }

    /// The lead of raw with each pattern.
    fn leads(&self, runs: &Runs<Stamped>) -> Vec<Option<Estimate>> {
        // Both patterns of ktime, then both of raw.
        let responses = runs.responses(|run| (self.of)(&overheads(run)));
        let [ktime_call, ktime_video, raw_call, raw_video] =
            responses.try_into().unwrap_or_default();
        let pairs = [(ktime_call, raw_call), (ktime_video, raw_video)];
        pairs.iter().map(|(ktime, raw)| self.lead(ktime, raw)).collect()
    }

    /// The lead of raw within a repetition. Runs without a value are left out.
    fn lead(&self, ktime: &[f64], raw: &[f64]) -> Option<Estimate> {
        let lead = |(ktime, raw): (&f64, &f64)| (self.lead)(*ktime, *raw);
        let leads: Vec<_> = ktime.iter().zip(raw).map(lead).filter(|l| l.is_finite()).collect();
        Estimate::of(&leads)
    }
}
