//! A minimal HTTP server for scrapes.
//!
//! One thread serves all clients. Requests are short, each client has a time limit, and above the max
//! number of clients the oldest is closed. The thread runs at low priority, so that scrapes do not
//! disturb a capture.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::request::{self, answer};

/// Max number of concurrent clients.
const MAX_CLIENTS: usize = 64;

/// Time limit of a client for request and answer; Prometheus' default `scrape_timeout` is 10 s.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(5);

/// Pause of accepting after the process ran out of file descriptors, whose release has no event.
const RECOVERY: Duration = Duration::from_millis(100);

/// Niceness (nice(2)) of the thread: that of batch work.
const NICENESS: i32 = 10;

/// Listens at `address`; port 0 selects a free port.
pub(super) fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).with_context(|| {
        format!(
            "cannot serve metrics on {address}; choose another address, or port 0 for a free one"
        )
    })?;
    listener.set_nonblocking(true).context("cannot serve metrics")?;
    Ok(listener)
}

/// Serves the result of `page` on its own thread until the process ends.
pub(super) fn serve(
    listener: TcpListener,
    page: impl Fn() -> Result<String, String> + Send + 'static,
) -> anyhow::Result<()> {
    let serve = move || {
        // A failure only means normal priority.
        let _ = rustix::process::nice(NICENESS);
        let mut clients = VecDeque::new();
        loop {
            wait(&listener, &clients);
            accept_clients(&listener, &mut clients);
            clients.retain_mut(|client| client.proceed(&page).unwrap_or(false));
        }
    };
    thread::Builder::new()
        .name("ws-metrics".into())
        .spawn(serve)
        .context("cannot start a thread")?;
    Ok(())
}

/// A connected client.
struct Client {
    stream: TcpStream,
    received: Vec<u8>,
    /// The unsent part of the answer, once complete.
    answer: Option<VecDeque<u8>>,
    deadline: Instant,
}

/// Waits for an event of a socket, or for the next deadline.
fn wait(listener: &TcpListener, clients: &VecDeque<Client>) {
    let watch =
        |client: &Client| if client.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
    let mut watched = vec![PollFd::new(listener, PollFlags::IN)];
    watched.extend(clients.iter().map(|client| PollFd::new(&client.stream, watch(client))));
    let next = clients.iter().map(|client| client.deadline).min();
    let left = next.map(|next| next.saturating_duration_since(Instant::now()));
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    // After an error, such as a signal, the loop continues.
    let _ = poll(&mut watched, left.as_ref());
}

/// Accepts waiting clients; above the max number, each replaces the oldest.
fn accept_clients(listener: &TcpListener, clients: &mut VecDeque<Client>) {
    for _ in 0..MAX_CLIENTS {
        match listener.accept().and_then(|(stream, _)| Client::new(stream)) {
            Ok(client) => {
                if clients.len() == MAX_CLIENTS {
                    clients.pop_front();
                }
                clients.push_back(client);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            // The client has disconnected.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(_) => {
                clients.clear();
                thread::sleep(RECOVERY);
                return;
            }
        }
    }
}

impl Client {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let deadline = Instant::now() + CLIENT_TIMEOUT;
        Ok(Self { stream, received: Vec::new(), answer: None, deadline })
    }

    /// Reads and writes without blocking. Returns whether the client is still active.
    fn proceed(&mut self, page: impl Fn() -> Result<String, String>) -> io::Result<bool> {
        if Instant::now() >= self.deadline {
            return Ok(false);
        }
        match self.exchange(page) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(true),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            result => result,
        }
    }

    fn exchange(&mut self, page: impl Fn() -> Result<String, String>) -> io::Result<bool> {
        while self.answer.is_none() {
            let mut bytes = [0; request::MAX_BYTES];
            let room = request::MAX_BYTES - self.received.len();
            let count = self.stream.read(&mut bytes[..room])?;
            if count == 0 {
                return Ok(false);
            }
            self.received.extend_from_slice(&bytes[..count]);
            self.answer = answer(&self.received, &page).map(VecDeque::from);
        }
        let Some(answer) = &mut self.answer else { return Ok(true) };
        while !answer.is_empty() {
            let sent = self.stream.write(answer.as_slices().0)?;
            answer.drain(..sent);
        }
        Ok(false)
    }
}
