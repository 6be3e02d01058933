//! What the commands of the mesh's nodes share: threads, signals, logs and retention.

use std::io::{self, IsTerminal};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tracing_subscriber::filter::LevelFilter;
use wirestamp_mesh::collector::Keep;

use crate::interrupt::stop_on_signal;
use crate::output::Output;

#[derive(Args)]
pub(super) struct Keeping {
    /// Keep results by the second for so many days; by the minute and the hour they stay
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    keep: u32,
    /// Keep so many gigabytes of files of hours (Parquet) at the most, the newest; all without it
    #[arg(long, value_name = "GB")]
    archive: Option<u64>,
}

impl Keeping {
    /// As collectors have it.
    pub(super) fn keep(&self) -> Keep {
        Keep {
            age: Duration::from_secs(u64::from(self.keep) * 86_400),
            bytes: self.archive.map(|gigabytes| gigabytes.saturating_mul(1_000_000_000)),
        }
    }
}

/// Threads for a node.
pub(super) fn runtime() -> anyhow::Result<Runtime> {
    Runtime::new().context("cannot start threads")
}

/// Ends with the first Ctrl-C.
pub(super) fn interrupted() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let stop = stop_on_signal()?;
    let (tell, told) = oneshot::channel();
    // None of the runtime, which would wait for it where something else ends the node.
    let wait = move || {
        stop.wait(Duration::MAX);
        // Nobody listens any more if the node ends anyway.
        let _ = tell.send(());
    };
    let thread = thread::Builder::new().name("ws-interrupt".to_owned()).spawn(wait);
    thread.context("cannot start a thread")?;
    Ok(async move { drop(told.await) })
}

/// What nodes have to say goes to standard error.
pub(super) fn log(output: Output) {
    let most = match output {
        Output { quiet: true, .. } => LevelFilter::WARN,
        Output { verbose: true, .. } => LevelFilter::DEBUG,
        _ => LevelFilter::INFO,
    };
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .with_max_level(most)
        .init();
}
