//! The controller: lets nodes in, keeps what is wanted, and tells each probe its part of it. A collector runs
//! beside it, and others may be processes of their own.

mod answer;
mod api;
mod attendance;
mod clocks;
mod collect;
mod control;
mod credentials;
mod description;
mod embedded;
mod events;
mod health;
mod histogram;
mod homes;
mod local;
mod members;
mod metrics;
mod page;
mod plan;
mod recent;
mod refusal;
mod results;
#[cfg(test)]
pub(crate) mod sample;
mod sources;

use std::future::{self, Future};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use thiserror::Error;
use tokio::sync::watch;
use tonic::service::Routes;

pub use attendance::{Attendance, Attending};
pub use clocks::ClockOffset;
pub use health::{CaptureHealth, Health, SyncStatusHealth, TestEnd, TestHealth, Trouble};
pub use local::{Loopback, NotLoopback};
pub use plan::{Change, Plan};
pub use sources::{NoAnswer, Sources};

use crate::DatabaseError;
use crate::collector::{self, Archive, Collector, Keep, Results, tend};
use crate::gate::Gate;
use crate::pki::{self, Authority, Host};
use crate::task::Tasks;
use crate::transport::{Listener, Peer, Unusable};
use crate::v1::collection_server::CollectionServer;
use crate::v1::control_server::ControlServer;
use control::Control;
use credentials::Keeper;
use homes::Homes;
use local::Local;
use members::Shared;
use metrics::Totals;

/// Bytes of what a node asks a controller for: anybody may ask to be let in.
const LARGEST_REQUEST: usize = 64 << 10;

/// What a controller needs.
#[derive(Debug)]
pub struct Settings {
    /// What it listens with: whoever starts it may have privileges for that which it does not need.
    pub socket: TcpListener,
    /// The folder that it keeps everything in.
    pub folder: PathBuf,
    /// The file of the authority.
    pub authority: PathBuf,
    /// By what others call it, besides its name in the mesh and those that this machine has for itself.
    pub names: Vec<Host>,
    /// For how long results are kept.
    pub keep: Keep,
    /// Where people on this machine need no certificate, if anywhere.
    pub page: Option<Loopback>,
}

/// Why a controller does not run.
#[derive(Debug, Error)]
pub enum Error {
    /// The authority does not work.
    #[error(transparent)]
    Authority(#[from] pki::Error),
    /// A file of its own cannot be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// Its credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] Unusable),
    /// Its credentials cannot be kept.
    #[error("cannot keep credentials: {0}")]
    Keep(io::Error),
    /// The socket cannot be used.
    #[error("cannot listen: {0}")]
    Listen(io::Error),
    /// The address of the page is not to be had.
    #[error("cannot listen at {address} for the page: {cause}")]
    Page {
        /// The address.
        address: SocketAddr,
        /// What the system says.
        cause: io::Error,
    },
}

/// A controller that listens.
pub struct Controller {
    listener: Listener,
    routes: Router,
    local: Option<(Local, Router)>,
    keeper: Keeper,
    authority: Arc<Shared>,
    plan: Arc<Plan>,
    homes: Arc<Homes>,
    /// The tasks of its own collector.
    tasks: watch::Sender<Arc<Tasks>>,
    collector: Arc<Collector>,
    sources: Arc<Sources>,
    archive: Arc<Archive>,
    attendance: Arc<Attendance>,
}

impl Controller {
    /// Opens its files and listens. It answers once it runs.
    ///
    /// # Errors
    /// When a file, the socket or the page's address cannot be used.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn open(settings: Settings) -> Result<Self, Error> {
        let Settings { socket, folder, authority, names, keep, page } = settings;
        let authority = Arc::new(Shared::new(Authority::open(&authority)?)?);
        let gate = Arc::new(Gate::new(authority.clone()));
        let plan = Arc::new(Plan::open(&folder.join("plan.sqlite"))?);
        let tasks = plan.subscribe().borrow().clone();
        let homes = Arc::new(Homes::open(&folder.join("homes.sqlite"), &tasks)?);
        let tasks = homes.tasks_of(&tasks, None);
        let tasks = watch::Sender::new(Arc::new(tasks));
        let results = Results::open(&folder.join("results.sqlite"))?;
        let collector = Arc::new(Collector::new(results, tasks.subscribe()));
        let archive = Archive::new(folder.join("archive"), Arc::clone(&collector), keep);
        let attendance = Arc::new(Attendance::default());
        let keeper = Keeper::open(folder.join("controller.pem"), Arc::clone(&authority), names)?;
        let listener = Listener::new(socket, keeper.configuration()).map_err(Error::Listen)?;
        let local = page.map(Local::bind).transpose()?;
        let sources = Arc::new(Sources::new(
            Arc::clone(&collector),
            Arc::clone(&homes),
            authority.members(),
            keeper.credentials(),
        ));
        let control = Control {
            authority: Arc::clone(&authority),
            gate: Arc::clone(&gate),
            plan: Arc::clone(&plan),
            attendance: Arc::clone(&attendance),
            homes: Arc::clone(&homes),
            sources: Arc::clone(&sources),
        };
        let api = api::Api {
            gate: Arc::clone(&gate),
            plan: Arc::clone(&plan),
            sources: Arc::clone(&sources),
            attendance: Arc::clone(&attendance),
            homes: Arc::clone(&homes),
            totals: Arc::new(Totals::new(&plan.subscribe().borrow())),
        };
        let people = api.routes();
        let deliveries = collector::Service { collector: Arc::clone(&collector), gate };
        let control = ControlServer::new(control).max_decoding_message_size(LARGEST_REQUEST);
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
            homes,
            tasks,
            collector,
            sources,
            archive,
            attendance,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Where people on this machine need no certificate, if anywhere.
    #[must_use]
    pub fn page(&self) -> Option<SocketAddr> {
        self.local.as_ref().map(|(local, _)| local.address())
    }

    /// What is wanted.
    #[must_use]
    pub fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan)
    }

    /// The results, wherever they are.
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
    pub fn attendance(&self) -> Arc<Attendance> {
        Arc::clone(&self.attendance)
    }

    /// Answers until it is told to stop.
    ///
    /// # Errors
    /// When the system does not let it go on.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let answers = self.routes.into_make_service_with_connect_info::<Peer>();
        let locally = async {
            match self.local {
                Some((local, routes)) => local.serve(routes).await,
                None => future::pending().await,
            }
        };
        tokio::select! {
            served = async { axum::serve(self.listener, answers).await } => served,
            served = locally => served,
            () = self.keeper.keep() => Ok(()),
            () = self.authority.watch_over() => Ok(()),
            () = keep_tasks(&self.plan, &self.homes, &self.tasks) => Ok(()),
            () = self.sources.pass_on() => Ok(()),
            () = tend(&self.archive, self.plan.subscribe()) => Ok(()),
            () = stop => Ok(()),
        }
    }
}

/// Tells the controller's own collector of its tasks whenever they change, for ever.
async fn keep_tasks(plan: &Plan, homes: &Homes, own: &watch::Sender<Arc<Tasks>>) {
    let (mut tasks, mut settled) = (plan.subscribe(), homes.subscribe());
    loop {
        let now = homes.tasks_of(&tasks.borrow_and_update(), None);
        own.send_replace(Arc::new(now));
        tokio::select! {
            changed = tasks.changed() => if changed.is_err() { return },
            changed = settled.changed() => if changed.is_err() { return },
        }
    }
}
