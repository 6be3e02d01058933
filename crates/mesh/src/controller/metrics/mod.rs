//! What Prometheus asks the controller for: the newest results of each task that measures delay, sums of those that
//! count, and how probes do.
//!
//! A task that was ended is not shown any more. Counters of delays begin with the controller; those of tasks that were
//! there before, when they are asked for first.

mod counted;
mod refused;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use jiff::Timestamp;
use tokio::sync::Mutex;
use tracing::debug;
use wirestamp_metrics::Counts;
use wirestamp_results::{Families, Labels, TEXT};

use super::api::{Api, Reader};
use super::refusal::{Refusal, Refusals, Refused};
use super::{Attending, Health, NoAnswer, Sources, clocks};
use crate::Name;
use crate::collector::{Measured, Spread, Step, Stretch};
use crate::task::{Entered, Tasks};

/// Results that are read at once, where many have come since they were last asked for.
const AT_ONCE: u32 = 3600;

/// What Prometheus asks for
#[utoipa::path(get, path = "/metrics", responses(
    (status = 200, description = "The newest of each task, and how probes do", body = String, content_type = TEXT),
    (status = 500, description = "There is something that Prometheus has no way to say", body = Refused),
    Refusals,
))]
pub(super) async fn scrape(
    _: Reader,
    State(api): State<Api>,
) -> Result<impl IntoResponse, Refusal> {
    let tasks = api.plan.subscribe().borrow().clone();
    let mut families = Families::default();
    let version = [("version", env!("CARGO_PKG_VERSION").to_owned())];
    families.info("wirestamp_build_info", "The version of Wirestamp.", &version);
    let totals = api.totals.catch_up(&tasks, &api.sources);
    // Together they wait no longer than each.
    let (told, counted) = tokio::join!(totals, counted::ask(&tasks, &api.sources));
    told?;
    api.totals.show(&tasks, &mut families).await;
    counted::show(counted, &tasks, &mut families)?;
    show_heard(&api.sources.heard().counts(), &mut families);
    for (name, attends) in api.homes.collectors() {
        families.gauge(
            "wirestamp_collector_up",
            "Whether the collector, which is none of the controller's own, attends to the controller.",
            &[("collector", name.to_string())],
            truth(attends),
        );
    }
    for (name, attending) in api.attendance.all() {
        show_probe(&name, &attending, &mut families);
        if let Some(health) = &attending.health {
            clocks::show(&name, health, &tasks, &mut families);
            refused::show(&name, health, &tasks, &mut families);
        }
    }
    let text = families.text().map_err(Refusal::failure)?;
    Ok(([(CONTENT_TYPE, TEXT)], text))
}

/// What each task has measured since the controller was started.
pub(super) struct Totals(StdMutex<BTreeMap<u64, Arc<Mutex<Total>>>>);

struct Total {
    /// Results that begin before are in the counts, or were there before; none, if nobody has said yet what was.
    next: Option<i64>,
    counts: [u64; COUNTS.len()],
    newest: Option<Measured>,
}

/// A count, by the metrics that show it.
struct Count {
    name: &'static str,
    help: &'static str,
    of: fn(&Counts) -> u64,
}

const COUNTS: [Count; 10] = [
    Count { name: "sent", help: "Packets seen at the first point", of: |it| it.sent },
    Count {
        name: "received",
        help: "Packets seen at the second point, copies too",
        of: |it| it.received,
    },
    Count { name: "matched", help: "Packets seen at both points", of: |it| it.matched },
    Count {
        name: "lost",
        help: "Packets seen at the first point and not at the second within the time-out (RFC 7680)",
        of: |it| it.lost,
    },
    Count {
        name: "duplicated",
        help: "Copies at the second point beyond the first of a packet (RFC 5560)",
        of: |it| it.duplicated,
    },
    Count {
        name: "reordered",
        help: "Packets that came after one of their flow that had left later (RFC 4737)",
        of: |it| it.reordered,
    },
    Count {
        name: "unexpected",
        help: "Packets seen at the second point only",
        of: |it| it.unexpected,
    },
    Count {
        name: "identical",
        help: "Packets at the first point that could not be told from an earlier one",
        of: |it| it.identical,
    },
    Count {
        name: "given_up_sent",
        help: "Packets at the first point of which it could not be found out what became",
        of: |it| it.undetermined_sent,
    },
    Count {
        name: "given_up_received",
        help: "Packets at the second point of which it could not be found out where they came from",
        of: |it| it.undetermined_received,
    },
];

impl Totals {
    /// From now on, behind what is there of these tasks.
    pub(super) fn new(tasks: &Tasks) -> Self {
        let unknown = || Total { next: None, ..Total::behind(None) };
        Self(StdMutex::new(tasks.keys().map(|it| (*it, Arc::new(Mutex::new(unknown())))).collect()))
    }

    /// Adds what is new of all tasks, as far as it comes in time.
    async fn catch_up(&self, tasks: &Tasks, sources: &Arc<Sources>) -> Result<(), NoAnswer> {
        let shown = shown(tasks).map(|(number, _)| number);
        let told = sources.together(shown, |sources, number| {
            let total = self.of(number);
            async move { total.lock().await.catch_up(number, &sources).await }
        });
        told.await.into_values().try_for_each(|it| unless_away(it).map(drop))
    }

    /// Shows what there is. Where nobody answers, that is what there was.
    async fn show(&self, tasks: &Tasks, families: &mut Families) {
        for (number, name) in shown(tasks) {
            let total = self.of(number);
            let total = total.lock().await;
            if total.next.is_some() {
                total.show(name, families);
            }
        }
    }

    fn of(&self, task: u64) -> Arc<Mutex<Total>> {
        let mut totals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(totals.entry(task).or_insert_with(|| Arc::new(Mutex::new(Total::behind(None)))))
    }
}

/// Tasks whose totals are shown.
fn shown(tasks: &Tasks) -> impl Iterator<Item = (u64, &Name)> {
    let is_shown = |it: &Entered| it.ended.is_none() && it.task.measure.is_delay();
    let shown = tasks.iter().filter(move |(_, it)| is_shown(it));
    shown.map(|(number, entered)| (*number, &entered.task.name))
}

/// What is told; nothing, where a collector is away: that has a figure of its own.
fn unless_away<T>(told: Result<T, NoAnswer>) -> Result<Option<T>, NoAnswer> {
    match told {
        Err(why @ NoAnswer::Database(_)) => Err(why),
        Err(why) => {
            debug!("results are not told to Prometheus: {why}");
            Ok(None)
        }
        Ok(told) => Ok(Some(told)),
    }
}

impl Total {
    /// Adds what is new. It can be left at any time, and goes on from there.
    async fn catch_up(&mut self, task: u64, sources: &Sources) -> Result<(), NoAnswer> {
        if self.next.is_none() {
            *self = Self::behind(sources.newest(task).await?);
        }
        loop {
            let (step, from) = (Step::AsMeasured, self.next.unwrap_or(i64::MIN));
            let stretch = Stretch { step, from, until: i64::MAX, most: AT_ONCE };
            if !self.add(sources.measured(task, &stretch).await?) {
                return Ok(());
            }
        }
    }

    fn behind(newest: Option<Measured>) -> Self {
        let next = newest.as_ref().map_or(i64::MIN, |it| it.begin_ns.saturating_add(1));
        Self { next: Some(next), counts: [0; COUNTS.len()], newest }
    }

    /// Adds what came next: results are kept in the order of their times. Says whether anything came.
    fn add(&mut self, measured: Vec<Measured>) -> bool {
        for it in &measured {
            for (total, count) in self.counts.iter_mut().zip(&COUNTS) {
                *total += (count.of)(&it.counts);
            }
        }
        let Some(newest) = measured.into_iter().next_back() else { return false };
        self.next = Some(newest.begin_ns.saturating_add(1));
        self.newest = Some(newest);
        true
    }

    fn show(&self, task: &Name, families: &mut Families) {
        let labels = [("task", task.to_string())];
        for (total, Count { name, help, .. }) in self.counts.iter().zip(&COUNTS) {
            let name = format!("wirestamp_task_{name}_packets_total");
            families.counter(&name, &format!("{help}."), &labels, *total);
        }
        if let Some(newest) = &self.newest {
            show_window(newest, &labels, families);
        }
    }
}

/// The newest results of a task, which are of a second.
fn show_window(measured: &Measured, labels: &Labels, families: &mut Families) {
    let Measured { counts, delay_ns, above_minimum_ns, variation_ns, .. } = measured;
    families.seconds(
        "wirestamp_task_window_timestamp_seconds",
        "When the window begins that the newest results are of (UTC).",
        labels,
        measured.begin_ns,
    );
    for Count { name, help, of } in &COUNTS {
        let name = format!("wirestamp_task_window_{name}_packets");
        families.gauge(&name, &format!("{help}, in the newest window."), labels, float(of(counts)));
    }
    if counts.matched + counts.lost > 0 {
        families.gauge(
            "wirestamp_task_loss_ratio",
            "The share of packets that are lost, of those known to be lost or not, in the newest window.",
            labels,
            float(counts.lost) / float(counts.matched + counts.lost),
        );
    }
    let spreads = [
        ("delay", "One-way delay (RFC 7679)", delay_ns),
        ("delay_above_minimum", "Delay above the least one of the window", above_minimum_ns),
        ("delay_variation", "Variation of delay from packet to packet (RFC 3393)", variation_ns),
    ];
    for (name, help, spread) in spreads {
        if let Some(spread) = spread {
            show_spread(name, help, spread, labels, families);
        }
    }
    if let Some(error) = measured.error_ns {
        families.seconds(
            "wirestamp_task_delay_error_seconds",
            "How far any delay of the newest window can be off; not there where nobody keeps the clocks on UTC.",
            labels,
            error,
        );
    }
    if let Some(mos) = measured.mos {
        families.gauge(
            "wirestamp_task_mos",
            "What a call with the codec of the task would have been like in the newest window, 1 to 4.5 (ITU-T G.107).",
            labels,
            mos,
        );
    }
    families.gauge(
        "wirestamp_task_clocks_contradicted",
        "Whether a delay is so far below zero that a clock is worse than it says.",
        labels,
        truth(measured.contradicts_the_clocks),
    );
}

fn show_spread(name: &str, help: &str, spread: &Spread, labels: &Labels, families: &mut Families) {
    let Spread { min, mean, p50, p99, max, .. } = *spread;
    #[expect(clippy::cast_precision_loss, reason = "Prometheus has floats; exact to 104 days")]
    let real = |nanos: i64| nanos as f64;
    let values = [
        ("min", "the least", Some(real(min))),
        ("mean", "the mean", Some(mean)),
        ("p50", "the median", p50.map(real)),
        ("p99", "the 99th percentile", p99.map(real)),
        ("max", "the greatest", Some(real(max))),
    ];
    for (of, which, nanos) in values {
        let Some(nanos) = nanos else { continue };
        let name = format!("wirestamp_task_{name}_{of}_seconds");
        families.gauge(
            &name,
            &format!("{help}: {which} of the newest window."),
            labels,
            nanos / 1e9,
        );
    }
}

fn show_probe(name: &Name, attending: &Attending, families: &mut Families) {
    let labels = [("probe", name.to_string())];
    let Attending { heard, until, health, .. } = attending;
    families.gauge(
        "wirestamp_probe_up",
        "Whether the probe attends to the controller.",
        &labels,
        truth(until.is_none()),
    );
    families.gauge(
        "wirestamp_probe_heard_timestamp_seconds",
        "When the probe was heard of last.",
        &labels,
        seconds_of(*heard),
    );
    if let Some(health) = health {
        show_health(name, health, &labels, families);
    }
}

fn show_health(name: &Name, health: &Health, labels: &Labels, families: &mut Families) {
    let Health { version, clock, .. } = health;
    let info =
        [("probe", name.to_string()), ("version", version.clone()), ("clock", clock.clone())];
    families.info("wirestamp_probe_info", "Its version, and the clock of its stamps.", &info);
    families.gauge(
        "wirestamp_probe_clock_synchronised",
        "Whether somebody keeps its system clock on UTC.",
        labels,
        truth(health.clock_error_ns.is_some()),
    );
    if let Some(error) = health.clock_error_ns {
        families.gauge(
            "wirestamp_probe_clock_error_seconds",
            "How far its system clock can be from UTC.",
            labels,
            float(error) / 1e9,
        );
    }
    families.seconds_total(
        "wirestamp_probe_cpu_seconds_total",
        "Processor time that it has used.",
        labels,
        health.processor_time_ns,
    );
    families.gauge(
        "wirestamp_probe_memory_bytes",
        "Memory that it uses.",
        labels,
        float(health.memory_bytes),
    );
    families.gauge(
        "wirestamp_probe_held_bytes",
        "What it holds for the collector.",
        labels,
        float(health.held_bytes),
    );
    families.gauge(
        "wirestamp_probe_troubles",
        "Parts of tasks that it cannot do.",
        labels,
        float(health.troubles.len() as u64),
    );
    for capture in &health.captures {
        let labels = [("probe", name.to_string()), ("interface", capture.interface.clone())];
        families.counter(
            "wirestamp_probe_capture_packets_total",
            "Packets that came to a capture since it was started.",
            &labels,
            capture.packets,
        );
        families.counter(
            "wirestamp_probe_capture_lost_packets_total",
            "Packets of these that were lost before a task could have them.",
            &labels,
            capture.lost,
        );
    }
}

/// What came from foreign exporters, if somebody listens for them.
fn show_heard(heard: &[(&str, u64)], families: &mut Families) {
    for (what, count) in heard {
        families.counter(
            "wirestamp_digests_total",
            "What came as IPFIX from others, by what was made of it.",
            &[("what", (*what).to_owned())],
            *count,
        );
    }
}

/// Truths are numbers in Prometheus.
fn truth(is_so: bool) -> f64 {
    f64::from(u8::from(is_so))
}

fn seconds_of(time: Timestamp) -> f64 {
    time.as_duration().as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus has floats; exact to 2^53")]
fn float(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests;
