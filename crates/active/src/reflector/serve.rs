//! The reflector on its sockets.

use std::collections::VecDeque;
use std::net::SocketAddr;

use wirestamp_capture::Stop;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::CaptureLoss;
use wirestamp_packet::stamp::Key;

use super::{Arrival, RateLimit, Reflector, ReflectorCounts, SessionId, Unanswered};
use crate::socket::{POLL_TIMEOUT, SendParameters, SocketError, StampedSocket, wait};
use crate::system_clock::{KernelClock, SystemClock};
use crate::{PacketObserver, TestPacket, on_wire};

/// Max time of a stamped packet in the kernel's backlog: two ticks of its timer (`netdev_budget_usecs`,
/// `Documentation/admin-guide/sysctl/net.rst`), which are 8 ms at 250 Hz.
const BACKLOG: Span = Span::from_millis(10);
/// Max answers waiting for transmit stamps; the kernel reports most before the send call returns.
const MAX_WAITING: usize = 4096;
/// Max packets of one socket answered before the next socket is read.
const BATCH: usize = 64;

/// A reflector with its sockets.
pub struct Server {
    sockets: Vec<Bound>,
    reflector: Reflector,
    clock: Box<dyn SystemClock + Send>,
}

/// A socket, and its answers that wait for transmit stamps.
struct Bound {
    socket: StampedSocket,
    port: u16,
    waiting: VecDeque<(u32, SessionId, u32)>,
    /// Datagrams that the kernel dropped at the socket until `checked`.
    dropped: u32,
    checked: Time<Utc>,
}

impl Server {
    /// Binds sockets to these addresses, in the network namespace of the calling thread. Answers packets
    /// authenticated with the key; without a key, unauthenticated packets.
    ///
    /// # Errors
    /// [`SocketError::Bind`].
    pub fn bind(addresses: &[SocketAddr], key: Option<Key>) -> Result<Self, SocketError> {
        let clock = Box::<KernelClock>::default();
        let bind = |&address| {
            let checked = clock.now();
            let socket = StampedSocket::bind(address)?;
            let port = socket.local_addr()?.port();
            Ok(Bound { socket, port, waiting: VecDeque::new(), dropped: 0, checked })
        };
        let sockets = addresses.iter().map(bind).collect::<Result<_, _>>()?;
        Ok(Self { sockets, reflector: Reflector::new(key), clock })
    }

    /// Replaces the kernel's sync status of the system clock with a better source.
    #[must_use]
    pub fn with_clock(mut self, clock: impl SystemClock + Send + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// Replaces the max rate of each session.
    #[must_use]
    pub fn with_limit(self, limit: RateLimit) -> Self {
        Self { reflector: self.reflector.with_limit(limit), ..self }
    }

    /// The bound addresses, with the ports that the kernel chose for port 0.
    ///
    /// # Errors
    /// [`SocketError::Receive`].
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, SocketError> {
        self.sockets.iter().map(|bound| bound.socket.local_addr()).collect()
    }

    /// Answers until `stop` is requested. `observer` is notified of each test packet, whether it is answered or not.
    ///
    /// # Errors
    /// [`SocketError::Receive`].
    pub fn run(
        mut self,
        stop: &Stop,
        mut observer: impl PacketObserver,
    ) -> Result<ReflectorCounts, SocketError> {
        let mut answer = Vec::new();
        while !stop.is_requested() {
            wait(self.sockets.iter().map(|bound| &bound.socket), Some(stop), POLL_TIMEOUT)?;
            let Self { sockets, reflector, clock } = &mut self;
            let mut until = clock.now();
            for bound in sockets {
                let clock = clock.as_mut();
                if let Some(missed) = bound.missed(until, clock)? {
                    reflector.counts.dropped += missed.packets;
                    observer.missed(&missed);
                }
                let newest = bound.answer_all(reflector, clock, &mut answer, &mut observer)?;
                until = until.min(newest.unwrap_or(until));
            }
            observer.complete(until - BACKLOG);
        }
        Ok(self.reflector.counts)
    }
}

impl Bound {
    /// Datagrams that the kernel dropped at the socket since the last call. They arrived at a time between that call and this
    /// one, which begins at `now`.
    fn missed(
        &mut self,
        now: Time<Utc>,
        clock: &mut dyn SystemClock,
    ) -> Result<Option<CaptureLoss>, SocketError> {
        let dropped = self.socket.dropped()?;
        let packets = u64::from(dropped.wrapping_sub(self.dropped));
        let from = self.checked;
        (self.dropped, self.checked) = (dropped, now);
        // A stamp is from before the packet reached the socket.
        let missed = |until| CaptureLoss { from: (from - BACKLOG).min(until), until, packets };
        Ok((packets > 0).then(|| missed(clock.now())))
    }

    /// Answers waiting packets, up to a batch. Returns the receive time of the last one if more may wait.
    fn answer_all(
        &mut self,
        reflector: &mut Reflector,
        clock: &mut dyn SystemClock,
        answer: &mut Vec<u8>,
        observer: &mut impl PacketObserver,
    ) -> Result<Option<Time<Utc>>, SocketError> {
        self.take_stamps(reflector);
        let mut newest = None;
        for _ in 0..BATCH {
            let Some(received) = self.socket.receive().map_err(SocketError::Receive)? else {
                return Ok(None);
            };
            reflector.counts.stamped_late += u64::from(received.at.is_none());
            let arrival = Arrival {
                bytes: received.bytes,
                from: received.from,
                to: received.to.map(|(address, _)| address),
                at: received.at.unwrap_or_else(|| clock.now()),
                ttl: received.ttl,
                class: received.class,
            };
            let (from, to, at) = (received.from, received.to, arrival.at);
            newest = Some(at);
            let length = on_wire(received.bytes.len(), from.is_ipv4());
            let reflected = reflector.reflect(&arrival, clock, answer);
            let (session, made) = match &reflected {
                Ok(reflection) => (reflection.session.number, reflection.made),
                Err(Unanswered::Limited { session, made }) => (*session, *made),
                Err(Unanswered::NotStamp(why)) => {
                    observer.rejected(*why);
                    continue;
                }
            };
            let own = to.map_or(from.ip(), |(address, _)| address);
            observer.packet(&TestPacket {
                mark: made.0,
                session,
                at,
                error: Span::ZERO,
                length,
                from,
                to: SocketAddr::new(own, self.port),
            });
            let Ok(reflection) = reflected else {
                observer.limited();
                continue;
            };
            let parameters = SendParameters { from: to, class: Some(reflection.class) };
            match self.socket.send(answer, from, parameters) {
                Ok(number) => {
                    self.waiting.push_back((number, reflection.session, reflection.number));
                }
                Err(_) => {
                    self.waiting.clear();
                    reflector.not_sent(&reflection);
                }
            }
            self.take_stamps(reflector);
        }
        Ok(newest)
    }

    /// Reads the transmit stamps of answers.
    fn take_stamps(&mut self, reflector: &mut Reflector) {
        while let Some((number, at)) = self.socket.left() {
            let nth = self.waiting.iter().position(|waiting| waiting.0 == number);
            if let Some((_, session, answer)) =
                nth.and_then(|nth| self.waiting.drain(..=nth).next_back())
            {
                reflector.left(&session, answer, at);
            }
        }
        if self.waiting.len() > MAX_WAITING {
            self.waiting.pop_front();
        }
    }
}
