//! `wirestamp controller`.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use rustix::thread::CapabilitySet;
use wirestamp_mesh::collector::Listener;
use wirestamp_mesh::controller::{Controller, Loopback, Settings};
use wirestamp_mesh::export::Exporter;
#[cfg(feature = "kafka")]
use wirestamp_mesh::export::KafkaExporter;
use wirestamp_mesh::pki::{Authority, Host};
use wirestamp_mesh::task::read_file;

use super::log::log;
use super::node::{Retention, interrupted, runtime};
use super::privileges::RunAs;
use crate::output::Output;

#[derive(Args)]
#[command(after_help = "\
Probes join with a token from `wirestamp pki token`, run on this machine. Users and programs need a \
certificate of the mesh from `wirestamp pki issue`. With --page, users of this machine need none: \
everyone with an account here can then read all results and change tasks. All data except the \
CA is in --folder and survives a restart. If a separate collector (`wirestamp collector`) is enrolled, \
it stores the results of new tasks. After it listens, the controller drops all \
capabilities.

Examples:
  wirestamp controller --tasks tasks.toml      # for this machine only
  wirestamp controller --page 127.0.0.1:4748   # and a page at http://127.0.0.1:4748
  wirestamp controller --listen 0.0.0.0:4747   # for all machines of the mesh
  wirestamp controller --listen 0.0.0.0:4747 --name main.example.org   # and browsers
  curl --cert ann.pem --cacert ann.pem https://localhost:4747/api/v1/tasks/backbone/results")]
pub(crate) struct Arguments {
    /// Listen on this address for probes, users and programs
    #[arg(
        short,
        long,
        value_name = "ADDRESS:PORT",
        env = "WIRESTAMP_LISTEN",
        default_value = "127.0.0.1:4747"
    )]
    listen: SocketAddr,
    /// Additional name or address of this machine, for curl, browsers and Prometheus on other machines; may be
    /// repeated or separated by commas
    #[arg(long = "name", value_name = "HOST", env = "WIRESTAMP_NAME", value_delimiter = ',')]
    names: Vec<Host>,
    /// Serve the web page and the API on this loopback address without certificates
    #[arg(short, long, value_name = "ADDRESS:PORT")]
    page: Option<Loopback>,
    /// Start the tasks of this file (TOML), and end tasks that were removed from it
    #[arg(short, long, value_name = "FILE", env = "WIRESTAMP_TASKS")]
    tasks: Option<PathBuf>,
    /// Also send results to this flow collector, as IPFIX over UDP
    #[arg(long, value_name = "HOST:PORT")]
    ipfix: Option<String>,
    /// Receive packet digests of other programs (PSAMP, IPFIX over UDP) here, from the exporters in tasks. Source
    /// addresses can be forged: allow only exporters to reach this port
    #[arg(long, value_name = "ADDRESS:PORT")]
    digests: Option<SocketAddr>,
    /// Move the tasks of a separate collector to others when it is away for this long, such as 5s or 2m; `never` or 0:
    /// keep them
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = move_after)]
    move_after: MoveAfter,
    /// Folder of all data of this node
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/wirestamp/controller")]
    folder: PathBuf,
    #[command(flatten)]
    retention: Retention,
    /// File of the certificate authority (CA); created if missing
    #[arg(long, value_name = "FILE", default_value = "/var/lib/wirestamp/authority.sqlite")]
    authority: PathBuf,
    /// Create a new certificate authority, even if the folder belongs to an existing mesh; every node has to join again
    #[arg(long)]
    new_authority: bool,
    #[cfg(feature = "kafka")]
    #[command(flatten)]
    kafka: super::kafka::KafkaTopics,
    /// Also write final results of delay tasks and flows to the topic wirestamp.results.v1, as JSON
    #[cfg(feature = "kafka")]
    #[arg(long, requires = "kafka")]
    kafka_results: bool,
    #[command(flatten)]
    user: RunAs,
}

/// How long a collector may be away; none if its tasks stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MoveAfter(Option<Duration>);

fn move_after(text: &str) -> Result<MoveAfter, String> {
    if text == "never" || text == "0" {
        return Ok(MoveAfter(None));
    }
    let time: SignedDuration =
        text.parse().map_err(|_| "expected a time such as 30s or 5m, or never")?;
    match Duration::try_from(time) {
        Ok(time) if time.is_zero() => Ok(MoveAfter(None)),
        Ok(time) if time >= Duration::from_secs(1) => Ok(MoveAfter(Some(time))),
        _ => Err("expected at least 1 second, or never".to_owned()),
    }
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let Arguments {
        listen,
        names,
        page,
        tasks,
        ipfix,
        digests,
        move_after: MoveAfter(move_after),
        folder,
        retention,
        authority,
        new_authority,
        #[cfg(feature = "kafka")]
        kafka,
        #[cfg(feature = "kafka")]
        kafka_results,
        user,
    } = arguments;
    #[cfg(feature = "kafka")]
    let kafka = kafka.settings()?;
    let tasks = tasks.as_deref().map(read_file).transpose()?;
    let socket = TcpListener::bind(listen).with_context(|| format!("cannot listen at {listen}"))?;
    let bind = |at: &SocketAddr| {
        UdpSocket::bind(at).with_context(|| format!("cannot listen for digests at {at}"))
    };
    let digests = digests.as_ref().map(bind).transpose()?;
    let beside = authority.parent().filter(|it| !it.as_os_str().is_empty());
    let folders = [beside.unwrap_or(Path::new(".")), folder];
    let user = user.clone().or_default(&folders);
    folders.iter().try_for_each(|folder| user.make_folder(folder))?;
    user.keep_only(CapabilitySet::empty(), &folders, output)?;
    // Certificates have a resolution of seconds.
    let now = Timestamp::from_second(Timestamp::now().as_second())?;
    if !authority.exists() {
        let credentials = folder.join("controller.pem");
        anyhow::ensure!(
            *new_authority || !credentials.exists(),
            "cannot find the certificate authority {}, but {} is of an existing mesh: restore the file, name it with \
             --authority, or create a new one with --new-authority; then every node has to join again",
            authority.display(),
            credentials.display()
        );
        Authority::create(authority, now)?;
        output.remark(format!("created a new certificate authority, {}", authority.display()));
    }
    log(output);
    let (folder, authority, names) = (folder.clone(), authority.clone(), names.clone());
    let (keep, page, move_after) = (retention.keep(), *page, *move_after);
    let settings = Settings { socket, folder, authority, names, keep, page, move_after };
    let runtime = runtime()?;
    let controller = runtime.block_on(async { Controller::open(settings) })?;
    #[cfg(feature = "kafka")]
    let controller = match kafka {
        Some(settings) if *kafka_results => {
            let exporter = KafkaExporter::new(settings.clone());
            runtime.spawn(exporter.run(controller.sources(), controller.plan().subscribe()));
            controller.with_kafka(settings)?
        }
        Some(settings) => controller.with_kafka(settings)?,
        None => controller,
    };
    if let Some(tasks) = tasks {
        controller.plan().follow(&tasks, now)?;
    }
    if let Some(to) = ipfix {
        let exporter = runtime.block_on(Exporter::open(to, controller.probes()))?;
        runtime.spawn(exporter.run(controller.sources(), controller.plan().subscribe()));
    }
    if let Some(socket) = digests {
        listen_for_digests(socket, &controller, output)?;
    }
    let address = controller.address();
    output.remark(format!("listening at {address}; Ctrl-C ends it"));
    if address.ip().is_loopback() {
        output.remark("reachable from this machine only; add --listen for other machines");
    }
    if let Some(page) = controller.page() {
        output.remark(format!("page at http://{page}"));
    }
    runtime.block_on(controller.run(interrupted()?)).context("cannot continue to listen")?;
    Ok(ExitCode::SUCCESS)
}

fn listen_for_digests(
    socket: UdpSocket,
    controller: &Controller,
    output: Output,
) -> anyhow::Result<()> {
    let tasks = controller.plan().subscribe();
    let listener = Listener::open(socket, controller.collector(), tasks);
    let listener = listener.context("cannot listen for digests")?;
    output.remark(format!("receiving digests at {}", listener.address()?));
    // Ends with the process: it has no state to save.
    thread::spawn(move || {
        if let Err(error) = listener.run() {
            output.remark(format!("cannot continue to receive digests: {error}"));
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn move_after_is_a_time_or_never() {
        let after = |seconds| Ok(MoveAfter(Some(Duration::from_secs(seconds))));
        assert_eq!([move_after("2s"), move_after("5m")], [after(2), after(300)]);
        for text in ["never", "0", "0s"] {
            assert_eq!(move_after(text), Ok(MoveAfter(None)));
        }
        for text in ["10ms", "-1s", "soon", ""] {
            assert!(move_after(text).is_err(), "{text}");
        }
    }
}
