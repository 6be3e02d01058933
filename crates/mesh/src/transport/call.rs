//! Outgoing connections.

use std::error::Error;
use std::io;
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::Status;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::tls::{self, Unusable};
use crate::pki::{Credentials, Role, Token};

/// Connect timeout, keep-alive interval and keep-alive timeout.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Server name for TLS, which is not verified: nodes are identified by their roles.
const NAME: &str = "wirestamp.internal";

/// How caller and server authenticate each other.
pub enum Trust<'a> {
    /// Both have a certificate of the CA.
    Certificate(&'a Credentials),
    /// The caller only has a token.
    Token(&'a Token),
}

/// Channel to the node of a role at `HOST:PORT`. It connects at the first call, and reconnects when the connection is
/// lost. Requires a runtime.
///
/// # Errors
/// When the credentials or the address are not valid.
pub fn call(address: &str, role: Role, trust: &Trust<'_>) -> Result<Channel, Unusable> {
    let configuration = match trust {
        Trust::Certificate(credentials) => tls::calling(role, credentials)?,
        Trust::Token(token) => tls::first_call(role, Token::clone(token))?,
    };
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|_| Unusable::address(address))?
        .connect_timeout(TIMEOUT)
        .http2_keep_alive_interval(TIMEOUT)
        .keep_alive_timeout(TIMEOUT)
        .keep_alive_while_idle(true);
    let (address, configuration) = (Arc::<str>::from(address), Arc::new(configuration));
    let connect = move |_: Uri| connect(Arc::clone(&address), Arc::clone(&configuration));
    Ok(endpoint.connect_with_connector_lazy(service_fn(connect)))
}

async fn connect(
    address: Arc<str>,
    configuration: Arc<ClientConfig>,
) -> io::Result<TokioIo<tokio_rustls::client::TlsStream<TcpStream>>> {
    let stream = TcpStream::connect(&*address).await?;
    super::set_timeouts(&stream)?;
    let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
    let stream = TlsConnector::from(configuration).connect(name, stream).await?;
    Ok(TokioIo::new(stream))
}

/// Why a call failed, in one line: the message of the other node, or the error of the connection.
#[must_use]
pub fn reason(status: &Status) -> String {
    let causes = iter::successors(status.source(), |&cause| cause.source());
    // The last one is the root cause.
    causes.last().map_or_else(|| status.message().to_owned(), ToString::to_string)
}
