//! `wirestamp controller`.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;

use anyhow::Context;
use clap::Args;
use jiff::Timestamp;
use rustix::thread::CapabilitySet;
use wirestamp_mesh::collector::Listener;
use wirestamp_mesh::controller::{Controller, Loopback, Settings};
use wirestamp_mesh::export::Exporter;
use wirestamp_mesh::pki::{Authority, Host};
use wirestamp_mesh::task::read_file;

use super::node::{Keeping, interrupted, log, runtime};
use super::privileges::As;
use crate::output::Output;

#[derive(Args)]
#[command(after_help = "\
Probes are let in with a token, which `wirestamp pki token` prints on this machine. People and
programs show a certificate of the mesh; `wirestamp pki issue` makes one. On this machine they need
none where --page says so: whoever has an account here may then see everything and change tasks.
Everything is kept in the folder, and goes on after a restart. Results are there too, but for
those of tasks that began when there was a collector of its own (`wirestamp collector`). Once it
listens it gives up all capabilities.

Examples:
  wirestamp controller --tasks tasks.toml      # for this machine only
  wirestamp controller --page 127.0.0.1:4748   # and a page at http://127.0.0.1:4748
  wirestamp controller --listen 0.0.0.0:4747   # for all machines of the mesh
  wirestamp controller --listen 0.0.0.0:4747 --name main.example.org   # and for browsers there
  curl --cert ann.pem --cacert ann.pem https://localhost:4747/api/v1/tasks/backbone/results")]
pub(crate) struct Arguments {
    /// Listen here, for probes, people and programs
    #[arg(
        short,
        long,
        value_name = "ADDRESS:PORT",
        env = "WIRESTAMP_LISTEN",
        default_value = "127.0.0.1:4747"
    )]
    listen: SocketAddr,
    /// A name or address of this machine by which curl, browsers and Prometheus elsewhere reach it, besides
    /// `localhost`; several, or separated by commas
    #[arg(long = "name", value_name = "HOST", env = "WIRESTAMP_NAME", value_delimiter = ',')]
    names: Vec<Host>,
    /// Serve the page and the API without certificates here: only for this machine
    #[arg(short, long, value_name = "ADDRESS:PORT")]
    page: Option<Loopback>,
    /// Enter the tasks of this file (TOML), and end those that it had before and has no more
    #[arg(short, long, value_name = "FILE", env = "WIRESTAMP_TASKS")]
    tasks: Option<PathBuf>,
    /// Send what is measured to a collector of flows too, as IPFIX over UDP
    #[arg(long, value_name = "HOST:PORT")]
    ipfix: Option<String>,
    /// Take digests of packets here that other programs report (PSAMP, IPFIX over UDP), from exporters that
    /// tasks name. Their addresses can be forged: let only exporters reach this port
    #[arg(long, value_name = "ADDRESS:PORT")]
    digests: Option<SocketAddr>,
    /// Keep everything in this folder
    #[arg(long, value_name = "FOLDER", default_value = "/var/lib/wirestamp/controller")]
    folder: PathBuf,
    #[command(flatten)]
    keeping: Keeping,
    /// The authority's file; it is made if there is none
    #[arg(long, value_name = "FILE", default_value = "/var/lib/wirestamp/authority.sqlite")]
    authority: PathBuf,
    #[command(flatten)]
    user: As,
}

pub(crate) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<ExitCode> {
    let Arguments { listen, names, page, tasks, ipfix, digests, folder, keeping, authority, user } =
        arguments;
    let tasks = tasks.as_deref().map(read_file).transpose()?;
    let socket = TcpListener::bind(listen).with_context(|| format!("cannot listen at {listen}"))?;
    let bind = |at: &SocketAddr| {
        UdpSocket::bind(at).with_context(|| format!("cannot listen for digests at {at}"))
    };
    let digests = digests.as_ref().map(bind).transpose()?;
    let beside = authority.parent().filter(|it| !it.as_os_str().is_empty());
    let folders = [beside.unwrap_or(Path::new(".")), folder];
    folders.iter().try_for_each(|folder| user.make_folder(folder))?;
    user.keep_only(CapabilitySet::empty(), &folders, output)?;
    // Certificates count in seconds.
    let now = Timestamp::from_second(Timestamp::now().as_second())?;
    if !authority.exists() {
        Authority::create(authority, now)?;
        output.remark(format!("made a new authority, {}", authority.display()));
    }
    log(output);
    let (folder, authority, names) = (folder.clone(), authority.clone(), names.clone());
    let settings = Settings { socket, folder, authority, names, keep: keeping.keep(), page: *page };
    let runtime = runtime()?;
    let controller = runtime.block_on(async { Controller::open(settings) })?;
    if let Some(tasks) = tasks {
        controller.plan().follow(&tasks, now)?;
    }
    if let Some(to) = ipfix {
        let exporter = runtime.block_on(Exporter::open(to))?;
        runtime.spawn(exporter.run(controller.sources(), controller.plan().subscribe()));
    }
    if let Some(socket) = digests {
        listen_for_digests(socket, &controller, output)?;
    }
    let address = controller.address();
    output.remark(format!("listens at {address}; Ctrl-C ends it"));
    if address.ip().is_loopback() {
        output.remark("only this machine can reach that: --listen opens it to others");
    }
    if let Some(page) = controller.page() {
        output.remark(format!("page at http://{page}"));
    }
    runtime.block_on(controller.run(interrupted()?)).context("cannot go on listening")?;
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
    output.remark(format!("takes digests at {}", listener.address()?));
    // It ends with this process: nothing that it holds could be kept.
    thread::spawn(move || {
        if let Err(error) = listener.run() {
            output.remark(format!("cannot go on taking digests: {error}"));
        }
    });
    Ok(())
}
