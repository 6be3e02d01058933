//! Making calls.

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

/// How long a connection may take to be made, how often it is asked whether it still is one, and how long
/// that may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Nodes are known by their roles. A name has to be said all the same.
const NAME: &str = "wirestamp.internal";

/// By what the caller knows whom it calls, and is known.
pub enum Trust<'a> {
    /// Both have a certificate of the authority.
    Certificate(&'a Credentials),
    /// The caller has nothing but a token.
    Token(&'a Token),
}

/// Calls that go to the node of a role at an address, `HOST:PORT`. The connection is made at the first, and
/// again when it broke. It takes a runtime, where it is called and wherever it is used.
///
/// # Errors
/// When the credentials cannot be used, or this is no address.
pub fn call(address: &str, role: Role, trust: &Trust<'_>) -> Result<Channel, Unusable> {
    let configuration = match trust {
        Trust::Certificate(credentials) => tls::calling(role, credentials)?,
        Trust::Token(token) => tls::first_call(role, Token::clone(token))?,
    };
    let endpoint = Endpoint::from_shared(format!("http://{address}"))
        .map_err(|_| Unusable::address(address))?
        .connect_timeout(PATIENCE)
        .http2_keep_alive_interval(PATIENCE)
        .keep_alive_timeout(PATIENCE)
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
    super::watch_over(&stream)?;
    let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
    let stream = TlsConnector::from(configuration).connect(name, stream).await?;
    Ok(TokioIo::new(stream))
}

/// Why a call failed, in one line: what the other side says, or what is wrong with the connection.
#[must_use]
pub fn reason(status: &Status) -> String {
    let causes = iter::successors(status.source(), |&cause| cause.source());
    // The last is the one that tells what happened.
    causes.last().map_or_else(|| status.message().to_owned(), ToString::to_string)
}
