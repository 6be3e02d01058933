//! The nodes: processes of this program in the bed's namespaces.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::{Context, bail};
use jiff::{SignedDuration, Timestamp};
use rustix::process::{Pid, Signal, kill_process};
use wirestamp_lab::{CONTROLLER_V4, MeshLab, Netns, TAP_A, TAP_B};
use wirestamp_mesh::pki::{Authority, Credentials, Request, Role, Subject, Token};

use super::traffic::TASKS;

/// Where the controller listens, in its namespace.
pub(super) const PORT: u16 = 4747;

/// How long a token is good: for the time that a probe needs to start.
const TOKEN: SignedDuration = SignedDuration::from_mins(10);

/// A controller and two probes. What still runs when this is dropped is killed.
pub(super) struct Nodes {
    nodes: Vec<Node>,
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

    /// Makes the authority and the tasks; returns tokens for the probes, and the viewer's credentials.
    fn make(&self) -> anyhow::Result<([Token; 2], Credentials)> {
        let now = Timestamp::from_second(Timestamp::now().as_second())?;
        let mut authority = Authority::create(&self.authority(), now)?;
        let subject = |name: &str, role| anyhow::Ok(Subject { name: name.parse()?, role });
        let roof = authority.token(&subject("roof", Role::Probe)?, TOKEN, now)?;
        let cellar = authority.token(&subject("cellar", Role::Probe)?, TOKEN, now)?;
        let request = Request::new()?;
        let viewer = subject("viewer", Role::Viewer)?;
        let issued = authority.issue(&viewer, &request.pem()?, &[], now)?;
        let viewer = Credentials::new(&request, &issued);
        viewer.write(&self.viewer()).context("cannot write")?;
        fs::write(self.tasks(), tasks()).context("cannot write the tasks")?;
        Ok(([roof, cellar], viewer))
    }
}

/// A task for each stream.
fn tasks() -> String {
    let task = |(name, port)| {
        format!(
            "[[task]]\nname = \"{name}\"\nmeasure = \"passive-delay\"\n\
             from = \"roof/{TAP_A}\"\nto = \"cellar/{TAP_B}\"\n\
             filter = \"udp and dst port {port}\"\n\n"
        )
    };
    TASKS.map(task).concat()
}

impl Nodes {
    /// Starts them, with all that they need in a folder, and with a page at an address of the controller's
    /// namespace. Returns what to ask the controller with.
    pub(super) fn start(
        lab: &MeshLab,
        files: &Files<'_>,
        page: SocketAddr,
    ) -> anyhow::Result<(Self, Credentials)> {
        let ([roof, cellar], viewer) = files.make()?;
        let address = format!("{CONTROLLER_V4}:{PORT}");
        let path = |path: PathBuf| path.into_os_string();
        let mut nodes = Self { nodes: Vec::new() };
        let controller = [
            "--listen".into(),
            address.clone().into(),
            "--page".into(),
            page.to_string().into(),
            "--authority".into(),
            path(files.authority()),
            "--tasks".into(),
            path(files.tasks()),
        ];
        nodes.begin("controller", "controller", lab.controller(), files, &controller)?;
        for (name, host, token) in [("roof", lab.roof(), roof), ("cellar", lab.cellar(), cellar)] {
            let probe = [address.clone().into(), "--token".into(), token.to_string().into()];
            nodes.begin(name, "probe", host, files, &probe)?;
        }
        Ok((nodes, viewer))
    }

    /// Starts one. The kernel kills it when the calling thread ends.
    fn begin(
        &mut self,
        name: &'static str,
        command: &str,
        host: &Netns,
        Files(folder): &Files<'_>,
        arguments: &[OsString],
    ) -> anyhow::Result<()> {
        let log = folder.join(format!("{name}.log"));
        let cannot = || format!("cannot start the {name}");
        let said = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let process = host
            .command(std::env::current_exe().with_context(cannot)?)
            .arg(command)
            .args(arguments)
            .arg("--folder")
            .arg(folder.join(name))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            // A terminal's Ctrl-C is for this process, which ends them when they have told everything.
            .process_group(0)
            .spawn()
            .with_context(cannot)?;
        self.nodes.push(Node { name, log, process });
        Ok(())
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
    use wirestamp_mesh::task::read_file;

    use super::*;

    #[test]
    fn the_tasks_are_tasks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tasks.toml");
        fs::write(&file, tasks()).unwrap();
        assert_eq!(read_file(&file).unwrap().len(), TASKS.len());
    }
}
