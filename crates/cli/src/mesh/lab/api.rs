//! Asks the controller for results, as any program can.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use http::Request;
use http_body_util::BodyExt;
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::ServiceExt;
use wirestamp_mesh::pki::{Credentials, Role};
use wirestamp_mesh::transport::{Trust, call};

use crate::mesh::runtime;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A controller that is asked.
pub(super) struct Api {
    runtime: Runtime,
    channel: Channel,
}

/// What a task measured in a second: as much of it as is used here.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Second {
    pub(super) begin_ns: i64,
    #[serde(flatten)]
    pub(super) counts: Counts,
    pub(super) delay_ns: Option<Delay>,
    pub(super) error_ns: Option<i64>,
    pub(super) contradicts_the_clocks: bool,
}

/// What became of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Counts {
    pub(super) sent: u64,
    pub(super) matched: u64,
    pub(super) lost: u64,
    pub(super) duplicated: u64,
    pub(super) reordered: u64,
    pub(super) unexpected: u64,
    pub(super) given_up_sent: u64,
    pub(super) given_up_received: u64,
    pub(super) identical: u64,
}

/// One-way delays, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub(super) struct Delay {
    pub(super) count: u64,
    pub(super) min: i64,
    pub(super) mean: f64,
    pub(super) max: i64,
}

#[derive(Deserialize)]
struct Found {
    results: Vec<Second>,
}

impl Api {
    /// The controller at an address, which is asked with these credentials.
    pub(super) fn new(address: SocketAddr, shown: &Credentials) -> anyhow::Result<Self> {
        let runtime = runtime()?;
        let inside = runtime.enter();
        let channel = call(&address.to_string(), Role::Controller, &Trust::Certificate(shown))?;
        drop(inside);
        Ok(Self { runtime, channel })
    }

    /// What a task measured in the seconds that begin at a time, in nanoseconds since 1970 (UTC), or later.
    pub(super) fn seconds(&self, task: &str, from: i64) -> anyhow::Result<Vec<Second>> {
        let from = Timestamp::from_nanosecond(from.into())?;
        let found: Found = self.get(&format!("/api/v1/tasks/{task}/results?from={from}"))?;
        Ok(found.results)
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let request = Request::get(path).body(Body::empty())?;
        let answer = async {
            let answer = self.channel.clone().oneshot(request).await?;
            let status = answer.status();
            let body = answer.into_body().collect().await?.to_bytes();
            if !status.is_success() {
                bail!("the controller answers {status}: {}", String::from_utf8_lossy(&body));
            }
            serde_json::from_slice(&body).context("the controller answers something else")
        };
        self.runtime
            .block_on(async { timeout(PATIENCE, answer).await })
            .context("the controller does not answer")?
    }
}
