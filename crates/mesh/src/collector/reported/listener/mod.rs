//! Listener for the datagrams of foreign exporters.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::protocol::ipfix::{Order, Session, Transport, Unread};
use tokio::sync::watch;
use tracing::{info, warn};
use wirestamp_clock::{Span, Time, Utc};

use super::exporter_stats::Counts;
use super::path::{End, Path};
use crate::collector::Collector;
use crate::task::{ForeignPoint, Measure, Tasks};

/// Interval of deliveries.
const DELIVERY_INTERVAL: Duration = Duration::from_millis(200);
/// Max exporters remembered, by address and port. Old ports of a restarted exporter are removed eventually.
const MAX_SESSIONS: usize = 256;
/// Max time that an exporter's clock may be ahead. Results settled by such a clock stay. Reports with correct times
/// are rejected until these times reach the settled time.
const MAX_CLOCK_LEAD: Span = Span::from_secs(60);
/// Min interval between log messages about rejections and clock steps.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// Receives reports of foreign exporters for the tasks that name them.
pub struct Listener {
    socket: UdpSocket,
    collector: Arc<Collector>,
    tasks: watch::Receiver<Arc<Tasks>>,
    paths: HashMap<u64, Path>,
    sessions: HashMap<SocketAddr, Exporter>,
    /// Spool number of this process.
    spool: i64,
    counts: Counts,
    refused: LogLimit,
    set_back: LogLimit,
}

/// State of an exporter at one port.
struct Exporter {
    session: Session,
    last_message: Instant,
    unread: Unread,
}

/// Rate limit for a log message: anyone can send many datagrams.
#[derive(Default)]
struct LogLimit {
    logged: Option<Instant>,
    /// Occurrences since then.
    times: u64,
}

impl Listener {
    /// Receives at this socket for these tasks.
    ///
    /// # Errors
    /// When the socket cannot be used.
    pub fn open(
        socket: UdpSocket,
        collector: Arc<Collector>,
        mut tasks: watch::Receiver<Arc<Tasks>>,
    ) -> io::Result<Self> {
        socket.set_read_timeout(Some(DELIVERY_INTERVAL))?;
        tasks.mark_changed();
        let counts = Counts { is_listening: true, ..Counts::default() };
        Ok(Self {
            socket,
            collector,
            tasks,
            paths: HashMap::new(),
            sessions: HashMap::new(),
            spool: now().as_nanos(),
            counts,
            refused: LogLimit::default(),
            set_back: LogLimit::default(),
        })
    }

    /// Address of the socket.
    ///
    /// # Errors
    /// When the system call fails.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Receives until the tasks are closed.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn run(mut self) -> io::Result<()> {
        let mut datagram = vec![0; usize::from(u16::MAX)];
        let mut delivered = Instant::now();
        loop {
            match self.tasks.has_changed() {
                Ok(true) => self.follow_tasks(),
                Ok(false) => {}
                Err(_) => return Ok(()),
            }
            match self.socket.recv_from(&mut datagram) {
                Ok((length, from)) => self.take(datagram.get(..length).unwrap_or_default(), from),
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(error),
            }
            if delivered.elapsed() >= DELIVERY_INTERVAL {
                self.process();
                delivered = Instant::now();
            }
        }
    }

    fn follow_tasks(&mut self) {
        let tasks = Arc::clone(&self.tasks.borrow_and_update());
        let reported =
            tasks.iter().filter(|(_, it)| it.ended.is_none()).filter_map(|(number, it)| {
                let Measure::ReportedDelay(reported) = it.task.measure else { return None };
                Some((*number, reported))
            });
        let mut before = std::mem::take(&mut self.paths);
        for (number, reported) in reported {
            let path = before.remove(&number);
            self.paths
                .insert(number, path.unwrap_or_else(|| Path::new(number, &reported, self.spool)));
        }
        before.into_values().for_each(|path| path.end(&self.collector, now(), &mut self.counts));
        let is_named = |from: &SocketAddr| {
            self.paths.values().flat_map(|path| &path.ends).any(|end| end.at.address == from.ip())
        };
        self.sessions.retain(|from, _| is_named(from));
    }

    fn take(&mut self, datagram: &[u8], from: SocketAddr) {
        let from = SocketAddr::new(from.ip().to_canonical(), from.port());
        self.counts.datagrams += 1;
        if let Some(why) = self.refuse(datagram, from)
            && let Some(times) = self.refused.again()
        {
            warn!("rejected {times} IPFIX datagrams, the last from {from}: {why}");
        }
    }

    /// Takes a datagram, or returns why it is rejected.
    fn refuse(&mut self, datagram: &[u8], from: SocketAddr) -> Option<&'static str> {
        let counts = &mut self.counts;
        let ends = || self.paths.values().flat_map(|path| &path.ends);
        if !ends().any(|end| end.at.address == from.ip()) {
            counts.strangers += 1;
            return Some("no task names the address");
        }
        if self.sessions.len() >= MAX_SESSIONS && !self.sessions.contains_key(&from) {
            let oldest =
                self.sessions.iter().min_by_key(|(_, it)| it.last_message).map(|(from, _)| *from);
            oldest.and_then(|oldest| self.sessions.remove(&oldest));
        }
        let exporter = self.sessions.entry(from).or_insert_with(Exporter::new);
        exporter.last_message = Instant::now();
        let Ok(message) = exporter.session.read(datagram) else {
            counts.malformed += 1;
            return Some("not an IPFIX message");
        };
        counts.unread_sets += exporter.unread();
        let is_of = |at: &ForeignPoint| at.address == from.ip() && at.domain == message.domain;
        let ends = self.paths.values_mut().flat_map(|path| &mut path.ends);
        let mut ends = ends.filter(|end| is_of(&end.at)).peekable();
        if ends.peek().is_none() {
            counts.other_domains += 1;
            return Some("no task names its observation domain");
        }
        let sent = Time::from_nanos(0) + Span::from_secs(i64::from(message.second));
        if sent > now() + MAX_CLOCK_LEAD {
            counts.ahead += 1;
            ends.for_each(End::leave_out);
            return Some("the exporter's clock is more than a minute ahead");
        }
        match message.order {
            Order::Copy => counts.copies += 1,
            Order::Missed(records) => counts.missed += u64::from(records),
            // These records were counted as missed.
            Order::Late(records) => counts.missed = counts.missed.saturating_sub(records.into()),
            Order::First => info!("receiving reports of domain {} from {from}", message.domain),
            Order::Back => {}
        }
        let mut is_set_back = false;
        for end in ends {
            is_set_back |= end.take(&message, sent, counts);
        }
        if is_set_back {
            self.note_set_back(from);
        }
        None
    }

    fn note_set_back(&mut self, from: SocketAddr) {
        self.counts.set_back += 1;
        if let Some(times) = self.set_back.again() {
            warn!(
                "the clock of exporter {from} was set back ({times} times since the last message): its unsettled \
                 reports are dropped"
            );
        }
    }

    fn process(&mut self) {
        let Self { paths, collector, counts, .. } = self;
        let now = now();
        paths.values_mut().for_each(|path| path.process(collector, now, counts));
        collector.exporter_stats().publish(*counts);
    }
}

impl Exporter {
    fn new() -> Self {
        Self {
            session: Session::new(Transport::Datagrams),
            last_message: Instant::now(),
            unread: Unread::default(),
        }
    }

    /// Sets that could not be decoded since the last call.
    fn unread(&mut self) -> u64 {
        let all = |it: &Unread| it.unknown + it.reserved + it.cut_off + it.templates;
        let before = std::mem::replace(&mut self.unread, self.session.unread());
        all(&self.unread) - all(&before)
    }
}

impl LogLimit {
    /// Counts an occurrence. Returns the number since the last message, if one is due.
    fn again(&mut self) -> Option<u64> {
        self.times += 1;
        let is_due = self.logged.is_none_or(|logged| logged.elapsed() >= LOG_INTERVAL);
        is_due.then(|| {
            self.logged = Some(Instant::now());
            std::mem::take(&mut self.times)
        })
    }
}

/// Whether the error is a timeout or a signal.
fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

fn now() -> Time<Utc> {
    Time::try_from(SystemTime::now()).unwrap_or(Time::from_nanos(0))
}

#[cfg(test)]
mod tests;
