//! The controller: enrols nodes, stores tasks and assigns them to probes. It contains a collector; more collectors may
//! run as separate processes.

mod api;
mod clocks;
mod collector_session;
mod control;
mod control_service;
mod credentials;
mod description;
mod embedded;
mod error_response;
mod events;
mod health;
mod histogram;
mod local;
mod metrics;
mod move_task;
mod page;
mod placement;
mod probe_registry;
mod probe_session;
mod recent;
mod removal;
mod response;
mod results;
mod routes;
mod shared_ca;
mod sources;
mod task_store;
#[cfg(test)]
pub(crate) mod testing;

use std::future::{self, Future};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use thiserror::Error;
use tokio::sync::watch;
use tonic::service::Routes;

pub use health::{
    CaptureHealth, ClockOffset, ProbeHealth, SyncStatusHealth, TestEnd, TestHealth, Trouble,
};
pub use local::{Loopback, NotLoopback};
pub use probe_registry::{ProbeRegistry, RegisteredProbe};
pub use sources::{QueryError, Sources};
pub use task_store::{Change, Removal, TaskStore};

use crate::DatabaseError;
use crate::authorizer::Authorizer;
use crate::collector::{self, Archive, Collector, Keep, Results, TaskEpochs, maintain};
use crate::pki::{self, Authority, Host};
use crate::task::Tasks;
use crate::transport::{Listener, Unusable, serve};
use crate::v1::collection_server::CollectionServer;
use crate::v1::control_server::ControlServer;
use control::Control;
use credentials::CertificateRenewer;
use local::LocalListener;
use metrics::totals::Totals;
#[cfg(all(test, feature = "kafka"))]
pub(crate) use placement::SimulatedPlacement;
use placement::TaskPlacement;
use shared_ca::SharedCa;

/// Max bytes of a node's request: anyone may send an enrolment. The report of a probe with a thousand tasks has less.
const MAX_REQUEST_BYTES: usize = 256 << 10;

/// Settings of a controller.
#[derive(Debug)]
pub struct Settings {
    /// The listening socket. The caller may need privileges for it that the controller does not need.
    pub socket: TcpListener,
    /// State folder.
    pub folder: PathBuf,
    /// File of the CA.
    pub authority: PathBuf,
    /// Host names and addresses of the controller, in addition to its mesh name and those of this machine.
    pub names: Vec<Host>,
    /// Retention of results.
    pub keep: Keep,
    /// Address at which callers on this machine need no certificate, if any.
    pub page: Option<Loopback>,
    /// How long a collector may be away until its tasks move to others; none if they never do.
    pub move_after: Option<Duration>,
}

/// Errors of a controller.
#[derive(Debug, Error)]
pub enum Error {
    /// The CA failed.
    #[error(transparent)]
    Authority(#[from] pki::Error),
    /// A database cannot be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] Unusable),
    /// The credentials cannot be saved.
    #[error("cannot save the controller's credentials: {0}")]
    Keep(io::Error),
    /// The socket cannot be used.
    #[error("cannot listen: {0}")]
    Listen(io::Error),
    /// The address of the page is not available.
    #[error("cannot serve the page at {address}: {cause}")]
    Page {
        /// The address.
        address: SocketAddr,
        /// Cause.
        cause: io::Error,
    },
}

/// A controller that listens.
pub struct Controller {
    listener: Listener,
    routes: Router,
    local: Option<(LocalListener, Router)>,
    keeper: CertificateRenewer,
    authority: Arc<SharedCa>,
    plan: Arc<TaskStore>,
    placement: Arc<TaskPlacement>,
    /// Tasks of its own collector, and their placements.
    tasks: watch::Sender<Arc<Tasks>>,
    epochs: watch::Sender<Arc<TaskEpochs>>,
    move_after: Option<Duration>,
    collector: Arc<Collector>,
    sources: Arc<Sources>,
    totals: Arc<Totals>,
    archive: Arc<Archive>,
    probes: Arc<ProbeRegistry>,
    #[cfg(feature = "kafka")]
    parts: KafkaParts,
}

/// What reading from Kafka needs.
#[cfg(feature = "kafka")]
struct KafkaParts {
    folder: PathBuf,
    authorizer: Arc<Authorizer>,
    source: Option<collector::kafka::Source>,
}

impl Controller {
    /// Opens the files and the listening sockets. Requests are answered after [`Self::run`] is called.
    ///
    /// # Errors
    /// When a file, the socket or the page's address cannot be used.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn open(settings: Settings) -> Result<Self, Error> {
        let Settings { socket, folder, authority, names, keep, page, move_after } = settings;
        let authority = Arc::new(SharedCa::new(Authority::open(&authority)?)?);
        let authorizer = Arc::new(Authorizer::new(authority.clone()));
        let plan = Arc::new(TaskStore::open(&folder.join("plan.sqlite"))?);
        let tasks = plan.subscribe().borrow().clone();
        let placement = Arc::new(TaskPlacement::open(&folder.join("homes.sqlite"), &tasks)?);
        let (tasks, epochs) = placement.known_to(&tasks, None);
        let (tasks, epochs) =
            (watch::Sender::new(Arc::new(tasks)), watch::Sender::new(Arc::new(epochs)));
        let results = Results::open(&folder.join("results.sqlite"))?;
        let collector = Collector::new(results, tasks.subscribe()).with_removed(plan.removed());
        let collector = Arc::new(collector.with_epochs(epochs.subscribe()));
        let archive = Archive::new(folder.join("archive"), Arc::clone(&collector), keep);
        let probes = Arc::new(ProbeRegistry::default());
        let keeper =
            CertificateRenewer::open(folder.join("controller.pem"), Arc::clone(&authority), names)?;
        let listener = Listener::new(socket, keeper.configuration()).map_err(Error::Listen)?;
        let local = page.map(LocalListener::bind).transpose()?;
        let sources = Arc::new(Sources::new(
            Arc::clone(&collector),
            Arc::clone(&placement),
            authority.members(),
            keeper.credentials(),
            plan.subscribe(),
        ));
        let control = Control {
            authority: Arc::clone(&authority),
            authorizer: Arc::clone(&authorizer),
            plan: Arc::clone(&plan),
            probes: Arc::clone(&probes),
            placement: Arc::clone(&placement),
            sources: Arc::clone(&sources),
        };
        let totals = Arc::new(Totals::new(&plan.subscribe().borrow()));
        let api = api::Api {
            authorizer: Arc::clone(&authorizer),
            plan: Arc::clone(&plan),
            sources: Arc::clone(&sources),
            probes: Arc::clone(&probes),
            placement: Arc::clone(&placement),
            members: authority.members(),
            totals: Arc::clone(&totals),
        };
        let people = routes::routes(api);
        #[cfg(feature = "kafka")]
        let parts = KafkaParts { folder, authorizer: Arc::clone(&authorizer), source: None };
        let deliveries = collector::Service { collector: Arc::clone(&collector), authorizer };
        let control = ControlServer::new(control).max_decoding_message_size(MAX_REQUEST_BYTES);
        let routes = Routes::new(control)
            .add_service(CollectionServer::new(deliveries))
            .into_axum_router()
            .reset_fallback()
            .merge(people.clone());
        let archive = Arc::new(archive);
        let local = local.map(|local| (local, people));
        Ok(Self {
            listener,
            routes,
            local,
            keeper,
            authority,
            plan,
            placement,
            tasks,
            epochs,
            move_after,
            collector,
            sources,
            totals,
            archive,
            probes,
            #[cfg(feature = "kafka")]
            parts,
        })
    }

    /// Its own collector also reads batches from Kafka.
    ///
    /// # Errors
    /// When the file of the positions cannot be used.
    #[cfg(feature = "kafka")]
    pub fn with_kafka(mut self, settings: crate::kafka::Settings) -> Result<Self, Error> {
        let KafkaParts { folder, authorizer, source } = &mut self.parts;
        let parts = (Arc::clone(&self.collector), Arc::clone(authorizer));
        let credentials = self.keeper.credentials();
        *source = Some(collector::kafka::Source::open(settings, folder, parts, credentials)?);
        Ok(self)
    }

    /// Address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Address at which callers on this machine need no certificate, if any.
    #[must_use]
    pub fn page(&self) -> Option<SocketAddr> {
        self.local.as_ref().map(|(local, _)| local.address())
    }

    /// The tasks.
    #[must_use]
    pub fn plan(&self) -> Arc<TaskStore> {
        Arc::clone(&self.plan)
    }

    /// The results of all collectors.
    #[must_use]
    pub fn sources(&self) -> Arc<Sources> {
        Arc::clone(&self.sources)
    }

    /// Its own collector.
    #[must_use]
    pub fn collector(&self) -> Arc<Collector> {
        Arc::clone(&self.collector)
    }

    /// The probes.
    #[must_use]
    pub fn probes(&self) -> Arc<ProbeRegistry> {
        Arc::clone(&self.probes)
    }

    /// Answers requests until `stop` completes.
    ///
    /// # Errors
    /// When a socket fails.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let locally = async {
            match self.local {
                Some((local, routes)) => local.serve(routes).await,
                None => future::pending().await,
            }
        };
        let own = (&self.tasks, &self.epochs);
        let existing = self.plan.subscribe();
        let counting = async {
            self.totals.begin(&existing, &self.sources).await;
            future::pending().await
        };
        #[cfg(feature = "kafka")]
        let from_kafka = collector::kafka::run(self.parts.source);
        #[cfg(not(feature = "kafka"))]
        let from_kafka = future::pending();
        tokio::select! {
            () = serve(self.listener, self.routes) => Ok(()),
            () = from_kafka => Ok(()),
            served = locally => served,
            () = self.keeper.keep() => Ok(()),
            () = self.authority.poll() => Ok(()),
            () = keep_tasks(&self.plan, &self.placement, own) => Ok(()),
            () = collector::node::hand_over(&self.collector) => Ok(()),
            () = move_task::keep_begun(&self.collector, &self.placement) => Ok(()),
            () = move_task::keep_moving(self.move_after, &self.plan, &self.placement, &self.authority) => Ok(()),
            () = self.sources.pass_on() => Ok(()),
            () = counting => Ok(()),
            () = maintain(&self.archive, self.plan.subscribe()) => Ok(()),
            () = stop => Ok(()),
        }
    }
}

/// Updates the tasks of the controller's own collector whenever they change, forever.
async fn keep_tasks(
    plan: &TaskStore,
    placement: &TaskPlacement,
    (own, epochs): (&watch::Sender<Arc<Tasks>>, &watch::Sender<Arc<TaskEpochs>>),
) {
    let (mut tasks, mut placed) = (plan.subscribe(), placement.subscribe());
    loop {
        placed.mark_unchanged();
        let (now, moved) = placement.known_to(&tasks.borrow_and_update(), None);
        // Before the tasks, so that no batch of a new task is taken in an earlier epoch.
        epochs.send_if_modified(|before| {
            let is_other = **before != moved;
            *before = Arc::new(moved);
            is_other
        });
        own.send_replace(Arc::new(now));
        tokio::select! {
            changed = tasks.changed() => if changed.is_err() { return },
            changed = placed.changed() => if changed.is_err() { return },
        }
    }
}
