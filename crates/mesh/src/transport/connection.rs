//! A connection of a listener.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::server::TlsStream;

use super::admission::{Closing, Place};

/// Lifetime of a connection without a certificate: long enough to enrol, and for an answer that a certificate is
/// needed.
const ANONYMOUS_LIFETIME: Duration = Duration::from_secs(20);

/// A TLS connection. Without a certificate, it ends after some seconds, or when its place is given away.
pub struct Connection {
    stream: TlsStream<TcpStream>,
    limit: Option<ConnectionLimit>,
}

/// The end of a connection without a certificate.
struct ConnectionLimit {
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_over: bool,
    _place: Place,
}

impl Connection {
    /// A connection whose caller is a member of the mesh.
    pub(super) fn of_member(stream: TlsStream<TcpStream>, place: Place) -> Self {
        place.verified();
        Self { stream, limit: None }
    }

    /// A connection whose caller has no certificate.
    pub(super) fn anonymous(stream: TlsStream<TcpStream>, place: Place, closing: Closing) -> Self {
        let end = Box::pin(async { drop(timeout(ANONYMOUS_LIFETIME, closing).await) });
        Self { stream, limit: Some(ConnectionLimit { end, is_over: false, _place: place }) }
    }

    /// The stream, unless the connection has ended.
    fn stream(
        &mut self,
        context: &mut Context<'_>,
    ) -> Result<Pin<&mut TlsStream<TcpStream>>, io::Error> {
        if let Some(limit) = &mut self.limit {
            limit.is_over = limit.is_over || limit.end.as_mut().poll(context).is_ready();
            if limit.is_over {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(Pin::new(&mut self.stream))
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream(context)?.poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.stream(context)?.poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream(context)?.poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream(context)?.poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
