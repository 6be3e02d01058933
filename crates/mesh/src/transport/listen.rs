//! Incoming connections.

use std::future;
use std::io;
use std::net::{self, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time;
use tokio_rustls::TlsAcceptor;
use tracing::{debug, warn};

use super::admission::{Admission, Closing, Place};
use super::connection::Connection;
use crate::pki::{Serial, Subject};

/// Queued connections after their handshake.
const QUEUE: usize = 64;

/// Timeout of a handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Delay after a failed accept, for example without free file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Address.
    pub address: SocketAddr,
    /// Identity.
    pub identity: PeerIdentity,
}

/// Identity of a peer.
#[derive(Clone, Debug)]
pub enum PeerIdentity {
    /// Unknown: no certificate.
    Anonymous,
    /// Subject and serial number of a verified certificate.
    Certificate(Subject, Serial),
    /// A caller on this machine, at the loopback address.
    Local,
}

/// TLS listener. Handshakes run concurrently.
pub struct Listener {
    address: SocketAddr,
    connections: mpsc::Receiver<(Connection, Peer)>,
}

impl Listener {
    /// Listens with a socket. Each connection uses the newest configuration.
    ///
    /// # Errors
    /// When the socket cannot be used.
    ///
    /// # Panics
    /// Outside of a runtime.
    pub fn new(
        socket: net::TcpListener,
        configuration: watch::Receiver<Arc<ServerConfig>>,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let socket = TcpListener::from_std(socket)?;
        let address = socket.local_addr()?;
        let (sender, connections) = mpsc::channel(QUEUE);
        tokio::spawn(take_all(socket, configuration, sender));
        Ok(Self { address, connections })
    }

    /// Address of the socket.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Accepts connections until the listener is dropped.
async fn take_all(
    socket: TcpListener,
    configuration: watch::Receiver<Arc<ServerConfig>>,
    sender: mpsc::Sender<(Connection, Peer)>,
) {
    let admission = Arc::<Admission>::default();
    loop {
        let (stream, address) = tokio::select! {
            () = sender.closed() => return,
            taken = socket.accept() => match taken {
                Ok(taken) => taken,
                Err(error) => {
                    warn!("cannot accept a connection: {error}");
                    time::sleep(ACCEPT_RETRY_DELAY).await;
                    continue;
                }
            },
        };
        let Some((place, closing)) = admission.admit(address.ip()) else {
            debug!("closed a connection from {address}: too many without a certificate");
            continue;
        };
        let acceptor = TlsAcceptor::from(Arc::clone(&configuration.borrow()));
        let sender = sender.clone();
        tokio::spawn(async move {
            let connected = shake_hands(stream, address, acceptor, place, closing);
            match time::timeout(HANDSHAKE_TIMEOUT, connected).await {
                // Sending fails only when the listener was dropped.
                Ok(Ok(Some(connection))) => drop(sender.send(connection).await),
                Ok(Ok(None)) => debug!("closed a connection from {address}, the oldest of many"),
                Ok(Err(error)) => warn!("rejected a connection from {address}: {error}"),
                Err(_) => debug!("handshake with {address} timed out"),
            }
        });
    }
}

/// The connection after its handshake; none if its place was given away before.
async fn shake_hands(
    stream: TcpStream,
    address: SocketAddr,
    acceptor: TlsAcceptor,
    place: Place,
    mut closing: Closing,
) -> io::Result<Option<(Connection, Peer)>> {
    super::set_timeouts(&stream)?;
    let stream = tokio::select! {
        accepted = acceptor.accept(stream) => accepted?,
        _ = &mut closing => return Ok(None),
    };
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let certificate = certificate.map(|it| Subject::of(it)).transpose();
    let certificate = certificate.map_err(io::Error::other)?;
    let (connection, identity) = match certificate {
        Some((subject, serial)) => {
            let identity = PeerIdentity::Certificate(subject, serial);
            (Connection::of_member(stream, place), identity)
        }
        None => (Connection::anonymous(stream, place, closing), PeerIdentity::Anonymous),
    };
    Ok(Some((connection, Peer { address, identity })))
}

impl axum::serve::Listener for Listener {
    type Io = Connection;
    type Addr = Peer;

    async fn accept(&mut self) -> (Self::Io, Peer) {
        match self.connections.recv().await {
            Some(connection) => connection,
            // The runtime is shutting down.
            None => future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer { address: self.address, identity: PeerIdentity::Anonymous })
    }
}
