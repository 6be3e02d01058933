//! `wirestamp clock`.

use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_clock::vdso::{ExactConversion, KernelClock, PROOF_READS};
use wirestamp_clock::{
    ClockService, ClockSources, ClockStatus, Counter, Phc, Span, Survey, SyncStatus, VmClock,
    survey, utc_error,
};

use crate::interrupt::stop_on_signal;
use crate::output::{Output, time};
use crate::parse::seconds;
use crate::table::table;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Calibrate for this many seconds; longer gives a smaller rate error
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0,
          allow_negative_numbers = true, value_parser = seconds)]
    duration: f64,
    /// Use this source instead of the automatically chosen one
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
}

/// This machine's clocks.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Clocks")]
pub(crate) struct Document {
    #[serde(flatten)]
    survey: Survey,
    /// Bound of the error of `frequency_hz`, in parts per million.
    rate_error_ppm: f64,
    /// Error bound of a stamp against system time, in nanoseconds.
    error_ns: i64,
    /// Frequency of the source in use against `CLOCK_MONOTONIC_RAW`, in hertz.
    frequency_hz: f64,
    /// Smallest usual step of the source in use, in nanoseconds, rounded up.
    granularity_ns: i64,
    /// Steps of the system clock and disruptions of the source during the calibration.
    steps: u32,
    /// Why migrations are not reported by the hypervisor. Null if they are.
    vm_clock: Option<String>,
    /// How stamps are converted: by the `kernel`'s own conversion (vDSO), or by interpolation between `anchors`.
    #[schemars(extend("enum" = ["kernel", "anchors"]))]
    conversion: &'static str,
    /// The kernel's own conversion of the counter. Null if it is not readable, or differs from the kernel's clocks.
    exact_conversion: Option<Exact>,
    /// Why it cannot be read, or is wrong. Null if it is correct.
    no_exact_conversion: Option<String>,
    /// Error bound of the system clock against UTC, in nanoseconds. Null if it is not synchronised.
    utc_error_ns: Option<i64>,
    /// Sync statuses that `utc_error_ns` combines.
    #[serde(rename = "keepers")]
    clock_sources: Vec<SyncStatus>,
}

/// The kernel's own conversion of the counter, after comparison with the kernel's clocks at begin and end.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ExactConversion")]
struct Exact {
    /// Source of the page's layout: `type information` of the kernel, or a `table` of known versions.
    #[schemars(extend("enum" = ["type information", "table"]))]
    layout: &'static str,
    /// Readings of the kernel's clocks that agree with it.
    proof_reads: usize,
    /// How often the kernel updates it, per second.
    updates_per_second: f64,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let counter = match &arguments.source {
        Some(name) => Counter::named(name)?,
        None => Counter::select(),
    };
    let survey = with_source(survey(), counter.name());
    let service = ClockService::start(counter).context("cannot calibrate the counter")?;
    let stop = stop_on_signal()?;
    let exact = ExactConversion::of_machine(counter);
    let (begin, updates) = (Instant::now(), exact.as_ref().map_or(0, ExactConversion::updates));
    let deadline = begin + Duration::from_secs_f64(arguments.duration);
    while !stop.is_requested() && Instant::now() < deadline {
        thread::park_timeout(Duration::from_millis(20));
    }
    let status = service.status();
    let exact = exact.map_err(|why| why.to_string()).and_then(|exact| {
        let updates = exact.updates().wrapping_sub(updates);
        let updates_per_second = f64::from(updates) / begin.elapsed().as_secs_f64();
        Exact::proven(&exact, updates_per_second)
    });
    let vm_clock = VmClock::of_machine().err().map(ToString::to_string);
    let clock_sources = ClockSources::query().statuses();
    output.result(&Document::new(survey, status, exact, vm_clock, clock_sources), text)?;
    Ok(ExitCode::SUCCESS)
}

/// The survey with the source in use, which the user may have chosen.
fn with_source(mut survey: Survey, name: &'static str) -> Survey {
    if survey.selected != name {
        let chosen = survey.sources.iter_mut().filter(|source| source.name == name);
        chosen.for_each(|it| {
            it.reason = format!("chosen by --source, instead of {}", survey.selected)
        });
        survey.selected = name;
    }
    survey
}

impl Document {
    fn new(
        survey: Survey,
        status: ClockStatus,
        exact: Result<Exact, String>,
        vm_clock: Option<String>,
        clock_sources: Vec<SyncStatus>,
    ) -> Self {
        let ClockStatus {
            rate_error_ppm,
            error_ns,
            frequency_hz,
            granularity_ns,
            steps,
            exact: by_kernel,
            ..
        } = status;
        let utc_error_ns = utc_error(&clock_sources).ok().map(Span::as_nanos);
        let (exact_conversion, no_exact_conversion) = match exact {
            Ok(exact) => (Some(exact), None),
            Err(why) => (None, Some(why)),
        };
        Self {
            survey,
            rate_error_ppm,
            error_ns,
            frequency_hz,
            granularity_ns,
            steps,
            vm_clock,
            conversion: if by_kernel { "kernel" } else { "anchors" },
            exact_conversion,
            no_exact_conversion,
            utc_error_ns,
            clock_sources,
        }
    }
}

impl Exact {
    /// Compares it with the kernel's clocks again.
    fn proven(exact: &ExactConversion, updates_per_second: f64) -> Result<Self, String> {
        exact.prove().map_err(|wrong| format!("it was right at first, but later {wrong}"))?;
        let layout = if exact.is_described() { "type information" } else { "table" };
        let proof_reads = 2 * KernelClock::ALL.len() * PROOF_READS as usize;
        Ok(Self { layout, proof_reads, updates_per_second })
    }
}

fn exact_text(document: &Document) -> String {
    match (&document.exact_conversion, &document.no_exact_conversion) {
        (Some(Exact { layout, proof_reads, updates_per_second }), _) => format!(
            "readable (layout: {layout}); equal to the kernel's clocks in {proof_reads} of {proof_reads} readings; \
             {updates_per_second:.0} updates/s"
        ),
        (None, why) => format!("not readable: {}", why.as_deref().unwrap_or("unknown")),
    }
}

fn text(document: &Document) -> String {
    let nanos = |value: Option<f64>| value.map_or("-".into(), |ns| format!("{ns:.1} ns"));
    let rows: Vec<_> = document
        .survey
        .sources
        .iter()
        .map(|source| {
            let mark = if source.name == document.survey.selected { "* " } else { "  " };
            let frequency = source.frequency_hz;
            vec![
                format!("{mark}{}", source.name),
                if source.available { "yes" } else { "no" }.to_owned(),
                frequency.map_or("-".into(), |hz| format!("{:.3} MHz", hz / 1e6)),
                nanos(source.granularity_ns),
                nanos(source.cost_ns),
                nanos(source.ordered_cost_ns),
            ]
        })
        .collect();
    let table = table(&["  source", "usable", "frequency", "step", "read", "ordered"], &rows);
    // Left-aligned, unlike the columns of numbers.
    let reasons = document.survey.sources.iter().map(|source| source.reason.as_str());
    let table: String = table
        .lines()
        .zip(std::iter::once("reason").chain(reasons))
        .map(|(line, reason)| format!("{line}  {reason}\n"))
        .collect();
    format!(
        "{table}\n\
         The source marked * makes raw stamps. Calibrated against the system clock:\n  \
         frequency                 {:.6} MHz ± {:.3} ppm\n  \
         usual smallest step       {}\n  \
         error to system time      ±{}\n  \
         steps of the system clock {}\n  \
         migration to another host {}\n  \
         stamps are converted      {}\n  \
         the kernel's conversion   {}\n\n\
         {}",
        document.frequency_hz / 1e6,
        document.rate_error_ppm,
        time(document.granularity_ns),
        time(document.error_ns),
        document.steps,
        match &document.vm_clock {
            None => "reported by the hypervisor (/dev/vmclock0)".to_owned(),
            Some(reason) => format!("detected only if the clocks disagree afterwards: {reason}"),
        },
        match document.conversion {
            "kernel" => "by the kernel's own conversion (vDSO)",
            _ => {
                "by interpolation between anchors, joint reads of the counter and the system clock"
            }
        },
        exact_text(document),
        utc_text(&document.clock_sources),
    )
}

/// Error of the system clock against UTC, and the reports of the clock sources.
fn utc_text(statuses: &[SyncStatus]) -> String {
    let verdict = match utc_error(statuses) {
        Ok(error) => format!("is within {error} of UTC, the max of these reports"),
        Err(source) => format!("is not synchronised to UTC, as {source} reports"),
    };
    let lines: String = statuses.iter().map(|status| format!("  {status}\n")).collect();
    format!("The system clock {verdict}:\n{lines}")
}

/// Starts the clock service; with the network card's clock of this number for hardware stamps
/// ([`wirestamp_capture::capabilities::card_clock`]).
pub(crate) fn start_service(card: Option<u32>) -> anyhow::Result<ClockService> {
    let counter = Counter::select();
    match card.map(Phc::open).transpose()? {
        Some(nic) => {
            ClockService::start_with_nic(counter, nic).context("cannot start the clock service")
        }
        None => ClockService::start(counter).context("cannot calibrate the counter"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_source_has_the_user_as_reason() {
        let found = survey();
        let mut names = found.sources.iter().map(|source| source.name);
        let other = names.find(|&name| name != found.selected).unwrap();
        let survey = with_source(found.clone(), other);
        let reason = |survey: &Survey| {
            survey.sources.iter().find(|it| it.name == survey.selected).unwrap().reason.clone()
        };
        assert_eq!(reason(&survey), format!("chosen by --source, instead of {}", found.selected));
        let as_found = with_source(found.clone(), found.selected);
        assert_eq!(reason(&as_found), reason(&found));
    }
}
