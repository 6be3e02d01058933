//! The nodes: processes of this program in the test bed's namespaces, and a broker of Kafka between them.

mod files;
mod process;

use std::ffi::OsString;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use wirestamp_lab::{CONTROLLER_V4, Netns};
use wirestamp_mesh::pki::{Credentials, Token};

pub(super) use files::Files;
use files::Joining;
pub(super) use process::{Kind, Usage};
use process::{Launch, Process};

/// Port of the controller, and of the first separate collector, in the controller's namespace.
pub(super) const PORT: u16 = 4747;
const COLLECTOR_PORT: u16 = 4749;

/// Timeout of a collector's registration and of a broker's start, and polling interval of nodes, which have no start
/// notification.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Name of the broker's process.
const BROKER: &str = "kafka";

/// A controller, probes, and optionally collectors and a broker. Kills running processes on drop.
pub(super) struct Nodes {
    processes: Vec<Process>,
}

/// The nodes to start.
pub(super) struct NodesConfig<'a> {
    pub(super) controller: Place<'a>,
    /// Number of separate collectors, in the controller's namespace.
    pub(super) collectors: u16,
    /// Time after which the tasks of a collector that is away move to others; the default of the controller if none.
    pub(super) move_after: Option<Duration>,
    /// The broker through which batches pass, in the controller's namespace.
    pub(super) broker: Option<Broker>,
    /// Address of the page in the controller's namespace.
    pub(super) page: Option<SocketAddr>,
    /// The content of the task file.
    pub(super) tasks: &'a str,
    pub(super) probes: &'a [(&'static str, Place<'a>)],
}

/// Namespace and core of a node.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) host: &'a Netns,
    /// The core to which it is pinned, if any.
    pub(super) core: Option<usize>,
}

/// How to start a broker of Kafka.
pub(super) struct Broker {
    pub(super) address: SocketAddr,
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
}

impl Nodes {
    /// Starts the nodes with their files. Returns the viewer's credentials.
    pub(super) fn start(
        files: &Files<'_>,
        config: NodesConfig<'_>,
    ) -> anyhow::Result<(Self, Credentials)> {
        let collectors = collector_names(config.collectors);
        let probes = config.probes.iter().map(|(name, _)| *name);
        let joining = files.create(config.tasks, probes, &collectors)?;
        let mut nodes = Self { processes: Vec::new() };
        let place = config.controller;
        let mut common = Vec::new();
        if let Some(broker) = config.broker {
            common = vec!["--kafka".into(), broker.address.to_string().into()];
            nodes.begin_broker(broker, place, files)?;
        }
        let address = format!("{CONTROLLER_V4}:{PORT}");
        let mut controller = vec![
            "--listen".into(),
            address.clone().into(),
            "--authority".into(),
            files.authority().into_os_string(),
            "--tasks".into(),
            files.tasks().into_os_string(),
        ];
        if let Some(page) = config.page {
            controller.extend(["--page".into(), page.to_string().into()]);
        }
        if let Some(after) = config.move_after {
            controller.extend(["--move-after".into(), format!("{}s", after.as_secs()).into()]);
        }
        if collectors.is_empty() {
            controller.extend(common.clone());
        }
        nodes.begin("controller", Kind::Controller, place, files, controller, None)?;
        nodes.await_port(place.host, (CONTROLLER_V4, PORT).into())?;
        let Joining { probes, collectors: tokens, viewer } = joining;
        for ((name, token), port) in collectors.iter().zip(&tokens).zip(COLLECTOR_PORT..) {
            let listen = format!("{CONTROLLER_V4}:{port}");
            let own =
                ["--controller".into(), address.clone().into(), "--listen".into(), listen.into()];
            let arguments = own.into_iter().chain(common.clone()).collect();
            nodes.begin_collector(name, place, files, arguments, token)?;
        }
        for ((name, place), token) in config.probes.iter().zip(&probes) {
            let arguments = [address.clone().into()].into_iter().chain(common.clone()).collect();
            nodes.begin(name, Kind::Probe, *place, files, arguments, Some(token))?;
        }
        Ok((nodes, viewer))
    }

    /// Starts a broker, and waits until it listens.
    fn begin_broker(
        &mut self,
        Broker { address, program, arguments }: Broker,
        Place { host, core }: Place<'_>,
        Files(folder): &Files<'_>,
    ) -> anyhow::Result<()> {
        let launch = Launch {
            name: BROKER.to_owned(),
            kind: Kind::Broker,
            host: host.clone(),
            core,
            program,
            arguments,
            log: folder.join("kafka.log"),
        };
        self.processes.push(Process::start(launch, &[])?);
        self.await_port(host, address)
    }

    /// Waits until a process listens: a probe that connects too early retries only after a second.
    fn await_port(&mut self, host: &Netns, address: SocketAddr) -> anyhow::Result<()> {
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            self.check()?;
            let reached = host.run(|| TcpStream::connect(address));
            if reached.context("cannot enter the lab")?.is_ok() {
                return Ok(());
            }
            if Instant::now() > deadline {
                let log = self.processes.last().map(Process::last_line).unwrap_or_default();
                bail!("nothing listens at {address}: {log}");
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Starts a collector and waits until it is registered: tasks use the collectors that are connected when they start.
    fn begin_collector(
        &mut self,
        name: &str,
        place: Place<'_>,
        files: &Files<'_>,
        arguments: Vec<OsString>,
        token: &Token,
    ) -> anyhow::Result<()> {
        self.begin(name, Kind::Collector, place, files, arguments, Some(token))?;
        let deadline = Instant::now() + START_TIMEOUT;
        loop {
            self.check()?;
            let Some(collector) = self.processes.last() else { return Ok(()) };
            if collector.has_logged("connected to the controller") {
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!("the {name} did not register: {}", collector.last_line());
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Starts a node. The kernel kills it when the calling thread ends.
    fn begin(
        &mut self,
        name: &str,
        kind: Kind,
        Place { host, core }: Place<'_>,
        Files(folder): &Files<'_>,
        arguments: Vec<OsString>,
        token: Option<&Token>,
    ) -> anyhow::Result<()> {
        let program =
            std::env::current_exe().with_context(|| format!("cannot start the {name}"))?;
        let folder_of = ["--folder".into(), folder.join(name).into_os_string()];
        let command = [kind.to_string().into()].into_iter();
        let launch = Launch {
            name: name.to_owned(),
            kind,
            host: host.clone(),
            core,
            program,
            arguments: command.chain(arguments).chain(folder_of).collect(),
            log: folder.join(format!("{name}.log")),
        };
        let token = token.map(|it| ["--token".into(), it.to_string().into()]);
        self.processes
            .push(Process::start(launch, token.as_ref().map_or(&[], |it| it.as_slice()))?);
        Ok(())
    }

    /// The process ID of a node.
    #[cfg(feature = "studies")]
    pub(super) fn process(&self, name: &str) -> Option<u32> {
        self.processes.iter().find(|it| it.name() == name)?.id()
    }

    /// Checks that all processes are running, except those that were killed.
    ///
    /// # Errors
    /// If one has ended, with the last line of its log.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        self.processes.iter_mut().try_for_each(Process::check)
    }

    /// Name, kind and usage of each process.
    pub(super) fn usage(&self) -> anyhow::Result<Vec<(String, Kind, Usage)>> {
        let usage = |it: &Process| anyhow::Ok((it.name().to_owned(), it.kind(), it.usage()?));
        self.processes.iter().map(usage).collect()
    }

    /// Name of the first separate collector, if there is one.
    pub(super) fn first_collector(&self) -> Option<String> {
        let first = self.processes.iter().find(|it| it.kind() == Kind::Collector);
        first.map(|it| it.name().to_owned())
    }

    /// Kills a process with SIGKILL.
    pub(super) fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        let killed = self.processes.iter_mut().find(|it| it.name() == name);
        killed.map_or(Ok(()), Process::kill)
    }

    /// Starts a killed process again.
    pub(super) fn start_again(&mut self, name: &str) -> anyhow::Result<()> {
        let killed = self.processes.iter_mut().find(|it| it.name() == name);
        killed.map_or(Ok(()), Process::start_again)
    }

    /// Whether the controller has moved the tasks of a collector that is away.
    pub(super) fn has_moved(&self, collector: &str) -> bool {
        let text = format!("the collector {collector} is away: moved");
        self.processes.iter().any(|it| it.kind() == Kind::Controller && it.has_logged(&text))
    }

    /// Ends the processes, the probes first.
    ///
    /// # Errors
    /// If one exits with an error.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        self.check()?;
        while let Some(process) = self.processes.pop() {
            process.end()?;
        }
        Ok(())
    }
}

/// Names of separate collectors. The controller prefers the first ones: they get the first tasks.
fn collector_names(count: u16) -> Vec<String> {
    match count {
        1 => vec!["collector".to_owned()],
        _ => (1..=count).map(|number| format!("collector-{number:02}")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectors_have_ascending_names() {
        assert!(collector_names(0).is_empty());
        assert_eq!(collector_names(1), ["collector"]);
        let names = collector_names(12);
        assert!(names.is_sorted() && names.len() == 12, "{names:?}");
    }
}
