//! Connections between nodes: TLS 1.3 (RFC 8446), with certificates of the mesh on both sides.
//!
//! A caller verifies the CA and role of the server, not its address. Before a node has a certificate, its token
//! identifies the CA. Servers check at each call whether the caller's certificate was revoked: the controller asks the
//! CA, a collector uses the list from the controller.

mod admission;
mod call;
mod connection;
mod listen;
mod serve;
mod tls;

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::TcpStream;

pub use call::{Trust, call, reason};
pub use listen::{Listener, Peer, PeerIdentity};
pub use tls::Unusable;

pub(crate) use serve::serve;
pub(crate) use tls::listening;

/// TCP keep-alive: idle time, interval and number of probes.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(20);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;

/// Timeout of unacknowledged data, in milliseconds.
const USER_TIMEOUT_MS: u32 = 35_000;

/// Enables keep-alive and timeouts, and disables the Nagle algorithm.
fn set_timeouts(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    sockopt::set_tcp_user_timeout(stream, USER_TIMEOUT_MS)?;
    Ok(())
}
