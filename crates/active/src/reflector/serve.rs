//! The reflector on its sockets.

use std::collections::VecDeque;
use std::net::SocketAddr;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use wirestamp_capture::Stop;
use wirestamp_packet::stamp::Key;

use super::{Arrival, Counts, Reflector, SessionId};
use crate::socket::{Manner, SocketError, StampedSocket};
use crate::system_clock::{Kernel, SystemClock};

/// Answers whose stamps are waited for at a time; the kernel hands most over before the call that sends
/// returns.
const WAITING: usize = 4096;
/// Packets of one socket that are answered before the others are looked at.
const BATCH: usize = 64;

/// A reflector, and the addresses that it listens at.
pub struct Server {
    sockets: Vec<Bound>,
    reflector: Reflector,
    clock: Kernel,
}

/// A socket, and the answers sent over it whose stamps have not come.
struct Bound {
    socket: StampedSocket,
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
            Ok(Bound { socket: StampedSocket::bind(address)?, waiting: VecDeque::new() })
        };
        let sockets = addresses.iter().map(bind).collect::<Result<_, _>>()?;
        Ok(Self { sockets, reflector: Reflector::new(key), clock: Kernel::default() })
    }

    /// The addresses, with the ports that were chosen where 0 was asked for.
    ///
    /// # Errors
    /// [`SocketError::Receive`] when the kernel does not say.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, SocketError> {
        self.sockets.iter().map(|bound| bound.socket.local_addr()).collect()
    }

    /// Answers until `stop` is requested.
    ///
    /// # Errors
    /// [`SocketError::Receive`].
    pub fn run(mut self, stop: &Stop) -> Result<Counts, SocketError> {
        let mut answer = Vec::new();
        let ports: Vec<u16> = self.addresses()?.iter().map(SocketAddr::port).collect();
        while !stop.is_requested() {
            self.wait(stop)?;
            let Self { sockets, reflector, clock } = &mut self;
            for bound in sockets {
                bound.answer_all(reflector, clock, &ports, &mut answer)?;
            }
        }
        Ok(self.reflector.counts())
    }

    fn wait(&self, stop: &Stop) -> Result<(), SocketError> {
        let sockets = self.sockets.iter().map(|bound| PollFd::new(&bound.socket, PollFlags::IN));
        let mut events: Vec<_> = sockets.chain([PollFd::new(stop, PollFlags::IN)]).collect();
        match poll(&mut events, None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(SocketError::Receive(error.into())),
        }
    }
}

impl Bound {
    /// Answers what waits, up to a batch.
    fn answer_all(
        &mut self,
        reflector: &mut Reflector,
        clock: &mut Kernel,
        ports: &[u16],
        answer: &mut Vec<u8>,
    ) -> Result<(), SocketError> {
        self.take_stamps(reflector);
        for _ in 0..BATCH {
            let Some(received) = self.socket.receive().map_err(SocketError::Receive)? else {
                break;
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
            let (from, to) = (received.from, received.to);
            if ports.contains(&from.port()) && reflector.is_answer(&arrival) {
                reflector.counts.answers += 1;
                continue;
            }
            let Ok(reflection) = reflector.reflect(&arrival, clock, answer) else { continue };
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
        Ok(())
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
