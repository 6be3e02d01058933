//! What a run costs: processor time and memory of each process.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_metrics::numeric::count_to_f64;

use super::nodes::{Kind, Nodes, Usage};
use super::results::Results;

/// The costs of a run, from the start of the traffic until all results were read.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Costs {
    /// Length of this time, in seconds.
    pub(super) interval_s: f64,
    /// Packets observed at the points of all tasks, by their results.
    pub(super) observations: u64,
    /// Processor time of the probes and of the nodes that store the results, per observation, in nanoseconds; null
    /// without observations.
    pub(super) processor_time_per_observation_ns: Option<f64>,
    /// Processor time of Kafka per observation, in nanoseconds; null without Kafka or observations.
    pub(super) kafka_processor_time_per_observation_ns: Option<f64>,
    /// Bytes that Kafka stored of the batches, in one replica; null without Kafka.
    pub(super) kafka_bytes: Option<u64>,
    /// The same per observation.
    pub(super) kafka_bytes_per_observation: Option<f64>,
    /// Each process, in the order of their start.
    pub(super) processes: Vec<ProcessCosts>,
}

/// The costs of a process.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ProcessCosts {
    /// Name of the node.
    pub(super) name: String,
    /// What the process is.
    pub(super) kind: Kind,
    /// Processor time of all threads, in nanoseconds, in steps of a clock tick (10 ms on most machines).
    pub(super) processor_time_ns: u64,
    /// Peak of the resident memory since the start of the process, in bytes; null if it is unknown.
    pub(super) peak_memory_bytes: Option<u64>,
}

/// The state at the start of the traffic.
pub(super) struct Before {
    at: Instant,
    usage: BTreeMap<String, Usage>,
    kafka_bytes: Option<u64>,
}

impl Before {
    pub(super) fn now(nodes: &Nodes, kafka_bytes: Option<u64>) -> anyhow::Result<Self> {
        let usage = nodes.usage()?.into_iter().map(|(name, _, usage)| (name, usage));
        Ok(Self { at: Instant::now(), usage: usage.collect(), kafka_bytes })
    }

    /// The costs since then.
    pub(super) fn costs(
        &self,
        nodes: &Nodes,
        results: &Results,
        kafka_bytes: Option<u64>,
    ) -> anyhow::Result<Costs> {
        let observations = results.total(|it| it.sent.saturating_add(it.received));
        let kafka_bytes = kafka_bytes.zip(self.kafka_bytes);
        let kafka_bytes = kafka_bytes.map(|(now, before)| now.saturating_sub(before));
        let processes = self.processes(nodes.usage()?);
        Ok(costs(self.at.elapsed(), observations, kafka_bytes, processes))
    }

    fn processes(&self, usage: Vec<(String, Kind, Usage)>) -> Vec<ProcessCosts> {
        let process = |(name, kind, now): (String, Kind, Usage)| {
            let before = self.usage.get(&name).copied().unwrap_or_default();
            let time = now.processor_time.saturating_sub(before.processor_time);
            ProcessCosts {
                name,
                kind,
                processor_time_ns: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
                peak_memory_bytes: now.peak_memory,
            }
        };
        usage.into_iter().map(process).collect()
    }
}

fn costs(
    interval: Duration,
    observations: u64,
    kafka_bytes: Option<u64>,
    processes: Vec<ProcessCosts>,
) -> Costs {
    let has = |kind| processes.iter().any(|it| it.kind == kind);
    let time = |is_counted: &dyn Fn(Kind) -> bool| -> u64 {
        let counted = processes.iter().filter(|it| is_counted(it.kind));
        counted.map(|it| it.processor_time_ns).sum()
    };
    let per_observation =
        |value: u64| (observations > 0).then(|| count_to_f64(value) / count_to_f64(observations));
    // The controller stores the results itself if there is no separate collector.
    let stores = if has(Kind::Collector) { Kind::Collector } else { Kind::Controller };
    let kafka = has(Kind::Broker).then(|| time(&|kind| kind == Kind::Broker));
    Costs {
        interval_s: interval.as_secs_f64(),
        observations,
        processor_time_per_observation_ns: per_observation(time(&|kind| {
            kind == Kind::Probe || kind == stores
        })),
        kafka_processor_time_per_observation_ns: kafka.and_then(per_observation),
        kafka_bytes,
        kafka_bytes_per_observation: kafka_bytes.and_then(per_observation),
        processes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(kind: Kind, processor_time_ns: u64) -> ProcessCosts {
        ProcessCosts { name: kind.to_string(), kind, processor_time_ns, peak_memory_bytes: None }
    }

    #[test]
    fn controller_counts_only_if_it_stores_the_results() {
        let nodes = || vec![process(Kind::Controller, 1000), process(Kind::Probe, 200)];
        let of = |processes| costs(Duration::from_secs(1), 10, None, processes);
        assert_eq!(of(nodes()).processor_time_per_observation_ns, Some(120.0));
        let mut separate = nodes();
        separate.extend([process(Kind::Collector, 300), process(Kind::Collector, 100)]);
        assert_eq!(of(separate).processor_time_per_observation_ns, Some(60.0));
    }

    #[test]
    fn kafka_is_counted_apart() {
        let nodes = vec![process(Kind::Broker, 500), process(Kind::Controller, 100)];
        let found = costs(Duration::from_secs(1), 10, Some(300), nodes);
        assert_eq!(found.processor_time_per_observation_ns, Some(10.0));
        assert_eq!(found.kafka_processor_time_per_observation_ns, Some(50.0));
        assert_eq!(found.kafka_bytes_per_observation, Some(30.0));
    }

    #[test]
    fn costs_without_observations_are_unknown() {
        let found = costs(Duration::from_secs(1), 0, Some(0), vec![process(Kind::Controller, 9)]);
        assert_eq!(found.processor_time_per_observation_ns, None);
        assert_eq!(found.kafka_processor_time_per_observation_ns, None);
        assert_eq!(found.kafka_bytes_per_observation, None);
    }

    #[test]
    fn usage_before_the_traffic_is_not_counted() {
        let usage =
            |millis| Usage { processor_time: Duration::from_millis(millis), peak_memory: None };
        let before = Before {
            at: Instant::now(),
            usage: [("roof".to_owned(), usage(30))].into(),
            kafka_bytes: None,
        };
        let found = before.processes(vec![
            ("roof".to_owned(), Kind::Probe, usage(50)),
            ("cellar".to_owned(), Kind::Probe, usage(10)),
        ]);
        let times: Vec<_> = found.iter().map(|it| it.processor_time_ns).collect();
        assert_eq!(times, [20_000_000, 10_000_000]);
    }
}
