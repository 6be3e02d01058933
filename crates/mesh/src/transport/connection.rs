//! A connection of a listener.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;

use super::admission::Place;

/// Lifetime of a connection without a certificate: long enough to enrol, and for an answer that a certificate is
/// needed.
const ANONYMOUS_LIFETIME: Duration = Duration::from_secs(20);

/// A TLS connection. Without a certificate, it ends after some seconds.
pub struct Connection {
    stream: TlsStream<TcpStream>,
    limit: Option<(Pin<Box<Sleep>>, Place)>,
}

impl Connection {
    /// A connection whose caller is a member of the mesh.
    pub(super) fn of_member(stream: TlsStream<TcpStream>, place: Place) -> Self {
        place.verified();
        Self { stream, limit: None }
    }

    /// A connection whose caller has no certificate.
    pub(super) fn anonymous(stream: TlsStream<TcpStream>, place: Place) -> Self {
        Self { stream, limit: Some((Box::pin(sleep(ANONYMOUS_LIFETIME)), place)) }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some((end, _)) = &mut self.limit
            && end.as_mut().poll(context).is_ready()
        {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
