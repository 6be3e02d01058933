//! What the commands of the mesh's nodes share: threads, signals and retention.

use std::thread;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use wirestamp_mesh::collector::Keep;

use crate::interrupt::stop_on_signal;

/// Retention of results.
#[derive(Args)]
pub(super) struct Retention {
    /// Keep results per second for this many days; results per minute and hour are kept forever
    #[arg(long, value_name = "DAYS", default_value_t = 90)]
    keep: u32,
    /// Keep at most this many gigabytes of hourly Parquet files, the newest [default: all]
    #[arg(long, value_name = "GB")]
    archive: Option<u64>,
}

impl Retention {
    /// The collector's setting.
    pub(super) fn keep(&self) -> Keep {
        Keep {
            age: Duration::from_secs(u64::from(self.keep) * 86_400),
            bytes: self.archive.map(|gigabytes| gigabytes.saturating_mul(1_000_000_000)),
        }
    }
}

/// The threads of a node. Its limit of open files, often 1024, becomes the highest one allowed.
pub(super) fn runtime() -> anyhow::Result<Runtime> {
    let limits = getrlimit(Resource::Nofile);
    // Where it is not allowed, the limit stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits });
    Runtime::new().context("cannot start threads")
}

/// Completes at the first SIGINT or SIGTERM.
pub(super) fn interrupted() -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
    let stop = stop_on_signal()?;
    let (notify, notified) = oneshot::channel();
    // Not a thread of the runtime, which would wait for it when the node ends for another reason.
    let wait = move || {
        stop.wait(Duration::MAX);
        // Fails only if the node has already ended.
        let _ = notify.send(());
    };
    let thread = thread::Builder::new().name("ws-interrupt".to_owned()).spawn(wait);
    thread.context("cannot start a thread")?;
    Ok(async move { drop(notified.await) })
}
