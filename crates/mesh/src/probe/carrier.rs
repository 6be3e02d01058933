//! Transport of spooled batches to the collector.

use std::collections::{BTreeMap, HashMap};
use std::future::{self, Future};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use tonic::transport::Channel;
use tracing::warn;

use super::{ChannelName, Error, SharedSpool, deliver};
use crate::member;
use crate::pki::{Credentials, Role, Serial};
use crate::transport::{Trust, call};

/// Transports spooled batches to the collector that correlates them. A batch may arrive twice, but never out of order.
/// It leaves the spool only after the collector has stored the results that need it.
pub trait Carrier: Send + Sync + 'static {
    /// Sends the batches of a channel, also later ones, until the connection ends. The caller then calls again.
    ///
    /// # Errors
    /// When the collector cannot be reached or rejects the batches.
    fn carry(
        &self,
        spool: &SharedSpool,
        name: ChannelName,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    /// Completes when the batches of a channel have another destination than at the time of this call; never for a
    /// carrier with a single destination.
    fn moved(&self, _: ChannelName) -> impl Future<Output = ()> + Send + 'static {
        future::pending()
    }
}

/// The collector of each task. Tasks that are not listed belong to the controller's own collector, in epoch 0.
pub(super) type Destinations = BTreeMap<u64, TaskDestination>;

/// The collector of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TaskDestination {
    /// Its address; none for the controller's own collector; empty while no collector accepts the batches.
    pub(super) address: Option<String>,
    /// Epoch of the placement: it rises when the task moves.
    pub(super) epoch: u64,
}

/// Sends batches over gRPC to the collector that the controller names.
pub struct Direct {
    controller: String,
    credentials: watch::Receiver<Credentials>,
    destinations: watch::Receiver<Arc<Destinations>>,
    connections: Mutex<Connections>,
}

/// Connections of a probe: one to each collector, which the deliveries of all tasks share.
#[derive(Default)]
struct Connections {
    /// Of the certificate with which they were made. A renewed one makes new connections.
    serial: Option<Serial>,
    open: HashMap<(Role, String), Channel>,
}

impl Direct {
    pub(super) fn new(
        controller: String,
        credentials: watch::Receiver<Credentials>,
        destinations: watch::Receiver<Arc<Destinations>>,
    ) -> Self {
        let connections = Mutex::default();
        Self { controller, credentials, destinations, connections }
    }

    /// The connection to a node. It connects at the first call, and again after it was lost.
    fn connection(&self, address: &str, role: Role) -> Result<Channel, member::Error> {
        let mut connections = self.connections.lock();
        let credentials = self.credentials.borrow().clone();
        let serial = credentials.subject_and_serial().map(|(_, serial)| serial);
        if connections.serial != serial {
            *connections = Connections { serial, ..Connections::default() };
        }
        let node = (role, address.to_owned());
        if let Some(open) = connections.open.get(&node) {
            return Ok(open.clone());
        }
        let opened = call(address, role, &Trust::Certificate(&credentials))?;
        // Those to former collectors end.
        let destinations = Arc::clone(&self.destinations.borrow());
        let is_used = |(role, address): &(Role, String)| {
            *role == Role::Controller
                || destinations.values().any(|it| it.address.as_ref() == Some(address))
        };
        connections.open.retain(|node, _| is_used(node));
        connections.open.insert(node, opened.clone());
        Ok(opened)
    }
}

impl Carrier for Direct {
    fn moved(&self, name: ChannelName) -> impl Future<Output = ()> + Send + 'static {
        let mut destinations = self.destinations.clone();
        let to = destinations.borrow_and_update().get(&name.task).cloned();
        async move {
            let has_moved = |now: &Arc<Destinations>| now.get(&name.task) != to.as_ref();
            if destinations.wait_for(has_moved).await.is_err() {
                future::pending::<()>().await;
            }
        }
    }

    async fn carry(&self, spool: &SharedSpool, name: ChannelName) -> Result<(), Error> {
        let mut destinations = self.destinations.clone();
        let to = destinations.borrow_and_update().get(&name.task).cloned().unwrap_or_default();
        let has_moved =
            |now: &Arc<Destinations>| now.get(&name.task).cloned().unwrap_or_default() != to;
        let (address, role) = match to.address.as_deref() {
            None => (&*self.controller, Role::Controller),
            Some("") => {
                let task = name.task;
                warn!(
                    "cannot deliver task {task}: its collector has no valid certificate; the task waits \
                     until the controller moves it to another one"
                );
                // No collector accepts the batches now. The sender of `destinations` lives as long as the probe.
                drop(destinations.wait_for(has_moved).await);
                return Ok(());
            }
            Some(address) => (address, Role::Collector),
        };
        let collector = self.connection(address, role)?;
        tokio::select! {
            delivered = deliver(collector, spool, name, to.epoch) => delivered,
            _ = destinations.wait_for(has_moved) => Ok(()),
        }
    }
}
