//! Reads results from the controller's API.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use http::Request;
use http_body_util::BodyExt;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::ServiceExt;
#[cfg(feature = "studies")]
use wirestamp_lab::results::Interval;
use wirestamp_lab::results::Second;
use wirestamp_mesh::pki::{Credentials, Role};
use wirestamp_mesh::transport::{Trust, call};

/// Timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// A client of the controller's API.
pub(super) struct Api {
    runtime: Runtime,
    channel: Channel,
}

#[derive(Deserialize)]
struct ResultList<T> {
    results: Vec<T>,
    /// The parts that are missing, because their collectors are away.
    #[serde(default)]
    partial: Vec<IgnoredAny>,
}

impl Api {
    /// A client of the controller at an address, with these credentials.
    pub(super) fn new(
        runtime: Runtime,
        address: SocketAddr,
        shown: &Credentials,
    ) -> anyhow::Result<Self> {
        let inside = runtime.enter();
        let channel = call(&address.to_string(), Role::Controller, &Trust::Certificate(shown))?;
        drop(inside);
        Ok(Self { runtime, channel })
    }

    /// A task's results of the seconds from a time on, in nanoseconds since 1970 (UTC). None while a collector that has a
    /// part of them is away: later results would hide it.
    pub(super) fn seconds(&self, task: &str, from: i64) -> anyhow::Result<Vec<Second>> {
        let from = Timestamp::from_nanosecond(from.into())?;
        let found: ResultList<_> =
            self.get(&format!("/api/v1/tasks/{task}/results?from={from}"))?;
        Ok(if found.partial.is_empty() { found.results } else { Vec::new() })
    }

    /// A task's results of all intervals.
    #[cfg(feature = "studies")]
    pub(super) fn intervals(&self, task: &str) -> anyhow::Result<Vec<Interval>> {
        let found: ResultList<_> = self.get(&format!("/api/v1/tasks/{task}/results"))?;
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
            serde_json::from_slice(&body).context("cannot read the controller's answer")
        };
        self.runtime
            .block_on(async { timeout(REQUEST_TIMEOUT, answer).await })
            .context("the controller does not answer")?
    }
}
