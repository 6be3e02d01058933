//! The nodes: processes of this program in the bed's namespaces.

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

/// Where the controller listens, in its namespace, and a collector of its own.
pub(super) const PORT: u16 = 4747;
const COLLECTOR_PORT: u16 = 4749;

/// How long the collector may take until it attends, and how often it is looked whether nodes have come so far, which
/// nothing tells of.
const ATTENDS: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);

/// How long a token is good: for the time that a node needs to start.
const TOKEN: SignedDuration = SignedDuration::from_mins(10);

/// A controller and probes, and perhaps a collector. What still runs when this is dropped is killed.
pub(super) struct Nodes {
    nodes: Vec<Node>,
}

/// What is started.
pub(super) struct Wanted<'a> {
    pub(super) controller: Place<'a>,
    /// Whether there is a collector beside it, which is a process of its own.
    pub(super) has_collector: bool,
    /// Where it serves the page, in its namespace.
    pub(super) page: Option<SocketAddr>,
    /// The tasks, as it reads them from a file.
    pub(super) tasks: &'a str,
    pub(super) probes: &'a [(&'static str, Place<'a>)],
}

/// Where a node runs.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) host: &'a Netns,
    /// The only core that it may use, if it may not use all.
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

    /// The credentials of who may read results.
    pub(super) fn viewer(&self) -> PathBuf {
        self.0.join("viewer.pem")
    }

    /// Makes the authority and the tasks; returns tokens for the probes and a collector, and the viewer's
    /// credentials.
    fn make(&self, wanted: &Wanted<'_>) -> anyhow::Result<(Vec<Token>, Token, Credentials)> {
        let now = Timestamp::from_second(Timestamp::now().as_second())?;
        let mut authority = Authority::create(&self.authority(), now)?;
        let subject = |name: &str, role| anyhow::Ok(Subject { name: name.parse()?, role });
        let mut tokens = Vec::new();
        for (name, _) in wanted.probes {
            tokens.push(authority.token(&subject(name, Role::Probe)?, TOKEN, now)?);
        }
        let store = authority.token(&subject("store", Role::Collector)?, TOKEN, now)?;
        let request = Request::new()?;
        let viewer = subject("viewer", Role::Viewer)?;
        let issued = authority.issue(&viewer, &request.pem()?, &[], now)?;
        let viewer = Credentials::new(&request, &issued);
        viewer.write(&self.viewer()).context("cannot write")?;
        fs::write(self.tasks(), wanted.tasks).context("cannot write the tasks")?;
        Ok((tokens, store, viewer))
    }
}

impl Nodes {
    /// Starts them, with all that they need in a folder. Returns what to ask the controller with.
    pub(super) fn start(
        files: &Files<'_>,
        wanted: &Wanted<'_>,
    ) -> anyhow::Result<(Self, Credentials)> {
        let (tokens, store, viewer) = files.make(wanted)?;
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
        if let Some(page) = wanted.page {
            controller.extend(["--page".into(), page.to_string().into()]);
        }
        nodes.begin("controller", "controller", wanted.controller, files, &controller)?;
        nodes.await_controller(wanted.controller.host)?;
        if wanted.has_collector {
            nodes.begin_collector(wanted.controller, files, &address, &store)?;
        }
        for ((name, place), token) in wanted.probes.iter().zip(tokens) {
            let probe = [address.clone().into(), "--token".into(), token.to_string().into()];
            nodes.begin(name, "probe", *place, files, &probe)?;
        }
        Ok((nodes, viewer))
    }

    /// Waits until the controller listens: a probe that calls before waits for a second.
    fn await_controller(&mut self, host: &Netns) -> anyhow::Result<()> {
        loop {
            self.check()?;
            let reached = host.run(|| TcpStream::connect((CONTROLLER_V4, PORT)));
            if reached.context("cannot enter the lab")?.is_ok() {
                return Ok(());
            }
            thread::sleep(LOOK);
        }
    }

    /// Starts the collector, and waits until it attends: a task goes to who is there when probes are told of it.
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
        let deadline = Instant::now() + ATTENDS;
        while !fs::read_to_string(&log).is_ok_and(|said| said.contains("attends to")) {
            self.check()?;
            if Instant::now() > deadline {
                bail!("the collector does not attend: {}", last_line(&log));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Starts one. The kernel kills it when the calling thread ends.
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
        let said = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut node = host.command(std::env::current_exe().with_context(cannot)?);
        node.arg(command)
            .args(arguments)
            .arg("--folder")
            .arg(folder.join(name))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            // A terminal's Ctrl-C is for this process, which ends them when they have told everything.
            .process_group(0);
        let process = on_core(core, || node.spawn().with_context(cannot))?;
        self.nodes.push(Node { name, log, process });
        Ok(())
    }

    /// The number of a node's process.
    pub(super) fn process(&self, name: &str) -> Option<u32> {
        self.nodes.iter().find(|node| node.name == name).map(|node| node.process.id())
    }

    /// Makes sure that all of them run.
    ///
    /// # Errors
    /// When one has ended: which, and what it said last.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        for Node { name, log, process } in &mut self.nodes {
            if let Some(status) = process.try_wait()? {
                bail!("the {name} has ended ({status}): {}", last_line(log));
            }
        }
        Ok(())
    }

    /// Ends them, the probes first.
    ///
    /// # Errors
    /// When one does not end well.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        self.check()?;
        while let Some(mut node) = self.nodes.pop() {
            interrupt(&node.process)?;
            let status = node.process.wait()?;
            if !status.success() {
                bail!("the {} ended badly ({status}): {}", node.name, last_line(&node.log));
            }
        }
        Ok(())
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for Node { process, .. } in &mut self.nodes {
            // One that has ended already is none to kill.
            drop(process.kill().and_then(|()| process.wait()));
        }
    }
}

/// Starts something on a core only: what is started stays where it was.
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
    let said = fs::read_to_string(log).unwrap_or_default();
    said.lines().last().unwrap_or("it said nothing").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_starts_something_on_a_core_keeps_its_own() {
        let before = sched_getaffinity(None).unwrap();
        let last = (0..before.count() as usize).rfind(|core| before.is_set(*core)).unwrap();
        let inside = on_core(Some(last), || Ok(sched_getaffinity(None)?)).unwrap();
        assert!(inside.count() == 1 && inside.is_set(last));
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
