//! Transport of spooled batches to the collector.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;
use tracing::warn;

use super::{ChannelName, Error, SharedSpool, deliver};
use crate::member;
use crate::pki::{Credentials, Role};
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
}

/// Address of the collector of each task; empty while no collector accepts its batches. Tasks that are not listed
/// belong to the controller's own collector.
pub(super) type Destinations = BTreeMap<u64, String>;

/// Sends batches over gRPC to the collector that the controller names.
pub struct Direct {
    controller: String,
    credentials: watch::Receiver<Credentials>,
    destinations: watch::Receiver<Arc<Destinations>>,
}

impl Direct {
    pub(super) fn new(
        controller: String,
        credentials: watch::Receiver<Credentials>,
        destinations: watch::Receiver<Arc<Destinations>>,
    ) -> Self {
        Self { controller, credentials, destinations }
    }
}

impl Carrier for Direct {
    async fn carry(&self, spool: &SharedSpool, name: ChannelName) -> Result<(), Error> {
        let mut destinations = self.destinations.clone();
        let to = destinations.borrow_and_update().get(&name.task).cloned();
        let has_moved = |now: &Arc<Destinations>| now.get(&name.task) != to.as_ref();
        let (address, role) = match to.as_deref() {
            None => (&*self.controller, Role::Controller),
            Some("") => {
                let task = name.task;
                warn!(
                    "cannot deliver task {task}: its collector has no valid certificate; end the task \
                     and create it again"
                );
                // No collector accepts the batches now. The sender of `destinations` lives as long as the probe.
                drop(destinations.wait_for(has_moved).await);
                return Ok(());
            }
            Some(address) => (address, Role::Collector),
        };
        let trust = self.credentials.borrow().clone();
        let collector = call(address, role, &Trust::Certificate(&trust));
        let collector = collector.map_err(member::Error::from)?;
        tokio::select! {
            delivered = deliver(collector, spool, name) => delivered,
            _ = destinations.wait_for(has_moved) => Ok(()),
        }
    }
}
