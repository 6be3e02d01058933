//! The demo's result as a report.

use wirestamp_clock::{Time, Utc};
use wirestamp_metrics::Config as Correlation;

use super::recorder::{Recorder, Stream};
use super::result::{DemoResult, StreamResult, millis};
use wirestamp_report::{Circumstances, date};

/// Report page of a run that began at `started`.
pub(super) fn report(
    findings: &DemoResult,
    recorder: &Recorder,
    started: Time<Utc>,
) -> wirestamp_report::Report {
    let streams = recorder.streams.iter().zip(&findings.streams);
    wirestamp_report::Report {
        title: "Wirestamp demo: a call, a video and a burst across a bottleneck".into(),
        generated_at: format!("{} UTC", date(started)),
        summary: summary(findings),
        machine: machine(findings),
        streams: streams.map(|(stream, found)| self::stream(stream, found, started)).collect(),
        checks: findings.checks.clone(),
        ledgers: findings
            .taps
            .iter()
            .map(|tap| wirestamp_report::Ledger::of(&tap.facts.interface, &tap.ledger))
            .collect(),
        files: files(findings),
        commands: commands(findings),
    }
}

fn summary(findings: &DemoResult) -> Vec<String> {
    let mut summary = vec![format!(
        "Three streams were sent through a router whose outgoing link carries {} Mbit/s and \
             whose queue holds {} bytes, and captured before and behind it.",
        findings.rate_bits_per_s / 1_000_000,
        findings.queue_bytes
    )];
    summary
        .extend(findings.streams.iter().map(|found| format!("{}: {}", found.name, verdict(found))));
    if findings.interrupted {
        summary.push("The run was interrupted; the figures are those of the part that ran.".into());
    }
    summary.extend(findings.notes.iter().map(|note| format!("Note: {note}.")));
    summary
}

/// Loss, reordering and delay of a stream, in a sentence.
pub(super) fn verdict(found: &StreamResult) -> String {
    let counts = found.quality.counts();
    let Some(delay) = found.quality.delay().summary() else {
        return "nothing arrived.".into();
    };
    let of = |count: u64, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let harm: Vec<_> = [
        of(counts.lost, "lost"),
        of(counts.reordered, "out of order"),
        of(counts.duplicated, "duplicated"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let harm =
        if harm.is_empty() { "none lost, duplicated or reordered".into() } else { harm.join(", ") };
    format!(
        "{} packets, {harm}; mean delay {:.1} ms, p99 {:.1} ms.",
        counts.sent,
        delay.mean / 1e6,
        millis(delay.p99),
    )
}

fn stream(stream: &Stream, found: &StreamResult, started: Time<Utc>) -> wirestamp_report::Stream {
    let quality = &stream.quality;
    let counts = quality.counts();
    let seconds = |time: Time<Utc>| millis((time - started).as_nanos()) / 1e3;
    let [at_a, at_b] = stream.interarrival();
    wirestamp_report::Stream {
        name: found.name.into(),
        description: found.pattern.clone(),
        verdict: verdict(found),
        sent: counts.sent,
        received: counts.matched,
        lost: counts.lost,
        duplicated: counts.duplicated,
        reordered: counts.reordered,
        delay: quality.delay().summary(),
        variation: quality.variation().summary(),
        clock_error_ns: quality.clock_error().map(|error| error.max.as_nanos()),
        delays: stream.delays.iter().map(|&(at, d)| (seconds(at), d.as_nanos())).collect(),
        lost_at: stream.lost.iter().copied().map(seconds).collect(),
        interarrival: vec![("at tap A".into(), at_a), ("at tap B".into(), at_b)],
    }
}

fn machine(findings: &DemoResult) -> Vec<(String, String)> {
    let circumstances = Circumstances::here();
    let clock = &findings.clock;
    let mut rows = vec![
        ("Kernel".to_owned(), circumstances.kernel),
        ("Processor".to_owned(), circumstances.processor),
        (
            "Clock".to_owned(),
            format!(
                "{}, {:.6} MHz within {:.3} ppm",
                clock.selected,
                clock.frequency_hz / 1e6,
                clock.rate_error_ppm
            ),
        ),
        (
            "A stamp against system time".to_owned(),
            format!(
                "within {} ns; steps of the clock during the run: {}",
                clock.error_ns, clock.steps
            ),
        ),
        (
            "A packet counts as lost after".to_owned(),
            format!("{} ms", millis(Correlation::default().timeout.as_nanos())),
        ),
    ];
    for tap in &findings.taps {
        let Some(lag) = tap.figures.acquisition_lag_ns.summary() else { continue };
        let facts = &tap.facts;
        rows.push((
            format!("Stamps at {}", facts.interface),
            format!(
                "{} {}, {}; after the kernel's own stamp by {:.1} µs (median), {:.1} µs (99 %)",
                facts.method,
                facts.stamp,
                facts.taken,
                millis(lag.p50) * 1e3,
                millis(lag.p99) * 1e3,
            ),
        ));
    }
    rows
}

fn files(findings: &DemoResult) -> Vec<(String, String)> {
    let [a, b] = &findings.captures;
    let describe = |what: &str| format!("{what}, pcapng with nanoseconds; opens in Wireshark");
    vec![
        (a.display().to_string(), describe("the packets before the router")),
        (b.display().to_string(), describe("the packets behind it")),
    ]
}

fn commands(findings: &DemoResult) -> Vec<String> {
    let [a, b] = &findings.captures;
    let (a, b) = (a.display(), b.display());
    vec![
        format!("wirestamp delay {a} {b}"),
        format!("tcpdump -n --nano -tt -r {b} | head"),
        format!("tshark -r {b} -q -z conv,udp"),
    ]
}
