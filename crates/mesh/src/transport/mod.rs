//! Connections between nodes: TLS 1.3 (RFC 8446), with certificates of the mesh on both sides.
//!
//! Whoever calls knows the other by the authority and by its role, not by its address, which may be any. Before
//! a node has a certificate it knows the authority by its token. Whether a certificate was revoked, whoever
//! listens looks at each call: the controller asks the authority, and a collector goes by what it was told.

mod call;
mod listen;
mod tls;

use std::io;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::net::TcpStream;

pub use call::{Trust, call, reason};
pub use listen::{Known, Listener, Peer};
pub use tls::Unusable;

pub(crate) use tls::listening;

/// After how long without a word the other side is asked whether it is there, how often, and at which interval.
const SILENCE: Duration = Duration::from_secs(20);
const ASK_AGAIN: Duration = Duration::from_secs(5);
const ASK: u32 = 3;

/// How long what was sent may stay without an answer, in milliseconds.
const UNANSWERED: u32 = 35_000;

/// Has the kernel end a connection whose other side is gone without a word, and send each word at once.
fn watch_over(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, SILENCE)?;
    sockopt::set_tcp_keepintvl(stream, ASK_AGAIN)?;
    sockopt::set_tcp_keepcnt(stream, ASK)?;
    sockopt::set_tcp_user_timeout(stream, UNANSWERED)?;
    Ok(())
}
