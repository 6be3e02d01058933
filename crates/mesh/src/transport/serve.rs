//! Answers on incoming connections: HTTP/2 between nodes, HTTP/1 for browsers and programs.

use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::serve::Listener as _;
use axum::{Extension, Router};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tower::Layer;
use tracing::debug;

use super::listen::{Listener, PeerIdentity};
use crate::pki::Role;

/// Max streams of a probe's connection, which has one for each point of a task.
const MAX_STREAMS: u32 = 4096;

/// Max streams of a connection without a certificate: it needs one, to enrol. The library resets more, which costs less than
/// a request.
const MAX_ANONYMOUS_STREAMS: u32 = 8;

/// Bytes that a probe may send before they are read, in a stream and in all streams of a connection: a stream waits while the
/// other point of its task is behind, and must not use up the room of the others. The max of RFC 9113 section 6.9.1.
const STREAM_WINDOW: u32 = 256 << 10;
const CONNECTION_WINDOW: u32 = (1 << 31) - 1;

const _: () = assert!(MAX_STREAMS as u64 * STREAM_WINDOW as u64 <= CONNECTION_WINDOW as u64);

/// A collector that does not answer a ping in this time is disconnected, also if its machine still acknowledges packets: its
/// tasks move to other collectors.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// Answers all connections, forever. Users and collectors have the limits of the library.
pub(crate) async fn serve(mut listener: Listener, routes: Router) {
    loop {
        let (connection, peer) = listener.accept().await;
        let (address, identity) = (peer.address, peer.identity.clone());
        let service = Extension(ConnectInfo(peer)).layer(routes.clone());
        tokio::spawn(async move {
            let mut builder = Builder::new(TokioExecutor::new());
            match identity {
                PeerIdentity::Anonymous => {
                    builder.http2().max_concurrent_streams(MAX_ANONYMOUS_STREAMS);
                }
                PeerIdentity::Certificate(it, _) if it.role == Role::Probe => {
                    builder
                        .http2()
                        .max_concurrent_streams(MAX_STREAMS)
                        .initial_stream_window_size(STREAM_WINDOW)
                        .initial_connection_window_size(CONNECTION_WINDOW);
                }
                PeerIdentity::Certificate(it, _) if it.role == Role::Collector => {
                    builder
                        .http2()
                        .timer(TokioTimer::new())
                        .keep_alive_interval(KEEP_ALIVE_INTERVAL)
                        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
                }
                PeerIdentity::Certificate(..) | PeerIdentity::Local => {}
            }
            let (connection, service) =
                (TokioIo::new(connection), TowerToHyperService::new(service));
            let served = builder.serve_connection_with_upgrades(connection, service).await;
            drop(
                served.inspect_err(|error| debug!("the connection from {address} ended: {error}")),
            );
        });
    }
}
