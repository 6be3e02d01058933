//! The page and the API for callers on this machine, without certificates.
//!
//! Only this machine can reach a loopback address. But a browser on it may send requests for pages from anywhere. So
//! the host must be a name of the loopback address (against DNS rebinding), and requests that change something must
//! come from the own page or a program.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;

use axum::Router;
use axum::extract::connect_info::Connected;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::Response;
use axum::serve::IncomingStream;
use tokio::net::TcpListener;

use super::Error;
use super::error_response::ApiError;
use super::page;
use crate::transport::{Peer, PeerIdentity};

/// A loopback address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loopback(SocketAddr);

/// A text that is not a [`Loopback`] address.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0:?} is not a loopback address: expected 127.0.0.1:PORT or [::1]:PORT")]
pub struct NotLoopback(String);

impl FromStr for Loopback {
    type Err = NotLoopback;

    fn from_str(text: &str) -> Result<Self, NotLoopback> {
        let address = text.parse().ok().filter(|it: &SocketAddr| it.ip().is_loopback());
        address.map(Self).ok_or_else(|| NotLoopback(text.to_owned()))
    }
}

impl fmt::Display for Loopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Listener for callers on this machine.
pub(super) struct LocalListener {
    socket: TcpListener,
    address: SocketAddr,
}

impl LocalListener {
    /// Requires a runtime.
    pub(super) fn bind(Loopback(address): Loopback) -> Result<Self, Error> {
        let bind = || {
            let socket = std::net::TcpListener::bind(address)?;
            socket.set_nonblocking(true)?;
            let socket = TcpListener::from_std(socket)?;
            Ok(Self { address: socket.local_addr()?, socket })
        };
        bind().map_err(|cause| Error::Page { address, cause })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers forever.
    pub(super) async fn serve(self, routes: Router) -> io::Result<()> {
        // Rejections get the same headers as all responses.
        let routes = routes.layer(from_fn_with_state(self.address, guard));
        let routes = routes.layer(map_response(page::guarded));
        axum::serve(self.socket, routes.into_make_service_with_connect_info::<Peer>()).await
    }
}

impl Connected<IncomingStream<'_, TcpListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Self {
        Self { address: *stream.remote_addr(), identity: PeerIdentity::Local }
    }
}

/// Rejects requests of other web pages.
async fn guard(
    State(address): State<SocketAddr>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let host = request.uri().authority().map(Authority::as_str);
    check(address, host, request.method(), request.headers())
        .map_err(|why| ApiError(StatusCode::FORBIDDEN, why))?;
    Ok(next.run(request).await)
}

/// Whether the own page or a program sends the request. HTTP/2 has the host outside of the headers.
fn check(
    address: SocketAddr,
    host: Option<&str>,
    method: &Method,
    headers: &HeaderMap,
) -> Result<(), String> {
    let of = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let host = of(HOST).or(host).unwrap_or_default();
    if !is_own(address, host) {
        return Err(format!("wrong host {host:?}: this page is http://{address}"));
    }
    if method.is_safe() {
        return Ok(());
    }
    if headers.contains_key(ORIGIN) && of(ORIGIN) != Some(&format!("http://{host}")) {
        return Err("requests of other web pages are not allowed".to_owned());
    }
    // A page of another origin cannot send this type without a preflight request.
    let kind = of(CONTENT_TYPE).and_then(|it| it.split(';').next()).unwrap_or_default();
    let has_body = [Method::PUT, Method::POST].contains(method);
    if has_body && !kind.trim().eq_ignore_ascii_case("application/json") {
        return Err("the request must have `Content-Type: application/json`".to_owned());
    }
    Ok(())
}

/// Whether `host` is a name of this address.
fn is_own(address: SocketAddr, host: &str) -> bool {
    /// Default port of HTTP.
    const PORT: u16 = 80;
    host.parse::<Authority>().is_ok_and(|it| {
        let name = it.host().trim_matches(['[', ']']);
        let is_name = name == "localhost" || name.parse() == Ok(address.ip());
        is_name && it.port_u16().unwrap_or(PORT) == address.port()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: &str = "127.0.0.1:4748";

    #[test]
    fn only_this_machine_has_a_loopback_address() {
        for text in [ADDRESS, "[::1]:80", "127.1.2.3:0"] {
            assert_eq!(text.parse::<Loopback>().unwrap().to_string(), text);
        }
        for text in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80", "127.0.0.1", "localhost:80"] {
            assert!(
                text.parse::<Loopback>()
                    .unwrap_err()
                    .to_string()
                    .contains("not a loopback address")
            );
        }
    }

    #[test]
    fn page_accepts_loopback_host_names_only() {
        let address = ADDRESS.parse().unwrap();
        for host in [ADDRESS, "localhost:4748"] {
            assert!(is_own(address, host), "{host}");
        }
        for host in ["", "localhost", "127.0.0.1:80", "127.0.0.2:4748", "evil.example:4748"] {
            assert!(!is_own(address, host), "{host}");
        }
        assert!(is_own("127.0.0.1:80".parse().unwrap(), "localhost"));
        assert!(is_own("[::1]:4748".parse().unwrap(), "[::1]:4748"));
    }

    #[test]
    fn requests_of_other_origins_are_rejected() {
        const JSON: (&str, &str) = ("content-type", "application/json");
        const OWN: (&str, &str) = ("origin", "http://127.0.0.1:4748");
        const OTHER: (&str, &str) = ("origin", "http://localhost:4749");
        const NONE: (&str, &str) = ("origin", "null");
        for (method, sent, may) in [
            (Method::GET, &[OTHER][..], true),
            (Method::PUT, &[JSON], true),
            (Method::PUT, &[JSON, OWN], true),
            (Method::PUT, &[JSON, OTHER], false),
            (Method::PUT, &[JSON, NONE], false),
            (Method::PUT, &[OWN], false),
            (Method::PUT, &[("content-type", "Application/JSON; charset=utf-8")], true),
            (Method::PUT, &[("content-type", "text/plain")], false),
            (Method::PUT, &[("content-type", "text/plain; application/json")], false),
            (Method::POST, &[JSON], true),
            (Method::POST, &[("content-type", "text/plain")], false),
            (Method::POST, &[JSON, OTHER], false),
            (Method::DELETE, &[], true),
            (Method::DELETE, &[OTHER], false),
        ] {
            let header = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), value.parse().unwrap())
            };
            let headers = sent.iter().map(header).collect();
            let answer = check(ADDRESS.parse().unwrap(), Some(ADDRESS), &method, &headers);
            assert_eq!(answer.is_ok(), may, "{method} {sent:?}: {answer:?}");
        }
    }
}
