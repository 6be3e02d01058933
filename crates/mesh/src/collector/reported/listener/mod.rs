//! Datagrams come in.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use crate::protocol::ipfix::{Order, Session, Transport, Unread};
use tokio::sync::watch;
use tracing::{info, warn};
use wirestamp_clock::{Span, Time, Utc};

use super::heard::Counts;
use super::path::{End, Path};
use crate::collector::Collector;
use crate::task::{ForeignPoint, Measure, Tasks};

/// How often what is ready is delivered.
const OFTEN: Duration = Duration::from_millis(200);
/// Exporters that are remembered at a time, each by its address and port. Of one that begins again at another port
/// the old one is forgotten sooner or later.
const MOST_SESSIONS: usize = 256;
/// How far an exporter's clock may be ahead. What was settled by it stays, and keeps right times from being taken until
/// they have come as far.
const AHEAD: Span = Span::from_secs(60);
/// How often is told of what is refused, and of clocks that are set back.
const TELL: Duration = Duration::from_mins(1);

/// Listens for what foreign exporters report, and hands it to the tasks that name them.
pub struct Listener {
    socket: UdpSocket,
    collector: Arc<Collector>,
    tasks: watch::Receiver<Arc<Tasks>>,
    paths: HashMap<u64, Path>,
    sessions: HashMap<SocketAddr, Exporter>,
    /// Names what this process delivers.
    spool: i64,
    counts: Counts,
    refused: Seldom,
    set_back: Seldom,
}

/// One of them, at a port of its own.
struct Exporter {
    session: Session,
    heard: Instant,
    unread: Unread,
}

/// What is told of, but not each time: whoever likes can send a lot.
#[derive(Default)]
struct Seldom {
    told: Option<Instant>,
    /// How often it was since.
    times: u64,
}

impl Listener {
    /// Takes what comes in at this socket for these tasks.
    ///
    /// # Errors
    /// When the socket cannot be used.
    pub fn open(
        socket: UdpSocket,
        collector: Arc<Collector>,
        mut tasks: watch::Receiver<Arc<Tasks>>,
    ) -> io::Result<Self> {
        socket.set_read_timeout(Some(OFTEN))?;
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
            refused: Seldom::default(),
            set_back: Seldom::default(),
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Listens until nobody can enter tasks any more.
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
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
            if delivered.elapsed() >= OFTEN {
                self.go_on();
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
            warn!("refused {times} datagrams of IPFIX, the last from {from}: {why}");
        }
    }

    /// Takes a datagram, or says why not.
    fn refuse(&mut self, datagram: &[u8], from: SocketAddr) -> Option<&'static str> {
        let counts = &mut self.counts;
        let ends = || self.paths.values().flat_map(|path| &path.ends);
        if !ends().any(|end| end.at.address == from.ip()) {
            counts.strangers += 1;
            return Some("no task names that address");
        }
        if self.sessions.len() >= MOST_SESSIONS && !self.sessions.contains_key(&from) {
            let oldest = self.sessions.iter().min_by_key(|(_, it)| it.heard).map(|(from, _)| *from);
            oldest.and_then(|oldest| self.sessions.remove(&oldest));
        }
        let exporter = self.sessions.entry(from).or_insert_with(Exporter::new);
        exporter.heard = Instant::now();
        let Ok(message) = exporter.session.read(datagram) else {
            counts.malformed += 1;
            return Some("it is no message of IPFIX");
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
        if sent > now() + AHEAD {
            counts.ahead += 1;
            ends.for_each(End::leave_out);
            return Some("its clock is more than a minute ahead of this machine's");
        }
        match message.order {
            Order::Copy => counts.copies += 1,
            Order::Missed(records) => counts.missed += u64::from(records),
            // They were counted as missed.
            Order::Late(records) => counts.missed = counts.missed.saturating_sub(records.into()),
            Order::First => info!("{from} reports packets of domain {}", message.domain),
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
                "an exporter's clock was set back ({times} times of late), that of {from}: what it told and is not \
                 settled is given up, and it goes on by its new time"
            );
        }
    }

    fn go_on(&mut self) {
        let Self { paths, collector, counts, .. } = self;
        let now = now();
        paths.values_mut().for_each(|path| path.go_on(collector, now, counts));
        collector.heard().publish(*counts);
    }
}

impl Exporter {
    fn new() -> Self {
        Self {
            session: Session::new(Transport::Datagrams),
            heard: Instant::now(),
            unread: Unread::default(),
        }
    }

    /// Sets that could not be read since this was asked last.
    fn unread(&mut self) -> u64 {
        let all = |it: &Unread| it.unknown + it.reserved + it.cut_off + it.templates;
        let before = std::mem::replace(&mut self.unread, self.session.unread());
        all(&self.unread) - all(&before)
    }
}

impl Seldom {
    /// It is so again. If it is to be told of now: how often it was since that was done.
    fn again(&mut self) -> Option<u64> {
        self.times += 1;
        let is_due = self.told.is_none_or(|told| told.elapsed() >= TELL);
        is_due.then(|| {
            self.told = Some(Instant::now());
            std::mem::take(&mut self.times)
        })
    }
}

/// Whether nothing came for a while, or a signal did.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

fn now() -> Time<Utc> {
    Time::try_from(SystemTime::now()).unwrap_or(Time::from_nanos(0))
}

#[cfg(test)]
mod tests;
