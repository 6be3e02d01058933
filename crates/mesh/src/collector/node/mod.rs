//! A collector that runs as a separate process. It connects to the controller, receives batches, and answers queries.

mod mesh_state;

#[cfg(not(feature = "kafka"))]
use std::future;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use rustls::ServerConfig;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{self, MissedTickBehavior};
use tokio_stream::wrappers::{IntervalStream, WatchStream};
use tokio_stream::{Stream, StreamExt};
use tonic::service::Routes;
use tracing::{info, warn};

use super::answers::AnswersService;
use super::{Archive, ArchiveCounts, Begun, Collector, Keep, Results, Service, maintain};
use crate::authorizer::Authorizer;
use crate::member::{self, Member, Pause};
use crate::pki::{Role, Token};
use crate::transport::{Listener, Unusable, listening, serve};
use crate::v1::answers_server::AnswersServer;
use crate::v1::collection_server::CollectionServer;
use crate::v1::control_client::ControlClient;
use crate::v1::{self, Archived, Counter, Presence};
use crate::{DatabaseError, Name};
use mesh_state::MeshState;

/// Min interval between notifications of new results: there are results every second.
const NOTIFICATION_INTERVAL: Duration = Duration::from_millis(250);

/// How often counts are sent.
const COUNT_INTERVAL: Duration = Duration::from_secs(10);

/// Max bytes of a message from the controller: a thousand tasks and ten thousand certificates take 1 MB.
const MAX_CHARGE_BYTES: usize = 64 << 20;

/// Settings of a collector.
#[derive(Debug)]
pub struct Settings {
    /// The listening socket. The caller may need privileges for it that the collector does not need.
    pub socket: TcpListener,
    /// Address for probes and the controller, `HOST:PORT`, if it differs from the listening address.
    pub reach: Option<String>,
    /// The controller's address, `HOST:PORT`.
    pub controller: String,
    /// State folder.
    pub folder: PathBuf,
    /// Enrolment token, if the collector is not enrolled yet.
    pub token: Option<Token>,
    /// Retention of results.
    pub keep: Keep,
}

/// Errors of a collector.
#[derive(Debug, Error)]
pub enum Error {
    /// The collector is not a member of the mesh.
    #[error(transparent)]
    Member(#[from] member::Error),
    /// A database cannot be used.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] Unusable),
    /// The socket cannot be used.
    #[error("cannot listen: {0}")]
    Listen(io::Error),
}

/// An enrolled collector that listens.
pub struct Node {
    listener: Listener,
    routes: Router,
    configuration: watch::Sender<Arc<ServerConfig>>,
    member: Member,
    mesh_state: Arc<MeshState>,
    collector: Arc<Collector>,
    archive: Arc<Archive>,
    presence: Presence,
    #[cfg(feature = "kafka")]
    parts: KafkaParts,
}

/// What reading from Kafka needs.
#[cfg(feature = "kafka")]
struct KafkaParts {
    folder: PathBuf,
    authorizer: Arc<Authorizer>,
    source: Option<super::kafka::Source>,
}

impl Node {
    /// Opens the files, enrols if necessary, and listens. Requests are answered after [`Self::run`] is called.
    ///
    /// # Errors
    /// When a file or the socket cannot be used, or the controller rejects the collector.
    pub async fn open(settings: Settings) -> Result<Self, Error> {
        let Settings { socket, reach, controller, folder, token, keep } = settings;
        let file = folder.join("collector.pem");
        let member = Member::open(controller, file, token.as_ref(), Role::Collector).await?;
        let mesh_state = Arc::new(MeshState::open(folder.join("charge")));
        let results = Results::open(&folder.join("results.sqlite"))?;
        let collector = Collector::new(results, mesh_state.tasks());
        let collector = collector.with_removed(mesh_state.removed());
        let collector = Arc::new(collector.with_epochs(mesh_state.epochs()));
        let archive = Archive::new(folder.join("archive"), Arc::clone(&collector), keep);
        let authorizer = Arc::new(Authorizer::new(mesh_state.clone()));
        let deliveries =
            Service { collector: Arc::clone(&collector), authorizer: Arc::clone(&authorizer) };
        #[cfg(feature = "kafka")]
        let parts = KafkaParts {
            folder: folder.clone(),
            authorizer: Arc::clone(&authorizer),
            source: None,
        };
        let answers = AnswersService { collector: Arc::clone(&collector), authorizer };
        let routes = Routes::new(CollectionServer::new(deliveries))
            .add_service(AnswersServer::new(answers))
            .into_axum_router();
        let shown = listening(&member.credentials().borrow())?;
        let configuration = watch::Sender::new(Arc::new(shown));
        let listener = Listener::new(socket, configuration.subscribe()).map_err(Error::Listen)?;
        let presence = Presence {
            address: reach.unwrap_or_else(|| reached(listener.address())),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Presence::default()
        };
        let archive = Arc::new(archive);
        Ok(Self {
            listener,
            routes,
            configuration,
            member,
            mesh_state,
            collector,
            archive,
            presence,
            #[cfg(feature = "kafka")]
            parts,
        })
    }

    /// Also reads batches from Kafka.
    ///
    /// # Errors
    /// When the file of the positions cannot be used.
    #[cfg(feature = "kafka")]
    pub fn with_kafka(mut self, settings: crate::kafka::Settings) -> Result<Self, DatabaseError> {
        let KafkaParts { folder, authorizer, source } = &mut self.parts;
        let parts = (Arc::clone(&self.collector), Arc::clone(authorizer));
        let opened =
            super::kafka::Source::open(settings, folder, parts, self.member.credentials())?;
        *source = Some(opened);
        Ok(self)
    }

    /// Name of the collector.
    #[must_use]
    pub fn name(&self) -> &Name {
        self.member.name()
    }

    /// Address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Receives batches and answers queries until `stop` completes.
    ///
    /// # Errors
    /// When the socket fails.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> io::Result<()> {
        let (member, mesh_state) = (&self.member, &self.mesh_state);
        #[cfg(feature = "kafka")]
        let from_kafka = super::kafka::run(self.parts.source);
        #[cfg(not(feature = "kafka"))]
        let from_kafka = future::pending();
        tokio::select! {
            () = serve(self.listener, self.routes) => Ok(()),
            () = keep_attending(member, mesh_state, &self.collector, &self.presence) => Ok(()),
            () = member.stay() => Ok(()),
            () = renew_configuration(member, &self.configuration) => Ok(()),
            () = maintain(&self.archive, mesh_state.tasks()) => Ok(()),
            () = hand_over(&self.collector) => Ok(()),
            () = from_kafka => Ok(()),
            () = stop => Ok(()),
        }
    }
}

/// Keeps the stream to the controller open.
async fn keep_attending(
    member: &Member,
    mesh_state: &MeshState,
    collector: &Arc<Collector>,
    presence: &Presence,
) {
    let mut pause = Pause::new();
    loop {
        let point_results = presences(presence, collector);
        let attended = attend(member, mesh_state, point_results).await;
        let is_revoked = attended.as_ref().is_err_and(member::Error::is_revoked);
        pause.after(attended).await;
        if is_revoked {
            match member.rejoin().await {
                Ok(true) => pause = Pause::new(),
                Ok(false) => {}
                Err(error) => pause.after(Err(error)).await,
            }
        }
    }
}

/// Sends its address and notifications of new results, and receives tasks and certificates, until the controller ends
/// the stream.
async fn attend(
    member: &Member,
    mesh_state: &MeshState,
    point_results: impl Stream<Item = Presence> + Send + 'static,
) -> Result<(), member::Error> {
    let controller = format!("the controller at {}", member.controller());
    let refused =
        |status| member::Error::Refused { node: controller.clone(), status: Box::new(status) };
    let mut client = ControlClient::new(member.call()?).max_decoding_message_size(MAX_CHARGE_BYTES);
    let mut stream = client.collect(point_results).await.map_err(refused)?.into_inner();
    let mut is_new = true;
    while let Some(charge) = stream.message().await.map_err(refused)? {
        mesh_state.replace(&charge);
        if std::mem::take(&mut is_new) {
            info!("connected to {controller}");
        }
    }
    Ok(())
}

/// Messages to the controller: one at once, one for each batch of new results, one when results cannot be stored or can be
/// stored again, and one every ten seconds with the counts.
fn presences(
    presence: &Presence,
    collector: &Arc<Collector>,
) -> impl Stream<Item = Presence> + Send + 'static {
    let (presence, trouble) = (presence.clone(), collector.trouble());
    let troubles = WatchStream::new(collector.trouble()).map(drop);
    let stored = WatchStream::from_changes(collector.subscribe());
    let (begun, mut sent) = (collector.begun(), None);
    let changed = WatchStream::from_changes(collector.begun()).map(drop);
    let mut due = time::interval(COUNT_INTERVAL);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    due.reset();
    let due = IntervalStream::new(due).map(drop);
    let all = troubles.merge(stored.throttle(NOTIFICATION_INTERVAL)).merge(changed).merge(due);
    let collector = Arc::clone(collector);
    all.map(move |()| {
        let trouble = trouble.borrow().clone().unwrap_or_default();
        let now = Arc::clone(&begun.borrow());
        let is_new = sent.as_ref() != Some(&now);
        let begun = if is_new { now.values().map(of_begun).collect() } else { Vec::new() };
        sent = Some(now);
        let archived = Some(of_archive(*collector.archived().borrow()));
        let kafka_records = collector.kafka_stats().counts().into_iter();
        let kafka_records = kafka_records.map(|(what, count)| Counter { what: what.into(), count });
        let kafka_records = kafka_records.collect();
        let kafka_failures = collector.kafka_stats().failures();
        Presence { trouble, begun, archived, kafka_records, kafka_failures, ..presence.clone() }
    })
}

fn of_archive(counts: ArchiveCounts) -> Archived {
    let ArchiveCounts { results, observations, failures } = counts;
    Archived { results, observations, failures }
}

fn of_begun(begun: &Begun) -> v1::Begun {
    let Begun { task, epoch, start, spool, behind } = *begun;
    v1::Begun { task, epoch, start, spool, behind }
}

/// Executes handovers of tasks whenever they change, forever.
pub(crate) async fn hand_over(collector: &Arc<Collector>) {
    let mut placed = collector.placements();
    placed.mark_changed();
    while placed.changed().await.is_ok() {
        placed.mark_unchanged();
        let collector = Arc::clone(collector);
        // A panic was reported by the thread itself.
        drop(tokio::task::spawn_blocking(move || collector.hand_over()).await);
    }
}

/// Updates the TLS configuration with renewed credentials, forever.
async fn renew_configuration(member: &Member, configuration: &watch::Sender<Arc<ServerConfig>>) {
    let mut credentials = member.credentials();
    // The sender is part of the member.
    while credentials.changed().await.is_ok() {
        let listening = listening(&credentials.borrow_and_update());
        match listening {
            Ok(shown) => drop(configuration.send_replace(Arc::new(shown))),
            Err(error) => warn!("cannot use the renewed certificate: {error}; keeping the old one"),
        }
    }
}

/// Address for others. Without a host, the controller uses the one that it sees.
fn reached(address: SocketAddr) -> String {
    if address.ip().is_unspecified() { format!(":{}", address.port()) } else { address.to_string() }
}
