//! Messages of IPFIX are sent.

use std::collections::{HashMap, HashSet};
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
use crate::collector::{Step, Stretch};
use crate::controller::{NoAnswer, Sources};
use crate::task::Tasks;

/// Templates come again, because datagrams get lost and receivers begin anew (RFC 7011 section 8.4). Its ten minutes
/// would leave a new receiver without results for as long.
const AGAIN: Duration = Duration::from_mins(1);

/// Results that are read at once.
const MOST: u32 = 1000;

/// Sends results over UDP as they come, and never waits for who receives them.
pub struct Exporter {
    socket: UdpSocket,
    to: SocketAddr,
    ipfix: Ipfix,
    /// Messages that could not be sent since templates were sent last.
    unsent: u64,
    /// Why results could not be read, as was told last.
    told: Option<String>,
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
        Ok(Self { socket, to: address, ipfix: Ipfix::default(), unsent: 0, told: None })
    }

    /// Exports what is measured from now on by these tasks, and does not end.
    pub async fn run(mut self, sources: Arc<Sources>, mut tasks: watch::Receiver<Arc<Tasks>>) -> ! {
        let mut stored = sources.subscribe();
        let mut again = interval(AGAIN);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut next = Next::behind(&tasks.borrow_and_update());
        next.find(&sources).await;
        info!("exports results to {} (IPFIX over UDP)", self.to);
        loop {
            tokio::select! {
                biased;
                _ = again.tick() => self.describe(&tasks).await,
                Ok(()) = tasks.changed() => self.describe(&tasks).await,
                Ok(()) = stored.changed() => {
                    let (known, mut why) = (tasks.borrow().clone(), None);
                    for (number, entered) in &*known {
                        let task = (*number, entered.task.name.as_ref());
                        let exported = self.export(&sources, task, &mut next).await;
                        why = exported.err().map(|error| error.to_string()).or(why);
                    }
                    self.tell(why);
                }
            }
        }
    }

    async fn describe(&mut self, tasks: &watch::Receiver<Arc<Tasks>>) {
        if self.unsent > 1 {
            warn!("{} messages could not be sent to {}", self.unsent, self.to);
        }
        self.unsent = 0;
        let tasks = tasks.borrow().clone();
        let messages = self.ipfix.descriptions(&tasks, now());
        self.send(&messages).await;
    }

    /// Exports what a task has measured since the window that was exported last.
    async fn export(
        &mut self,
        sources: &Sources,
        (number, name): (u64, &str),
        next: &mut Next,
    ) -> Result<(), NoAnswer> {
        let from = next.of(number, sources).await?;
        loop {
            let results = sources.measured(number, &behind(*from)).await?;
            let Some(last) = results.last() else { return Ok(()) };
            *from = last.begin_ns.saturating_add(1);
            let messages = self.ipfix.results((number, name), &results, now());
            self.send(&messages).await;
        }
    }

    /// Says once why results cannot be read: they are exported when they can be.
    fn tell(&mut self, why: Option<String>) {
        if let Some(why) = why.as_ref().filter(|_| why != self.told) {
            warn!("cannot read results to be exported: {why}; goes on trying");
        }
        self.told = why;
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

/// From where on results of tasks are new.
struct Next {
    from: HashMap<u64, i64>,
    /// Tasks that were there before, and of which nobody has said yet how far they had come.
    before: HashSet<u64>,
}

impl Next {
    /// Behind what there is of these tasks.
    fn behind(tasks: &Tasks) -> Self {
        Self { from: HashMap::new(), before: tasks.keys().copied().collect() }
    }

    /// Finds that out of all of them, as far as somebody answers.
    async fn find(&mut self, sources: &Sources) {
        for task in self.before.clone() {
            if let Err(error) = self.of(task, sources).await {
                warn!("cannot read how far task {task} has come: {error}");
            }
        }
    }

    /// That of a task.
    async fn of(&mut self, task: u64, sources: &Sources) -> Result<&mut i64, NoAnswer> {
        if self.before.contains(&task) {
            let until = sources.settled_until(task).await?;
            self.before.remove(&task);
            self.from.insert(task, until.as_nanos());
        }
        Ok(self.from.entry(task).or_insert(i64::MIN))
    }
}

/// The second since 1970, as far as 32 bits go: until 2106.
fn now() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u32::try_from(since.as_secs()).unwrap_or(u32::MAX)
}

fn behind(from: i64) -> Stretch {
    Stretch { step: Step::AsMeasured, from, until: i64::MAX, most: MOST }
}
