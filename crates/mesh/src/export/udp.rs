//! Messages of IPFIX are sent.

use std::collections::HashSet;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use thiserror::Error;
use tokio::net::{UdpSocket, lookup_host};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::Ipfix;
use super::asking::{Asking, News};
use crate::collector::flow_reports;
use crate::controller::Sources;
use crate::task::Tasks;

/// Templates come again, because datagrams get lost and receivers begin anew (RFC 7011 section 8.4). Its ten minutes
/// would leave a new receiver without results for as long.
const AGAIN: Duration = Duration::from_mins(1);

/// Sends results over UDP as they come, and never waits for who receives them.
pub struct Exporter {
    socket: UdpSocket,
    to: SocketAddr,
    ipfix: Ipfix,
    /// Messages that could not be sent since templates were sent last.
    unsent: u64,
    /// Why results could not be read, as was told since then.
    told: HashSet<String>,
}

/// Why results cannot be exported.
#[derive(Debug, Error)]
#[error("cannot export results to {to}: {cause}")]
pub struct CannotExport {
    to: String,
    cause: io::Error,
}

impl Exporter {
    /// Finds who is to receive them, `HOST:PORT`. IANA has given IPFIX the port 4739.
    ///
    /// # Errors
    /// When that is no address, or cannot be reached from here.
    pub async fn open(to: &str) -> Result<Self, CannotExport> {
        let (socket, address) =
            connect(to).await.map_err(|cause| CannotExport { to: to.to_owned(), cause })?;
        Ok(Self { socket, to: address, ipfix: Ipfix::default(), unsent: 0, told: HashSet::new() })
    }

    /// Exports what is measured from now on by these tasks, and does not end.
    pub async fn run(mut self, sources: Arc<Sources>, mut tasks: watch::Receiver<Arc<Tasks>>) -> ! {
        let mut stored = sources.subscribe();
        let mut again = interval(AGAIN);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        again.tick().await;
        self.describe(&tasks).await;
        let before = tasks.borrow_and_update().clone();
        let mut asking = Asking::behind(&before, sources);
        asking.ask(&before);
        while let Some(answer) = asking.answer().await {
            match asking.take(answer, &before) {
                Ok(new) => self.export(new, &before).await,
                Err(why) => warn!("cannot read how far results have come: {why}; goes on trying"),
            }
        }
        info!("exports results to {} (IPFIX over UDP)", self.to);
        loop {
            tokio::select! {
                biased;
                _ = again.tick() => self.describe(&tasks).await,
                Ok(()) = tasks.changed() => self.describe(&tasks).await,
                Some(answer) = asking.answer() => {
                    let known = tasks.borrow().clone();
                    match asking.take(answer, &known) {
                        Ok(new) => self.export(new, &known).await,
                        Err(why) => self.tell(why.to_string()),
                    }
                }
                Ok(()) = stored.changed() => asking.ask(&tasks.borrow()),
            }
        }
    }

    async fn describe(&mut self, tasks: &watch::Receiver<Arc<Tasks>>) {
        if self.unsent > 1 {
            warn!("{} messages could not be sent to {}", self.unsent, self.to);
        }
        self.unsent = 0;
        self.told.clear();
        let tasks = tasks.borrow().clone();
        let messages = self.ipfix.descriptions(&tasks, now());
        self.send(&messages).await;
    }

    /// Exports what is new of a task, if there is something.
    async fn export(&mut self, new: Option<(u64, News)>, tasks: &Tasks) {
        let Some((number, news)) = new else { return };
        let Some(entered) = tasks.get(&number) else { return };
        let name = &entered.task.name;
        let task = (number, name.as_ref());
        let messages = match news {
            News::Results(results) => self.ipfix.results(task, &results, now()),
            News::Flows(reports) => self.ipfix.flows(task, &flow_reports(name, reports), now()),
        };
        self.send(&messages).await;
    }

    /// Says why results cannot be read: they are exported when they can be.
    fn tell(&mut self, why: String) {
        if !self.told.contains(&why) {
            warn!("cannot read results to be exported: {why}; goes on trying");
            self.told.insert(why);
        }
    }

    async fn send(&mut self, messages: &[Vec<u8>]) {
        for message in messages {
            let Err(error) = self.socket.send(message).await else { continue };
            if self.unsent == 0 {
                warn!("cannot send results to {}: {error}; goes on trying", self.to);
            }
            self.unsent += 1;
            // That one before was refused is told of when the next is sent.
            if error.kind() == io::ErrorKind::ConnectionRefused {
                drop(self.socket.send(message).await);
            }
        }
    }
}

async fn connect(to: &str) -> io::Result<(UdpSocket, SocketAddr)> {
    let unknown = || io::Error::new(io::ErrorKind::NotFound, "it has no address");
    let address = lookup_host(to).await?.next().ok_or_else(unknown)?;
    let here: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(here).await?;
    socket.connect(address).await?;
    Ok((socket, address))
}

/// The second since 1970, as far as 32 bits go: until 2106.
fn now() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}
