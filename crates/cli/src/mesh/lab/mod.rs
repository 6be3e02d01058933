//! `wirestamp lab mesh`.

mod api;
mod arguments;
mod costs;
mod failure;
#[cfg(feature = "kafka")]
mod kafka;
mod nodes;
mod present;
mod relay;
mod results;
mod streams;
#[cfg(feature = "studies")]
pub(super) mod study;
mod traffic;
mod truth;

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use tempfile::TempDir;
use wirestamp_capture::Stop;
use wirestamp_clock::ClockService;
use wirestamp_lab::results::next_second;
use wirestamp_lab::{CONTROLLER_V4, MeshLab};

use crate::clock;
use crate::interrupt::stop_on_signal;
use crate::mesh::node::runtime;
use crate::output::Output;
use api::Api;
pub(crate) use arguments::Arguments;
use costs::Before;
use failure::{Failure, MOVE_AFTER};
use nodes::{Files, Nodes, NodesConfig, PORT, Place};
pub(crate) use present::MeshResult;
use present::{header, line, text};
use relay::relay;
use results::Results;
use streams::TaskStream;
use traffic::{Reference, Traffic};
use truth::FIRST_DELAY;

/// Polling interval of the controller's results, which have no notification.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Timeout of the last results after the traffic and the cut: longer than nodes need to reconnect.
const LAST_RESULTS_TIMEOUT: Duration = Duration::from_secs(60);

/// Time from the start of traffic to the cut.
const BEFORE_CUT: Duration = Duration::from_secs(2);

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    arguments.check()?;
    wirestamp_lab::check_privilege()?;
    let folder = Folder::new(arguments.keep.as_deref())?;
    let stop = stop_on_signal()?;
    let clock = clock::start_service(None)?;
    let lab = MeshLab::new(&arguments.path.impairments())?;
    let tasks = streams::tasks(&lab.impairments, arguments.load())?;
    let files = Files(folder.path());
    let broker = arguments.broker(folder.path(), &lab.controller)?;
    let through = broker.as_ref().map_or("", |_| "Kafka, ");
    let begun = Instant::now();
    // The page accepts only its own address and port.
    let page = relay(&lab.controller, |own| own)?;
    let place = |host| Place { host, core: None };
    let config = NodesConfig {
        controller: place(&lab.controller),
        collectors: arguments.collectors(),
        move_after: arguments.kill_collector.map(|_| MOVE_AFTER),
        broker,
        page: Some(page),
        tasks: &streams::task_file(&tasks),
        probes: &[("roof", place(lab.router())), ("cellar", place(lab.sink()))],
    };
    let (nodes, viewer) = Nodes::start(&files, config)?;
    let address = relay(&lab.controller, |_| (CONTROLLER_V4, PORT).into())?;
    let mut mesh =
        Mesh { nodes, api: Api::new(runtime()?, address, &viewer)?, failure: None, output };
    let traffic = Traffic::new(&lab, &tasks)?;
    let collectors = match arguments.collectors() {
        0 => String::new(),
        1 => "collector, ".to_owned(),
        count => format!("{count} collectors, "),
    };
    output.remark(format_args!(
        "controller, {collectors}{through}probes `roof` and `cellar`; their logs are in {}",
        folder.path().display()
    ));
    if !mesh.await_first(&tasks, &traffic, &stop)? {
        bail!("interrupted before the first delay was measured");
    }
    let first_delay = begun.elapsed();
    let pem = files.viewer();
    let pem = pem.display();
    output.remark(format_args!(
        "first delay after {:.1} s; to view results: http://{page} in a browser, or\n  \
         curl --cert {pem} --cacert {pem} https://{address}/api/v1/tasks/call/results",
        first_delay.as_secs_f64(),
    ));
    let mut results = Results::new(&tasks, next_second()?);
    let before = Before::now(&mesh.nodes, arguments.kafka_bytes(folder.path()))?;
    let reference = mesh.measure(arguments, &lab, traffic, &mut results, &clock, &stop)?;
    let costs = before.costs(&mesh.nodes, &results, arguments.kafka_bytes(folder.path()))?;
    mesh.nodes.end()?;
    let path = &lab.impairments;
    let (killed_collector, moved_after) = mesh.failure.and_then(Failure::replaced).unzip();
    let result = MeshResult {
        interrupted: reference.sent.stopped,
        rate_bits_per_s: path.rate_bits_per_s,
        queue_bytes: path.queue_bytes,
        first_delay_s: first_delay.as_secs_f64(),
        cut_s: arguments.cut.map(|cut| cut.as_secs_f64()),
        killed_collector,
        moved_after_s: moved_after.map(|it| it.as_secs_f64()),
        checks: reference.checks(&results, path, first_delay),
        costs,
        tasks: results.tasks,
        folder: arguments.keep.clone(),
    };
    output.result(&result, text)?;
    let is_true = result.checks.iter().all(|check| check.holds);
    Ok(if is_true { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The folder of all data: kept, or removed at the end.
enum Folder<'a> {
    Kept(&'a Path),
    Temporary(TempDir),
}

impl<'a> Folder<'a> {
    fn new(keep: Option<&'a Path>) -> anyhow::Result<Self> {
        let Some(path) = keep else {
            let folder = tempfile::Builder::new().prefix("wirestamp-mesh-").tempdir();
            return Ok(Self::Temporary(folder.context("cannot create a folder")?));
        };
        let cannot = || format!("cannot use the folder {}", path.display());
        fs::create_dir_all(path).with_context(cannot)?;
        if fs::read_dir(path).with_context(cannot)?.next().is_some() {
            bail!("cannot use the folder {}: it is not empty; use another", path.display());
        }
        Ok(Self::Kept(path))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }
}

/// A running mesh.
struct Mesh {
    nodes: Nodes,
    api: Api,
    /// The failure of a collector, if one is planned.
    failure: Option<Failure>,
    output: Output,
}

impl Mesh {
    /// Waits until each task has measured a delay; false if the stop was requested before.
    fn await_first(
        &mut self,
        tasks: &[TaskStream],
        traffic: &Traffic<'_>,
        stop: &Stop,
    ) -> anyhow::Result<bool> {
        let mut packets = traffic.test_packets()?;
        let deadline = Instant::now() + FIRST_DELAY + FIRST_DELAY;
        while !stop.is_requested() {
            self.nodes.check()?;
            packets.send()?;
            let has_measured = |task: &TaskStream| {
                let seconds = self.api.seconds(&task.name, 0)?;
                anyhow::Ok(seconds.iter().any(|second| second.delay_ns.is_some()))
            };
            let measured: anyhow::Result<Vec<_>> = tasks.iter().map(has_measured).collect();
            match measured {
                Ok(measured) if measured.iter().all(|it| *it) => return Ok(true),
                Err(error) if Instant::now() > deadline => return Err(error),
                Ok(_) if Instant::now() > deadline => {
                    bail!("no delay was measured; add --keep FOLDER to save the nodes' logs");
                }
                _ => stop.wait(POLL_INTERVAL),
            }
        }
        Ok(false)
    }

    /// Sends traffic and reads the results until they are complete.
    fn measure(
        &mut self,
        arguments: &Arguments,
        lab: &MeshLab,
        traffic: Traffic<'_>,
        results: &mut Results,
        clock: &ClockService,
        stop: &Stop,
    ) -> anyhow::Result<Reference> {
        self.failure = Failure::after(arguments.kill_collector, &self.nodes)?;
        self.output.remark(format_args!("\n{}", header()));
        let (reference, cut) = thread::scope(|scope| {
            let cut = arguments.cut.map(|lasting| scope.spawn(move || cut(lab, lasting, stop)));
            let reference =
                traffic.send(clock, arguments.lasting, stop, &mut || self.poll_results(results));
            (reference, cut.map(traffic::join))
        });
        let reference = reference?;
        cut.transpose()?;
        let deadline = Instant::now() + LAST_RESULTS_TIMEOUT;
        while results.total(|it| it.sent) < reference.sent.sent() && Instant::now() < deadline {
            self.poll_results(results)?;
            thread::sleep(POLL_INTERVAL);
        }
        self.output.remark("");
        Ok(reference)
    }

    /// Reads and prints new results, and makes the planned failure happen.
    fn poll_results(&mut self, results: &mut Results) -> anyhow::Result<()> {
        self.nodes.check()?;
        let output = self.output;
        if let Some(failure) = &mut self.failure {
            failure.advance(&mut self.nodes, output)?;
        }
        // A failed request is repeated at the next poll.
        if let Err(error) = results.poll(&self.api, |number, task, second| {
            output.remark(line(number, task, second));
        }) {
            output.detail(format_args!("{error:#}"));
        }
        Ok(())
    }
}

/// Disconnects the probes from the controller for a time.
fn cut(lab: &MeshLab, lasting: Duration, stop: &Stop) -> anyhow::Result<()> {
    stop.wait(BEFORE_CUT);
    lab.cut_off()?;
    stop.wait(lasting);
    Ok(lab.join_again()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_that_is_not_empty_is_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("new");
        assert_eq!(Folder::new(Some(&new)).unwrap().path(), new);
        let refused = Folder::new(Some(folder.path())).err().unwrap().to_string();
        assert!(refused.contains("is not empty"), "{refused}");
    }
}
