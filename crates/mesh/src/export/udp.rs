//! IPFIX export over UDP.

use std::collections::HashSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use thiserror::Error;
use tokio::net::{UdpSocket, lookup_host};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::Ipfix;
use super::poller::{NewResults, Poller};
use crate::Name;
use crate::collector::flow_reports;
use crate::controller::{ProbeRegistry, Sources};
use crate::task::{Measure, Tasks};

/// Interval of template retransmission, for lost datagrams and restarted receivers (RFC 7011 section 8.4). With the
/// ten minutes of the RFC, a new receiver would wait too long.
const TEMPLATE_INTERVAL: Duration = Duration::from_mins(1);

/// Sends results over UDP when they are available, without acknowledgement.
pub struct Exporter {
    /// For the addresses of paths.
    probes: Arc<ProbeRegistry>,
    socket: UdpSocket,
    to: SocketAddr,
    ipfix: Ipfix,
    /// Messages that could not be sent since the last templates.
    unsent: u64,
    /// Read errors that were logged since then.
    logged: HashSet<String>,
}

/// Why results cannot be exported.
#[derive(Debug, Error)]
#[error("cannot export results to {to}: {cause}")]
pub struct CannotExport {
    to: String,
    cause: io::Error,
}

impl Exporter {
    /// Resolves the receiver, `HOST:PORT`. The IANA port of IPFIX is 4739.
    ///
    /// # Errors
    /// When the address is not valid or not reachable.
    pub async fn open(to: &str, probes: Arc<ProbeRegistry>) -> Result<Self, CannotExport> {
        let (socket, to) =
            connect(to).await.map_err(|cause| CannotExport { to: to.to_owned(), cause })?;
        let (ipfix, logged) = (Ipfix::default(), HashSet::new());
        Ok(Self { probes, socket, to, ipfix, unsent: 0, logged })
    }

    /// Exports new results of these tasks forever.
    pub async fn run(mut self, sources: Arc<Sources>, mut tasks: watch::Receiver<Arc<Tasks>>) -> ! {
        let mut stored = sources.subscribe();
        let mut again = interval(TEMPLATE_INTERVAL);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        again.tick().await;
        self.describe(&tasks).await;
        let before = tasks.borrow_and_update().clone();
        let mut poller = Poller::behind(&before, sources);
        poller.poll(&before);
        while let Some(response) = poller.next_response().await {
            match poller.take(response, &before) {
                Ok(new) => self.export(new, &before).await,
                Err(why) => warn!("cannot read earlier results: {why}; retrying"),
            }
        }
        info!("exporting results to {} (IPFIX over UDP)", self.to);
        loop {
            tokio::select! {
                biased;
                _ = again.tick() => self.describe(&tasks).await,
                Ok(()) = tasks.changed() => self.describe(&tasks).await,
                Some(response) = poller.next_response() => {
                    let known = tasks.borrow().clone();
                    match poller.take(response, &known) {
                        Ok(new) => self.export(new, &known).await,
                        Err(why) => self.log_error(why.to_string()),
                    }
                }
                Ok(()) = stored.changed() => poller.poll(&tasks.borrow()),
            }
        }
    }

    async fn describe(&mut self, tasks: &watch::Receiver<Arc<Tasks>>) {
        if self.unsent > 1 {
            warn!("cannot send {} messages to {}", self.unsent, self.to);
        }
        self.unsent = 0;
        self.logged.clear();
        let tasks = tasks.borrow().clone();
        let messages = self.ipfix.descriptions(&tasks, now());
        self.send(&messages).await;
    }

    /// Exports new results of a task.
    async fn export(&mut self, new: Option<(u64, NewResults)>, tasks: &Tasks) {
        let Some((number, news)) = new else { return };
        let Some(entered) = tasks.get(&number) else { return };
        let name = &entered.task.name;
        let task = (number, name.as_ref());
        let messages = match news {
            NewResults::Results(results) => {
                let ends = path_ends(&entered.task.measure, &self.probes);
                self.ipfix.results(task, ends, &results, now())
            }
            NewResults::Flows(reports) => {
                self.ipfix.flows(task, &flow_reports(name, reports), now())
            }
            NewResults::EarlierFlows(reports, since) => {
                self.ipfix.start_flows(number, &flow_reports(name, reports), since);
                return;
            }
        };
        self.send(&messages).await;
    }

    /// Logs a read error. The results are exported later.
    fn log_error(&mut self, why: String) {
        if !self.logged.contains(&why) {
            warn!("cannot read results to export: {why}; retrying");
            self.logged.insert(why);
        }
    }

    async fn send(&mut self, messages: &[Vec<u8>]) {
        for message in messages {
            let Err(error) = self.socket.send(message).await else { continue };
            if self.unsent == 0 {
                warn!("cannot send results to {}: {error}; retrying", self.to);
            }
            self.unsent += 1;
            // The kernel reports the rejection of an earlier datagram with the next one.
            if error.kind() == io::ErrorKind::ConnectionRefused {
                drop(self.socket.send(message).await);
            }
        }
    }
}

/// Addresses of the ends of a path: of its tests if they are configured, of foreign exporters, and otherwise of the
/// probes as the controller sees them. None before both probes have connected.
fn path_ends(measure: &Measure, probes: &ProbeRegistry) -> Option<[IpAddr; 2]> {
    let address = |probe: &Name| probes.address(probe);
    match measure {
        Measure::PassiveDelay(it) => Some([address(&it.from.probe)?, address(&it.to.probe)?]),
        Measure::ActiveDelay(it) => {
            Some([address(&it.from.probe)?, it.address.or_else(|| address(&it.to.probe))?])
        }
        Measure::ReportedDelay(it) => Some([it.from.address, it.to.address]),
        Measure::Volume { .. } | Measure::Traffic { .. } | Measure::Flows { .. } => None,
    }
}

async fn connect(to: &str) -> io::Result<(UdpSocket, SocketAddr)> {
    let unknown = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let address = lookup_host(to).await?.next().ok_or_else(unknown)?;
    let here: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(here).await?;
    socket.connect(address).await?;
    Ok((socket, address))
}

/// Seconds since 1970 in 32 bits, until 2106.
fn now() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn ends(task: &str, probes: &ProbeRegistry) -> Option<[String; 2]> {
        let task: crate::task::Task = serde_json::from_str(task).unwrap();
        path_ends(&task.measure, probes).map(|ends| ends.map(|end| end.to_string()))
    }

    #[test]
    fn path_has_the_addresses_of_its_probes() {
        let (probes, now) = (ProbeRegistry::default(), Timestamp::UNIX_EPOCH);
        let passive =
            r#"{"name":"p","measure":"passive-delay","from":"roof/eth0","to":"cellar/eth1"}"#;
        assert_eq!(ends(passive, &probes), None);
        for (name, host) in [("roof", 1), ("cellar", 2)] {
            let address = ([192, 0, 2, host], 7).into();
            probes.connected(&name.parse().unwrap(), (address, 0), now, now).unwrap();
        }
        assert_eq!(ends(passive, &probes), Some(["192.0.2.1", "192.0.2.2"].map(str::to_owned)));
        let active = r#"{"name":"a","measure":"active-delay","from":"roof","to":"cellar","address":"2001:db8::2"}"#;
        assert_eq!(ends(active, &probes), Some(["192.0.2.1", "2001:db8::2"].map(str::to_owned)));
        let reported = r#"{"name":"r","measure":"passive-delay","from":"ipfix:192.0.2.7/3","to":"ipfix:192.0.2.8/1"}"#;
        assert_eq!(ends(reported, &probes), Some(["192.0.2.7", "192.0.2.8"].map(str::to_owned)));
    }
}
