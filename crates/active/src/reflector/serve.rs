//! The reflector on its sockets.

use std::collections::VecDeque;
use std::net::SocketAddr;

use wirestamp_capture::Stop;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::stamp::Key;

use super::{Arrival, RateLimit, Reflection, Reflector, ReflectorCounts, SessionId, Unanswered};
use crate::socket::{
    BACKLOG, DropCounter, POLL_TIMEOUT, SendParameters, SocketError, StampedSocket, wait,
};
use crate::system_clock::{KernelClock, SystemClock};
use crate::{PacketObserver, TestPacket, on_wire};

/// Max answers waiting for transmit stamps; the kernel reports most before the send call returns.
const MAX_WAITING: usize = 4096;
/// Max wait for a transmit stamp.
const STAMP_TIMEOUT: Span = Span::from_millis(100);
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
    waiting: VecDeque<WaitingAnswer>,
    drops: DropCounter,
}

/// An answer that waits for its transmit stamp.
struct WaitingAnswer {
    /// The kernel's number.
    number: u32,
    session: SessionId,
    /// Number in the session.
    answer: u32,
    /// Send time in the answer.
    stated: Time<Utc>,
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
            let drops = DropCounter::new(clock.now());
            let socket = StampedSocket::bind(address)?;
            let port = socket.local_addr()?.port();
            Ok(Bound { socket, port, waiting: VecDeque::new(), drops })
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
                let dropped = bound.socket.dropped()?;
                if let Some(missed) = bound.drops.missed(dropped, until, clock) {
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
    /// Answers waiting packets, up to a batch. Returns the receive time of the last one if more may wait.
    fn answer_all(
        &mut self,
        reflector: &mut Reflector,
        clock: &mut dyn SystemClock,
        answer: &mut Vec<u8>,
        observer: &mut impl PacketObserver,
    ) -> Result<Option<Time<Utc>>, SocketError> {
        self.take_stamps(reflector, observer);
        let oldest = clock.now() - STAMP_TIMEOUT;
        let late = self.waiting.iter().take_while(|it| it.stated < oldest).count();
        self.stop_waiting(late, observer);
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
                sequence: None,
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
                    let Reflection { session, number: answer, stated, .. } = reflection;
                    self.waiting.push_back(WaitingAnswer { number, session, answer, stated });
                }
                Err(_) => {
                    // The kernel's numbers begin again.
                    self.stop_waiting(self.waiting.len(), observer);
                    reflector.not_sent(&reflection);
                }
            }
            self.take_stamps(reflector, observer);
        }
        Ok(newest)
    }

    /// Reads the transmit stamps of answers.
    fn take_stamps(&mut self, reflector: &mut Reflector, observer: &mut impl PacketObserver) {
        while let Some((number, at)) = self.socket.left() {
            let nth = self.waiting.iter().position(|waiting| waiting.number == number);
            let Some(nth) = nth else { continue };
            self.stop_waiting(nth, observer);
            if let Some(waiting) = self.waiting.pop_front() {
                let WaitingAnswer { session, answer, stated, .. } = waiting;
                reflector.left(&session, answer, at);
                // An earlier stamp belongs to a previous packet with the same kernel number.
                observer.returned(session.number, (at >= stated).then_some(at - stated));
            }
        }
        self.stop_waiting(self.waiting.len().saturating_sub(MAX_WAITING), observer);
    }

    /// Stops waiting for the stamps of the `answers` oldest answers.
    fn stop_waiting(&mut self, answers: usize, observer: &mut impl PacketObserver) {
        for waiting in self.waiting.drain(..answers) {
            observer.returned(waiting.session.number, None);
        }
    }
}
