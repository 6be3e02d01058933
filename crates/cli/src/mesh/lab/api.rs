//! Asks the controller for results, as any program can.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use http::Request;
use http_body_util::BodyExt;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::ServiceExt;
use wirestamp_lab::results::{Interval, Second};
use wirestamp_mesh::pki::{Credentials, Role};
use wirestamp_mesh::transport::{Trust, call};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// A controller that is asked.
pub(super) struct Api {
    runtime: Runtime,
    channel: Channel,
}

#[derive(Deserialize)]
struct Found<T> {
    results: Vec<T>,
}

impl Api {
    /// The controller at an address, which threads of this runtime ask with these credentials.
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

    /// What a task measured in the seconds that begin at a time, in nanoseconds since 1970 (UTC), or later.
    pub(super) fn seconds(&self, task: &str, from: i64) -> anyhow::Result<Vec<Second>> {
        let from = Timestamp::from_nanosecond(from.into())?;
        let found: Found<_> = self.get(&format!("/api/v1/tasks/{task}/results?from={from}"))?;
        Ok(found.results)
    }

    /// What a task has counted.
    pub(super) fn intervals(&self, task: &str) -> anyhow::Result<Vec<Interval>> {
        let found: Found<_> = self.get(&format!("/api/v1/tasks/{task}/results"))?;
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
