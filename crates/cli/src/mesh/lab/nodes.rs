//! The nodes: processes of this program in the test bed's namespaces.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use jiff::{SignedDuration, Timestamp};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use wirestamp_lab::{CONTROLLER_V4, Netns};
use wirestamp_mesh::pki::{Authority, Credentials, Request, Role, Subject, Token};

/// Ports of the controller and of a separate collector, in the controller's namespace.
pub(super) const PORT: u16 = 4747;
const COLLECTOR_PORT: u16 = 4749;

/// Timeout of the collector's registration, and polling interval of nodes, which have no start notification.
const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Validity of a token: enough for a node to start.
const TOKEN_VALIDITY: SignedDuration = SignedDuration::from_mins(10);

/// A controller, probes, and optionally a collector. Kills running processes on drop.
pub(super) struct Nodes {
    nodes: Vec<Node>,
}

/// The nodes to start.
pub(super) struct NodesConfig<'a> {
    pub(super) controller: Place<'a>,
    /// Whether to start a separate collector.
    pub(super) has_collector: bool,
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

struct Node {
    name: &'static str,
    log: PathBuf,
    process: Child,
}

/// The files of the mesh, in one folder.
pub(super) struct Files<'a>(pub(super) &'a Path);

impl Files<'_> {
    fn authority(&self) -> PathBuf {
        self.0.join("authority.sqlite")
    }

    fn tasks(&self) -> PathBuf {
        self.0.join("tasks.toml")
    }

    /// The credentials file of the viewer.
    pub(super) fn viewer(&self) -> PathBuf {
        self.0.join("viewer.pem")
    }

    /// Creates the CA and the task file. Returns tokens for the probes and a collector, and the viewer's credentials.
    fn create(&self, config: &NodesConfig<'_>) -> anyhow::Result<(Vec<Token>, Token, Credentials)> {
        let now = Timestamp::from_second(Timestamp::now().as_second())?;
        let mut authority = Authority::create(&self.authority(), now)?;
        let subject = |name: &str, role| anyhow::Ok(Subject { name: name.parse()?, role });
        let mut tokens = Vec::new();
        for (name, _) in config.probes {
            tokens.push(authority.token(&subject(name, Role::Probe)?, TOKEN_VALIDITY, now)?);
        }
        let store = authority.token(&subject("store", Role::Collector)?, TOKEN_VALIDITY, now)?;
        let request = Request::new()?;
        let viewer = subject("viewer", Role::Viewer)?;
        let issued = authority.issue(&viewer, &request.pem()?, &[], now)?;
        let viewer = Credentials::new(&request, &issued);
        viewer.write(&self.viewer()).context("cannot write")?;
        fs::write(self.tasks(), config.tasks).context("cannot write the tasks")?;
        Ok((tokens, store, viewer))
    }
}

impl Nodes {
    /// Starts the nodes with their files. Returns the viewer's credentials.
    pub(super) fn start(
        files: &Files<'_>,
        config: &NodesConfig<'_>,
    ) -> anyhow::Result<(Self, Credentials)> {
        let (tokens, store, viewer) = files.create(config)?;
        let address = format!("{CONTROLLER_V4}:{PORT}");
        let path = |path: PathBuf| path.into_os_string();
        let mut nodes = Self { nodes: Vec::new() };
        let mut controller = vec![
            "--listen".into(),
            address.clone().into(),
            "--authority".into(),
            path(files.authority()),
            "--tasks".into(),
            path(files.tasks()),
        ];
        if let Some(page) = config.page {
            controller.extend(["--page".into(), page.to_string().into()]);
        }
        nodes.begin("controller", "controller", config.controller, files, &controller)?;
        nodes.await_controller(config.controller.host)?;
        if config.has_collector {
            nodes.begin_collector(config.controller, files, &address, &store)?;
        }
        for ((name, place), token) in config.probes.iter().zip(tokens) {
            let probe = [address.clone().into(), "--token".into(), token.to_string().into()];
            nodes.begin(name, "probe", *place, files, &probe)?;
        }
        Ok((nodes, viewer))
    }

    /// Waits until the controller listens: a probe that connects too early retries only after a second.
    fn await_controller(&mut self, host: &Netns) -> anyhow::Result<()> {
        loop {
            self.check()?;
            let reached = host.run(|| TcpStream::connect((CONTROLLER_V4, PORT)));
            if reached.context("cannot enter the lab")?.is_ok() {
                return Ok(());
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Starts the collector and waits until it is registered: tasks use the collector that is connected when they start.
    fn begin_collector(
        &mut self,
        place: Place<'_>,
        files: &Files<'_>,
        controller: &str,
        token: &Token,
    ) -> anyhow::Result<()> {
        let listen = format!("{CONTROLLER_V4}:{COLLECTOR_PORT}");
        let token = token.to_string();
        let arguments =
            ["--controller", controller, "--listen", &listen, "--token", &token].map(Into::into);
        self.begin("collector", "collector", place, files, &arguments)?;
        let log = files.0.join("collector.log");
        let deadline = Instant::now() + COLLECTOR_TIMEOUT;
        while !fs::read_to_string(&log)
            .is_ok_and(|text| text.contains("connected to the controller"))
        {
            self.check()?;
            if Instant::now() > deadline {
                bail!("the collector did not register: {}", last_line(&log));
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Starts a node. The kernel kills it when the calling thread ends.
    fn begin(
        &mut self,
        name: &'static str,
        command: &str,
        Place { host, core }: Place<'_>,
        Files(folder): &Files<'_>,
        arguments: &[OsString],
    ) -> anyhow::Result<()> {
        let log = folder.join(format!("{name}.log"));
        let cannot = || format!("cannot start the {name}");
        let log_file =
            File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut node = host.command(std::env::current_exe().with_context(cannot)?);
        node.arg(command)
            .args(arguments)
            .arg("--folder")
            .arg(folder.join(name))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log_file)
            // Ctrl-C goes to this process only, which ends the nodes after their last results.
            .process_group(0);
        let process = on_core(core, || node.spawn().with_context(cannot))?;
        self.nodes.push(Node { name, log, process });
        Ok(())
    }

    /// The process ID of a node.
    #[cfg(feature = "studies")]
    pub(super) fn process(&self, name: &str) -> Option<u32> {
        self.nodes.iter().find(|node| node.name == name).map(|node| node.process.id())
    }

    /// Checks that all nodes are running.
    ///
    /// # Errors
    /// If one has ended, with the last line of its log.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        for Node { name, log, process } in &mut self.nodes {
            if let Some(status) = process.try_wait()? {
                bail!("the {name} has ended ({status}): {}", last_line(log));
            }
        }
        Ok(())
    }

    /// Ends the nodes, the probes first.
    ///
    /// # Errors
    /// If one exits with an error.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        self.check()?;
        while let Some(mut node) = self.nodes.pop() {
            interrupt(&node.process)?;
            let status = node.process.wait()?;
            if !status.success() {
                bail!("the {} failed ({status}): {}", node.name, last_line(&node.log));
            }
        }
        Ok(())
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for Node { process, .. } in &mut self.nodes {
            // Fails if it has already ended.
            drop(process.kill().and_then(|()| process.wait()));
        }
    }
}

/// Runs `start` pinned to a core, which the started process inherits.
fn on_core<T>(core: Option<usize>, start: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
    let Some(core) = core else { return start() };
    let before = sched_getaffinity(None).context("cannot see which cores there are")?;
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only).with_context(|| format!("cannot run on core {core}"))?;
    let started = start();
    sched_setaffinity(None, &before).context("cannot use other cores again")?;
    started
}

fn interrupt(process: &Child) -> io::Result<()> {
    let id = i32::try_from(process.id()).ok().and_then(Pid::from_raw);
    let id = id.ok_or(io::ErrorKind::InvalidInput)?;
    Ok(kill_process(id, Signal::INT)?)
}

fn last_line(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().last().unwrap_or("its log is empty").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_on_a_core_restores_the_affinity() {
        let before = sched_getaffinity(None).unwrap();
        let last = (0..before.count() as usize).rfind(|core| before.is_set(*core)).unwrap();
        let inside = on_core(Some(last), || Ok(sched_getaffinity(None)?)).unwrap();
        assert!(inside.count() == 1 && inside.is_set(last));
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
