//! `--metrics ADDRESS`: Prometheus metrics of a running command.
//!
//! Measurements write lock-free figures; a scrape collects them into [`Families`] on the thread of
//! [`server`]. The number of series is bounded: fixed for each interface, and the worst flows only.

mod calibration;
pub(crate) mod capture;
pub(crate) mod delay;
mod flow_totals;
pub(crate) mod flows;
mod request;
mod server;
mod tap;

use std::net::SocketAddr;

use anyhow::Context;
use clap::Args;
use wirestamp_results::Families;

use crate::output::Output;

/// The address of the metrics, if they are served.
#[derive(Args)]
pub(crate) struct Endpoint {
    /// Serve Prometheus metrics at http://ADDRESS/metrics while running, such as 127.0.0.1:9464; port 0
    /// selects a free port and prints it
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    metrics: Option<SocketAddr>,
}

impl Endpoint {
    /// Whether metrics are served.
    pub(crate) fn is_open(&self) -> bool {
        self.metrics.is_some()
    }

    /// Serves the metrics that `collect` adds at each scrape, if requested.
    fn serve(
        &self,
        output: Output,
        collect: impl Fn(&mut Families) + Send + 'static,
    ) -> anyhow::Result<()> {
        let Some(address) = self.metrics else { return Ok(()) };
        let listener = server::listen(address)?;
        let address = listener.local_addr().context("cannot serve metrics")?;
        output.remark(format_args!("metrics at http://{address}/metrics"));
        server::serve(listener, move || {
            let mut families = Families::default();
            let version = [("version", env!("CARGO_PKG_VERSION").to_owned())];
            families.info("wirestamp_build_info", &version);
            collect(&mut families);
            families.text().map_err(|error| error.to_string())
        })
    }
}

/// Parses an address with a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected an address and a port of this machine, such as 127.0.0.1:9464 or [::1]:9464"
            .into()
    })
}
