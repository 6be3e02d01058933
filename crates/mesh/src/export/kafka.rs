//! Export of results to a topic of Apache Kafka, as JSON.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;
use tracing::{info, warn};

use super::poller::{NewResults, Poller};
use crate::Name;
use crate::collector::Measured;
use crate::controller::Sources;
use crate::kafka::{self, Cluster, Partition, RESULTS, Settings};
use crate::member::{Logged, Pause};
use crate::task::Tasks;

/// Max bytes of records that are written together. Brokers accept 1 MB by default.
const WRITE_BYTES: usize = 640 << 10;

/// Writes results to the topic when they are final. While no broker accepts them, they are read later from the collectors.
/// After a restart of the controller, results from before are not exported.
pub struct KafkaExporter {
    settings: Settings,
    topic: Option<Topic>,
    pause: Pause,
}

/// An open topic.
struct Topic {
    cluster: Cluster,
    partitions: u32,
    open: BTreeMap<u32, Partition>,
}

/// A record. Its key is the name of the task.
#[derive(Serialize)]
struct Exported<'a> {
    task: &'a Name,
    number: u64,
    /// A window, as in a response of the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a Measured>,
    /// A flow, as in a response of the API.
    #[serde(skip_serializing_if = "Option::is_none")]
    flow: Option<Value>,
}

impl KafkaExporter {
    /// An exporter to these brokers, which creates the topic if it is missing.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self { settings, topic: None, pause: Pause::new() }
    }

    /// Exports new results of these tasks forever. Results that exist already are not exported.
    pub async fn run(mut self, sources: Arc<Sources>, tasks: watch::Receiver<Arc<Tasks>>) {
        let mut stored = sources.subscribe();
        let logged = Logged::default();
        let before = tasks.borrow().clone();
        let mut poller = Poller::behind(&before, sources);
        poller.poll(&before);
        loop {
            tokio::select! {
                biased;
                Some(response) = poller.next_response() => {
                    let known = tasks.borrow().clone();
                    match poller.take(response, &known) {
                        Ok(Some((number, new))) => self.export(number, &new, &known).await,
                        Ok(None) => {}
                        Err(error) => {
                            let why = error.to_string();
                            if logged.is_new(&why, Instant::now()) {
                                warn!("cannot read results to export: {why}; retrying");
                            }
                        }
                    }
                }
                changed = stored.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    poller.poll(&tasks.borrow());
                }
            }
        }
    }

    /// Writes new results of a task. Returns when the brokers have them.
    async fn export(&mut self, number: u64, new: &NewResults, tasks: &Tasks) {
        let Some(entered) = tasks.get(&number) else { return };
        let name = &entered.task.name;
        let mut rows = rows(number, name, new).into_iter().peekable();
        while rows.peek().is_some() {
            let (mut group, mut bytes) = (Vec::new(), 0);
            while let Some(row) = rows.next_if(|row| {
                bytes += row.len();
                group.is_empty() || bytes <= WRITE_BYTES
            }) {
                group.push((name.as_ref().as_bytes().to_vec(), row));
            }
            while let Err(error) = self.append(number, group.clone()).await {
                self.topic = None;
                self.pause.after(Err(error)).await;
            }
        }
    }

    async fn append(
        &mut self,
        number: u64,
        records: Vec<(Vec<u8>, Vec<u8>)>,
    ) -> Result<(), kafka::Error> {
        let topic = match &mut self.topic {
            Some(topic) => topic,
            none => none.insert(Topic::open(&self.settings).await?),
        };
        let number = kafka::partition(number, topic.partitions);
        if !topic.open.contains_key(&number) {
            topic.open.insert(number, topic.cluster.partition(RESULTS, number).await?);
        }
        topic.open[&number].append(records).await
    }
}

impl Topic {
    async fn open(settings: &Settings) -> Result<Self, kafka::Error> {
        let cluster = Cluster::connect(settings).await?;
        let partitions = cluster.create(RESULTS, settings.partitions).await?;
        info!("exporting results to {RESULTS} of {}", settings.name());
        Ok(Self { cluster, partitions, open: BTreeMap::new() })
    }
}

/// The records of new results.
fn rows(number: u64, task: &Name, new: &NewResults) -> Vec<Vec<u8>> {
    let row = |result, flow| serde_json::to_vec(&Exported { task, number, result, flow }).ok();
    match new {
        NewResults::Results(results) => {
            results.iter().filter_map(|it| row(Some(it), None)).collect()
        }
        NewResults::Flows(reports) => {
            let flows = reports.iter().filter_map(|it| serde_json::from_str(it).ok());
            flows.filter_map(|it| row(None, Some(it))).collect()
        }
        NewResults::EarlierFlows(..) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn rows_name_the_task() {
        let task = "p".parse().unwrap();
        let read = |new| {
            let rows = rows(7, &task, &new).into_iter();
            rows.map(|it| serde_json::from_slice(&it).unwrap()).collect::<Vec<Value>>()
        };
        let measured = Measured { begin_ns: 5, ..Measured::default() };
        let [window] = read(NewResults::Results(vec![measured])).try_into().unwrap();
        assert_eq!([&window["task"], &window["number"]], [&json!("p"), &json!(7)]);
        assert_eq!(window["result"]["begin_ns"], 5);
        // What is not JSON is left out.
        let flows = ["{\"packets\":3}", "{"].map(str::to_owned).to_vec();
        let flow = json!({"task": "p", "number": 7, "flow": {"packets": 3}});
        assert_eq!(read(NewResults::Flows(flows)), [flow]);
    }
}
