//! The way from what is held to whoever correlates it.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;
use tracing::warn;

use super::{ChannelName, Error, Stock, deliver};
use crate::member;
use crate::pki::{Credentials, Role};
use crate::transport::{Trust, call};

/// Brings what is held of channels to whoever correlates it. What it brings may come twice, never out of its order, and
/// only what is settled for good goes from the stock.
pub trait Carrier: Send + Sync + 'static {
    /// Brings what is held of a channel, and whatever is added to it, until that ends: then it has to be asked again.
    ///
    /// # Errors
    /// When nobody is there, or nobody takes it.
    fn carry(
        &self,
        stock: &Stock,
        name: ChannelName,
    ) -> impl Future<Output = Result<(), Error>> + Send;
}

/// Where the collectors are that take what was seen for tasks, or nothing where nobody does now. The controller itself
/// takes that for all others.
pub(super) type Destinations = BTreeMap<u64, String>;

/// Calls the collector of a task by gRPC, wherever the controller says that it is.
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
    async fn carry(&self, stock: &Stock, name: ChannelName) -> Result<(), Error> {
        let mut destinations = self.destinations.clone();
        let to = destinations.borrow_and_update().get(&name.task).cloned();
        let is_elsewhere = |now: &Arc<Destinations>| now.get(&name.task) != to.as_ref();
        let (address, role) = match to.as_deref() {
            None => (&*self.controller, Role::Controller),
            Some("") => {
                let task = name.task;
                warn!(
                    "nobody takes what is seen for task {task}: its collector does not belong to the mesh any \
                     more; end the task, and enter it again"
                );
                // Nobody takes it now. What tells of destinations is there as long as the probe.
                drop(destinations.wait_for(is_elsewhere).await);
                return Ok(());
            }
            Some(address) => (address, Role::Collector),
        };
        let trust = self.credentials.borrow().clone();
        let collector = call(address, role, &Trust::Certificate(&trust));
        let collector = collector.map_err(member::Error::from)?;
        tokio::select! {
            delivered = deliver(collector, stock, name) => delivered,
            _ = destinations.wait_for(is_elsewhere) => Ok(()),
        }
    }
}
