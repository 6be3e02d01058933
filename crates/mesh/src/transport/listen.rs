//! Taking calls.

use std::future;
use std::io;
use std::net::{self, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::IncomingStream;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::{debug, warn};

use crate::pki::{Serial, Subject};

/// Handshakes at once, and how long each may take: who only knocks keeps nobody else out for long.
const HANDSHAKES: usize = 64;
const PATIENCE: Duration = Duration::from_secs(10);

/// How long nobody is let in where the system has no room for another connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Its address.
    pub address: SocketAddr,
    /// How it is known who it is.
    pub known: Known,
}

/// How it is known who somebody is.
#[derive(Clone, Debug)]
pub enum Known {
    /// It is not.
    Not,
    /// By a certificate, which the authority signed, and its number.
    Certificate(Subject, Serial),
    /// It came by a way that only this machine has.
    Local,
}

/// Takes connections at an address. A handshake keeps none of the others waiting.
pub struct Listener {
    address: SocketAddr,
    connections: mpsc::Receiver<(TlsStream<TcpStream>, Peer)>,
}

impl Listener {
    /// Listens with a socket, and with the newest of these configurations at each connection.
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
        let (sender, connections) = mpsc::channel(HANDSHAKES);
        tokio::spawn(take_all(socket, configuration, sender));
        Ok(Self { address, connections })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

/// Takes connections until nobody wants them any more.
async fn take_all(
    socket: TcpListener,
    configuration: watch::Receiver<Arc<ServerConfig>>,
    sender: mpsc::Sender<(TlsStream<TcpStream>, Peer)>,
) {
    let room = Arc::new(Semaphore::new(HANDSHAKES));
    loop {
        let Ok(place) = Arc::clone(&room).acquire_owned().await else { return };
        let (stream, address) = tokio::select! {
            () = sender.closed() => return,
            taken = socket.accept() => match taken {
                Ok(taken) => taken,
                Err(error) => {
                    warn!("cannot take a connection: {error}");
                    time::sleep(PAUSE).await;
                    continue;
                }
            },
        };
        let acceptor = TlsAcceptor::from(Arc::clone(&configuration.borrow()));
        let sender = sender.clone();
        tokio::spawn(async move {
            let _place = place;
            match time::timeout(PATIENCE, shake_hands(stream, address, acceptor)).await {
                // Nobody wants it any more, if it cannot be sent.
                Ok(Ok(connection)) => drop(sender.send(connection).await),
                Ok(Err(error)) => warn!("refused a connection from {address}: {error}"),
                Err(_) => debug!("{address} did not finish its handshake"),
            }
        });
    }
}

async fn shake_hands(
    stream: TcpStream,
    address: SocketAddr,
    acceptor: TlsAcceptor,
) -> io::Result<(TlsStream<TcpStream>, Peer)> {
    super::watch_over(&stream)?;
    let stream = acceptor.accept(stream).await?;
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    let certificate = certificate.map(|it| Subject::of(it)).transpose();
    let certificate = certificate.map_err(io::Error::other)?;
    let known =
        certificate.map_or(Known::Not, |(subject, serial)| Known::Certificate(subject, serial));
    Ok((stream, Peer { address, known }))
}

impl axum::serve::Listener for Listener {
    type Io = TlsStream<TcpStream>;
    type Addr = Peer;

    async fn accept(&mut self) -> (Self::Io, Peer) {
        match self.connections.recv().await {
            Some(connection) => connection,
            // The runtime is at its end.
            None => future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Peer> {
        Ok(Peer { address: self.address, known: Known::Not })
    }
}

impl Connected<IncomingStream<'_, Listener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Listener>) -> Self {
        stream.remote_addr().clone()
    }
}
