//! The reflector on its sockets.

use std::collections::VecDeque;
use std::net::SocketAddr;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use wirestamp_capture::Stop;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::stamp::Key;

use super::{Arrival, Counts, Reflector, SessionId};
use crate::socket::{Manner, SocketError, StampedSocket};
use crate::system_clock::{Kernel, SystemClock};
use crate::{Passage, Witness, on_wire};

/// How long one wait for packets takes at most, so that it is told that none came.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How long a packet may lie in the kernel's backlog when it is stamped: two ticks of its timer
/// (`netdev_budget_usecs`, `Documentation/admin-guide/sysctl/net.rst`), which are 8 ms at 250 Hz.
const BACKLOG: Span = Span::from_millis(10);
/// Answers whose stamps are waited for at a time; the kernel hands most over before the call that sends
/// returns.
const WAITING: usize = 4096;
/// Packets of one socket that are answered before the others are looked at.
const BATCH: usize = 64;

/// A reflector, and the addresses that it listens at.
pub struct Server {
    sockets: Vec<Bound>,
    reflector: Reflector,
    clock: Box<dyn SystemClock + Send>,
}

/// A socket, and the answers sent over it whose stamps have not come.
struct Bound {
    socket: StampedSocket,
    port: u16,
    waiting: VecDeque<(u32, SessionId, u32)>,
}

impl Server {
    /// Listens at these addresses, in the network namespace of the thread that calls. Answers packets with
    /// the codes of the key, or open ones.
    ///
    /// # Errors
    /// [`SocketError::Bind`].
    pub fn bind(addresses: &[SocketAddr], key: Option<Key>) -> Result<Self, SocketError> {
        let bind = |&address| {
            let socket = StampedSocket::bind(address)?;
            let port = socket.local_addr()?.port();
            Ok(Bound { socket, port, waiting: VecDeque::new() })
        };
        let sockets = addresses.iter().map(bind).collect::<Result<_, _>>()?;
        Ok(Self { sockets, reflector: Reflector::new(key), clock: Box::<Kernel>::default() })
    }

    /// Has somebody who knows more of the system clock than the kernel say how right it is.
    #[must_use]
    pub fn with_clock(mut self, clock: impl SystemClock + Send + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    /// The addresses, with the ports that were chosen where 0 was asked for.
    ///
    /// # Errors
    /// [`SocketError::Receive`] when the kernel does not say.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, SocketError> {
        self.sockets.iter().map(|bound| bound.socket.local_addr()).collect()
    }

    /// Answers until `stop` is requested. `witness` may be told of each packet that is answered.
    ///
    /// # Errors
    /// [`SocketError::Receive`].
    pub fn run(mut self, stop: &Stop, mut witness: impl Witness) -> Result<Counts, SocketError> {
        let mut answer = Vec::new();
        let ports: Vec<u16> = self.sockets.iter().map(|bound| bound.port).collect();
        while !stop.is_requested() {
            self.wait(stop)?;
            let Self { sockets, reflector, clock } = &mut self;
            let mut until = clock.now();
            for bound in sockets {
                let newest =
                    bound.answer_all(reflector, clock, &ports, &mut answer, &mut witness)?;
                until = until.min(newest.unwrap_or(until));
            }
            witness.complete(until - BACKLOG);
        }
        Ok(self.reflector.counts())
    }

    fn wait(&self, stop: &Stop) -> Result<(), SocketError> {
        let sockets = self.sockets.iter().map(|bound| PollFd::new(&bound.socket, PollFlags::IN));
        let mut events: Vec<_> = sockets.chain([PollFd::new(stop, PollFlags::IN)]).collect();
        match poll(&mut events, Some(&PATIENCE)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(SocketError::Receive(error.into())),
        }
    }
}

impl Bound {
    /// Answers what waits, up to a batch; if that was not all, says when the last of it came.
    fn answer_all(
        &mut self,
        reflector: &mut Reflector,
        clock: &mut impl SystemClock,
        ports: &[u16],
        answer: &mut Vec<u8>,
        witness: &mut impl Witness,
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
            if ports.contains(&from.port()) && reflector.is_answer(&arrival) {
                reflector.counts.answers += 1;
                continue;
            }
            let reflection = match reflector.reflect(&arrival, clock, answer) {
                Ok(reflection) => reflection,
                Err(why) => {
                    witness.refuses(why);
                    continue;
                }
            };
            let own = to.map_or(from.ip(), |(address, _)| address);
            witness.passes(&Passage {
                mark: reflection.made.0,
                session: reflection.session.number,
                at,
                error: Span::ZERO,
                length,
                from,
                to: SocketAddr::new(own, self.port),
            });
            let manner = Manner { from: to, class: Some(reflection.class) };
            match self.socket.send(answer, from, manner) {
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

    /// Takes the stamps of what has left.
    fn take_stamps(&mut self, reflector: &mut Reflector) {
        while let Some((number, at)) = self.socket.left() {
            let nth = self.waiting.iter().position(|waiting| waiting.0 == number);
            if let Some((_, session, answer)) =
                nth.and_then(|nth| self.waiting.drain(..=nth).next_back())
            {
                reflector.left(&session, answer, at);
            }
        }
        if self.waiting.len() > WAITING {
            self.waiting.pop_front();
        }
    }
}
