//! `wirestamp lab mesh`.

mod api;
mod nodes;
mod present;
mod relay;
mod results;
#[cfg(feature = "studies")]
pub(super) mod study;
mod traffic;
mod truth;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use clap::Args;
use jiff::SignedDuration;
use tempfile::TempDir;
use wirestamp_capture::Stop;
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::results::next_second;
use wirestamp_lab::{CONTROLLER_V4, MeshLab};

use crate::bottleneck::Bottleneck;
use crate::interrupt::stop_on_signal;
use crate::mesh::node::runtime;
use crate::output::Output;
use api::Api;
use nodes::{Files, Nodes, PORT, Place, Wanted};
use present::{Findings, header, line, text};
use relay::relay;
use results::Results;
use traffic::{TASKS, Traffic, Truth};
use truth::FIRST_DELAY;

/// How often the controller is asked: nothing tells of new results but an answer.
const ASK: Duration = Duration::from_millis(200);

/// How long results may take, once nothing is sent and nobody is cut off any more: longer than nodes take to
/// find each other again.
const LAST_RESULTS: Duration = Duration::from_secs(60);

/// How long traffic runs before nodes are cut off.
const BEFORE_CUT: Duration = Duration::from_secs(2);

#[derive(Args)]
#[command(after_help = "\
A controller and two probes, processes of their own, in a bed of network namespaces: source,
router 1, router 2, sink. The probe `roof` captures where router 1 receives, the probe `cellar`
where the sink does; between them is the bottleneck. They reach the controller over links of
their own. A call is measured by the task `call`, and by the task `load` what fills the
bottleneck every two seconds. In the end the results are compared with what the sender, the
receiver and the bottleneck counted.

Examples:
  wirestamp lab mesh --for 30s --collector
  wirestamp lab mesh --for 90s --cut 60s --keep mesh")]
pub(crate) struct Arguments {
    #[command(flatten)]
    path: Bottleneck,
    /// End after so long, as 30s or 5m; without it, Ctrl-C ends it
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    lasting: Option<Duration>,
    /// Cut the probes off from the controller for so long, two seconds after the traffic has begun
    #[arg(long, value_name = "TIME", value_parser = duration)]
    cut: Option<Duration>,
    /// Let the collector be a process of its own, apart from the controller
    #[arg(long)]
    collector: bool,
    /// Keep logs, results and everything else of the nodes in this folder
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
}

fn duration(text: &str) -> Result<Duration, String> {
    let time: SignedDuration = text.parse().map_err(|_| "expected a time such as 30s or 5m")?;
    match Duration::try_from(time) {
        Ok(time) if time >= Duration::from_secs(1) => Ok(time),
        _ => Err("expected a second at the least".to_owned()),
    }
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    wirestamp_lab::check_privilege()?;
    let folder = Folder::new(arguments.keep.as_deref())?;
    let stop = stop_on_signal()?;
    let clock = ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
    let lab = MeshLab::new(&arguments.path.impairments())?;
    let files = Files(folder.path());
    let begun = Instant::now();
    // A page goes by its own address only, port and all.
    let page = relay(lab.controller(), |own| own)?;
    let place = |host| Place { host, core: None };
    let wanted = Wanted {
        controller: place(lab.controller()),
        has_collector: arguments.collector,
        page: Some(page),
        tasks: &traffic::tasks(),
        probes: &[("roof", place(lab.roof())), ("cellar", place(lab.cellar()))],
    };
    let (nodes, viewer) = Nodes::start(&files, &wanted)?;
    let address = relay(lab.controller(), |_| (CONTROLLER_V4, PORT).into())?;
    let mut mesh = Mesh { nodes, api: Api::new(runtime()?, address, &viewer)?, output };
    let traffic = Traffic::new(&lab)?;
    output.remark(format_args!(
        "controller, {}probes `roof` and `cellar`; what they say is in {}",
        if arguments.collector { "collector, " } else { "" },
        folder.path().display()
    ));
    if !mesh.await_first(&traffic, &stop)? {
        bail!("ended before there was a first delay");
    }
    let first_delay = begun.elapsed();
    let pem = files.viewer();
    let pem = pem.display();
    output.remark(format_args!(
        "first delay after {:.1} s; to look at it meanwhile: http://{page} in a browser, or\n  \
         curl --cert {pem} --cacert {pem} https://{address}/api/v1/tasks/{}/results",
        first_delay.as_secs_f64(),
        TASKS[0].0
    ));
    let (truth, results) = mesh.measure(arguments, &lab, traffic, &clock, &stop)?;
    mesh.nodes.end()?;
    let path = lab.impairments();
    let findings = Findings {
        interrupted: truth.sent.stopped,
        rate_bits_per_s: path.rate_bits_per_s,
        queue_bytes: path.queue_bytes,
        first_delay_s: first_delay.as_secs_f64(),
        cut_s: arguments.cut.map(|cut| cut.as_secs_f64()),
        checks: truth.checks(&results, path, first_delay),
        tasks: results.tasks,
        folder: arguments.keep.clone(),
    };
    output.result(&findings, text)?;
    let is_true = findings.checks.iter().all(|check| check.holds);
    Ok(if is_true { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Where everything is: in a folder that is kept, or in one that goes with this.
enum Folder<'a> {
    Kept(&'a Path),
    Passing(TempDir),
}

impl<'a> Folder<'a> {
    fn new(keep: Option<&'a Path>) -> anyhow::Result<Self> {
        let Some(path) = keep else {
            let folder = tempfile::Builder::new().prefix("wirestamp-mesh-").tempdir();
            return Ok(Self::Passing(folder.context("cannot make a folder")?));
        };
        let cannot = || format!("cannot use the folder {}", path.display());
        fs::create_dir_all(path).with_context(cannot)?;
        if fs::read_dir(path).with_context(cannot)?.next().is_some() {
            bail!("the folder {} is not empty: name another", path.display());
        }
        Ok(Self::Kept(path))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Passing(folder) => folder.path(),
        }
    }
}

/// A mesh that runs.
struct Mesh {
    nodes: Nodes,
    api: Api,
    output: Output,
}

impl Mesh {
    /// Waits until each task has measured the delay of a packet; false if somebody asked to stop before.
    fn await_first(&mut self, traffic: &Traffic<'_>, stop: &Stop) -> anyhow::Result<bool> {
        let mut packets = traffic.try_out()?;
        let deadline = Instant::now() + FIRST_DELAY + FIRST_DELAY;
        while !stop.is_requested() {
            self.nodes.check()?;
            packets.send()?;
            let has_measured = |name| {
                let seconds = self.api.seconds(name, 0)?;
                anyhow::Ok(seconds.iter().any(|second| second.delay_ns.is_some()))
            };
            let measured: anyhow::Result<Vec<_>> =
                TASKS.iter().map(|(name, _)| has_measured(name)).collect();
            match measured {
                Ok(measured) if measured.iter().all(|it| *it) => return Ok(true),
                Err(error) if Instant::now() > deadline => return Err(error),
                Ok(_) if Instant::now() > deadline => {
                    bail!("nothing is measured; --keep FOLDER keeps what the nodes say");
                }
                _ => stop.wait(ASK),
            }
        }
        Ok(false)
    }

    /// Sends traffic and follows what is measured of it, until that is complete.
    fn measure(
        &mut self,
        arguments: &Arguments,
        lab: &MeshLab,
        traffic: Traffic<'_>,
        clock: &ClockService,
        stop: &Stop,
    ) -> anyhow::Result<(Truth, Results)> {
        let mut results = Results::new(next_second()?);
        self.output.remark(format_args!("\n{}", header()));
        let (truth, cut) = thread::scope(|scope| {
            let cut = arguments.cut.map(|lasting| scope.spawn(move || cut(lab, lasting, stop)));
            let truth =
                traffic.send(clock, arguments.lasting, stop, &mut || self.follow(&mut results));
            (truth, cut.map(traffic::join))
        });
        let truth = truth?;
        cut.transpose()?;
        let deadline = Instant::now() + LAST_RESULTS;
        while results.total(|it| it.sent) < truth.sent.sent() && Instant::now() < deadline {
            self.follow(&mut results)?;
            thread::sleep(ASK);
        }
        self.output.remark("");
        Ok((truth, results))
    }

    /// Shows what is new.
    fn follow(&mut self, results: &mut Results) -> anyhow::Result<()> {
        self.nodes.check()?;
        let output = self.output;
        // One that does not answer this time may do so the next.
        if let Err(error) = results.follow(&self.api, |number, task, second| {
            output.remark(line(number, task, second));
        }) {
            output.detail(format_args!("{error:#}"));
        }
        Ok(())
    }
}

/// Cuts the probes off from the controller for a while.
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
    fn it_runs_for_seconds_or_longer() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
        assert!(duration("10ms").unwrap_err().contains("a second at the least"));
        assert!(duration("-1h").unwrap_err().contains("a second at the least"));
        assert!(duration("soon").unwrap_err().contains("such as 30s"));
    }

    #[test]
    fn a_folder_with_something_in_it_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("new");
        assert_eq!(Folder::new(Some(&new)).unwrap().path(), new);
        let refused = Folder::new(Some(folder.path())).err().unwrap().to_string();
        assert!(refused.contains("is not empty"), "{refused}");
    }
}
