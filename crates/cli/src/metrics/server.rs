//! The few lines of HTTP server that a scrape needs.
//!
//! One thread serves everybody, and nobody can keep it: requests are short or refused, each client has
//! a few seconds, and of too many the oldest goes. The thread yields to every other where cores are
//! short, so that nobody who scrapes disturbs a capture.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::request::{self, answer};

/// Clients that are served at the same time.
const MOST: usize = 64;

/// How long a client may take to ask and to read: Prometheus gives up after 10 s unless it is told
/// otherwise (`scrape_timeout`).
const PATIENCE: Duration = Duration::from_secs(5);

/// How long nobody new is let in after the process ran out of descriptors, which nothing tells the end
/// of.
const RECOVERY: Duration = Duration::from_millis(100);

/// What niceness (nice(2)) the thread has: that of batch work.
const NICENESS: i32 = 10;

/// Listens at `address`, of which port 0 stands for any that is free.
pub(super) fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind(address).with_context(|| {
        format!(
            "cannot serve metrics on {address}; choose another address, or port 0 for a free one"
        )
    })?;
    listener.set_nonblocking(true).context("cannot serve metrics")?;
    Ok(listener)
}

/// Serves what `page` makes to everybody who asks, on a thread of its own until the process ends.
pub(super) fn serve(
    listener: TcpListener,
    page: impl Fn() -> Result<String, String> + Send + 'static,
) -> anyhow::Result<()> {
    let serve = move || {
        // Nothing is lost if it is refused but some of the good manners.
        let _ = rustix::process::nice(NICENESS);
        let mut clients = VecDeque::new();
        loop {
            wait(&listener, &clients);
            welcome(&listener, &mut clients);
            clients.retain_mut(|client| client.proceed(&page).unwrap_or(false));
        }
    };
    thread::Builder::new()
        .name("ws-metrics".into())
        .spawn(serve)
        .context("cannot start a thread")?;
    Ok(())
}

/// Somebody who asks.
struct Client {
    stream: TcpStream,
    received: Vec<u8>,
    /// What is left to be sent, once it is known.
    answer: Option<VecDeque<u8>>,
    deadline: Instant,
}

/// Waits until somebody has news, or has taken too long.
fn wait(listener: &TcpListener, clients: &VecDeque<Client>) {
    let watch =
        |client: &Client| if client.answer.is_some() { PollFlags::OUT } else { PollFlags::IN };
    let mut watched = vec![PollFd::new(listener, PollFlags::IN)];
    watched.extend(clients.iter().map(|client| PollFd::new(&client.stream, watch(client))));
    let next = clients.iter().map(|client| client.deadline).min();
    let left = next.map(|next| next.saturating_duration_since(Instant::now()));
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    // An error, such as a signal's, is one turn for nothing.
    let _ = poll(&mut watched, left.as_ref());
}

/// Lets in those who wait outside, each for the oldest client where there are too many.
fn welcome(listener: &TcpListener, clients: &mut VecDeque<Client>) {
    for _ in 0..MOST {
        match listener.accept().and_then(|(stream, _)| Client::new(stream)) {
            Ok(client) => {
                if clients.len() == MOST {
                    clients.pop_front();
                }
                clients.push_back(client);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            // One who has left again.
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
        let deadline = Instant::now() + PATIENCE;
        Ok(Self { stream, received: Vec::new(), answer: None, deadline })
    }

    /// Reads and writes what can be without waiting. Returns whether there will be more to do.
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
            let mut bytes = [0; request::LONGEST];
            let room = request::LONGEST - self.received.len();
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
