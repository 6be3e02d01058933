//! `--metrics ADDRESS`: figures for Prometheus while a command runs.
//!
//! Whoever measures writes figures where others can look at them without a lock; a scrape gathers
//! them into [`Families`], and a thread of its own ([`server`]) hands them out. There are as many
//! series as there are interfaces, however much traffic there is; of flows, the few that hurt most.

mod calibration;
pub(crate) mod capture;
pub(crate) mod delay;
pub(crate) mod flows;
mod request;
mod server;
mod tap;

use std::net::SocketAddr;

use anyhow::Context;
use clap::Args;
use wirestamp_results::Families;

use crate::output::Output;

/// Where the metrics are served, if anywhere.
#[derive(Args)]
pub(crate) struct Endpoint {
    /// Serve figures for Prometheus at http://ADDRESS/metrics meanwhile, such as 127.0.0.1:9464; port
    /// 0 takes a free one, and says which
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    metrics: Option<SocketAddr>,
}

impl Endpoint {
    /// Whether anybody may look.
    pub(crate) fn is_open(&self) -> bool {
        self.metrics.is_some()
    }

    /// Serves, if that was asked for, what `collect` gathers at each scrape.
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
            families.info("wirestamp_build_info", "The version of Wirestamp.", &version);
            collect(&mut families);
            families.text().map_err(|error| error.to_string())
        })
    }
}

/// An address with a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected an address of this machine and a port, such as 127.0.0.1:9464 or [::1]:9464"
            .into()
    })
}
