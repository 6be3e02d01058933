//! The sender on its socket.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirestamp_capture::Stop;
use wirestamp_clock::{Span, Time, Utc};

use super::session::mark;
use super::{Report, Session, Test};
use crate::socket::{Manner, SocketError, StampedSocket};
use crate::system_clock::{Kernel, SystemClock};
use crate::{Passage, Witness, on_wire};

/// How long one wait for packets takes at most, so that what timed out is settled.
const PATIENCE: Duration = Duration::from_millis(100);
/// Packets whose stamps are waited for at a time.
const WAITING: usize = 4096;
/// How long the stamp of a packet is waited for.
const STAMPED_WITHIN: Span = Span::from_secs(1);
/// How often a packet behind the end is sent, if no answer comes.
const CLOSINGS: u32 = 3;
/// Packets that are sent or taken in a row before the others are looked at.
const BATCH: u32 = 64;

/// A sender with its socket.
pub struct Sender {
    test: Test,
    socket: StampedSocket,
    clock: Box<dyn SystemClock + Send>,
    session: Session,
    /// Packets whose stamps have not come.
    waiting: VecDeque<Waiting>,
    packet: Vec<u8>,
    failed: u64,
    first_error: Option<String>,
}

/// A packet that was sent.
struct Waiting {
    /// The kernel's number of it, and ours.
    number: u32,
    sequence: u64,
    /// Between these it was handed to the kernel.
    made: Time<Utc>,
    sent: Time<Utc>,
    length: u32,
}

impl Sender {
    /// A sender of this test, in the network namespace of the thread that calls.
    ///
    /// # Errors
    /// [`SocketError::Bind`].
    pub fn open(test: Test) -> Result<Self, SocketError> {
        let mut clock: Box<dyn SystemClock + Send> = Box::<Kernel>::default();
        let socket = StampedSocket::bind(test.from)?;
        let from = SocketAddr::new(test.from.ip(), socket.local_addr()?.port());
        let test = Test { from, ..test };
        let session = Session::new(&test, clock.state());
        Ok(Self {
            test,
            socket,
            clock,
            session,
            waiting: VecDeque::new(),
            packet: Vec::new(),
            failed: 0,
            first_error: None,
        })
    }

    /// Has somebody who knows more of the system clock than the kernel say how right it is.
    #[must_use]
    pub fn with_clock(mut self, clock: impl SystemClock + Send + 'static) -> Self {
        self.clock = Box::new(clock);
        self.session.set_clock(self.clock.state());
        self
    }

    /// Sends all packets, or until `stop` is requested, waits for the last answers, and says what came of
    /// it. `witness` may be told of each packet and of each answer.
    ///
    /// # Errors
    /// [`SocketError`], if the socket fails. Packets that the kernel does not take are counted.
    pub fn run(mut self, stop: &Stop, mut witness: impl Witness) -> Result<Report, SocketError> {
        let mut random = Rng::new();
        let mut due = Instant::now();
        let mut left = self.test.packets.unwrap_or(u64::MAX);
        let end = self.test.lasting.and_then(|lasting| due.checked_add(lasting));
        let is_over = || stop.is_requested() || end.is_some_and(|end| Instant::now() >= end);
        while left > 0 && !is_over() {
            for _ in 0..BATCH {
                if left == 0 || Instant::now() < due {
                    break;
                }
                self.send(&mut witness);
                left -= 1;
                due += self.test.rhythm.next(&mut random);
            }
            self.listen(&mut witness)?;
            if left > 0 {
                self.wait(due.saturating_duration_since(Instant::now()), Some(stop))?;
            }
        }
        self.last_answers(&mut witness)?;
        let Self { session, failed, first_error, .. } = self;
        Ok(Report { failed, first_error, ..session.finish() })
    }

    /// Waits for the answers that are under way. When all have come, or no more will, packets that count for
    /// nothing have the reflector tell what became of the last ones.
    fn last_answers(&mut self, witness: &mut impl Witness) -> Result<(), SocketError> {
        let timeout = Duration::from_nanos(self.test.timeout.as_nanos().unsigned_abs());
        let mut end = Instant::now() + timeout;
        let mut closings = 0;
        loop {
            self.listen(witness)?;
            let left = end.saturating_duration_since(Instant::now());
            let is_over = left.is_zero() || closings == 0 && self.session.all_came();
            if self.session.is_complete() {
                return Ok(());
            } else if !is_over {
                self.wait(left, None)?;
            } else if closings == CLOSINGS || !self.session.wants_closing() {
                return Ok(());
            } else {
                self.session.close();
                self.send(witness);
                closings += 1;
                end = Instant::now() + timeout;
            }
        }
    }

    fn send(&mut self, witness: &mut impl Witness) {
        let manner = Manner { from: None, class: self.test.form.dscp.map(|point| point << 2) };
        let made = self.clock.now();
        let sequence = self.session.packet(made, &mut self.packet);
        let mut sent = self.socket.send(&self.packet, self.test.to, manner);
        while sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
            && self.wait_for_room()
        {
            sent = self.socket.send(&self.packet, self.test.to, manner);
        }
        match sent {
            Ok(number) => {
                let length = on_wire(self.packet.len(), self.test.to.is_ipv4());
                let sent = self.clock.now();
                self.waiting.push_back(Waiting { number, sequence, made, sent, length });
            }
            Err(error) => {
                self.stop_waiting(self.waiting.len(), witness);
                self.session.not_sent();
                self.failed += 1;
                self.first_error.get_or_insert_with(|| error.to_string());
            }
        }
        self.stop_waiting(self.waiting.len().saturating_sub(WAITING), witness);
        self.take_stamps(witness);
    }

    /// Takes the stamps of what has left. Before answers, which they would come too late for.
    fn take_stamps(&mut self, witness: &mut impl Witness) {
        while let Some((number, at)) = self.socket.left() {
            let nth = self.waiting.iter().position(|waiting| waiting.number == number);
            let Some(nth) = nth else { continue };
            self.stop_waiting(nth, witness);
            if let Some(packet) = self.waiting.pop_front() {
                self.session.left(packet.sequence, at);
                // What is earlier is of another that had the kernel's number before.
                self.tell(&packet, Some(at).filter(|at| *at >= packet.made), witness);
            }
        }
    }

    /// The stamps of so many will not come.
    fn stop_waiting(&mut self, packets: usize, witness: &mut impl Witness) {
        for packet in self.waiting.drain(..packets).collect::<Vec<_>>() {
            self.tell(&packet, None, witness);
        }
    }

    fn tell(&self, packet: &Waiting, stamp: Option<Time<Utc>>, witness: &mut impl Witness) {
        if !self.session.is_closing(packet.sequence) {
            let own = (packet.made, packet.sent - packet.made);
            let (at, error) = stamp.map_or(own, |at| (at, Span::ZERO));
            let (from, to, length) = (self.test.from, self.test.to, packet.length);
            let (mark, session) = (mark(packet.made).0, self.test.form.session);
            witness.passes(&Passage { mark, session, at, error, length, from, to });
        }
    }

    /// Takes what has come.
    fn listen(&mut self, witness: &mut impl Witness) -> Result<(), SocketError> {
        let now = self.clock.now();
        self.take_stamps(witness);
        let late = self.waiting.iter().take_while(|it| it.sent + STAMPED_WITHIN < now).count();
        self.stop_waiting(late, witness);
        // What is sent from now on is made later.
        witness.complete(self.waiting.front().map_or(now, |packet| packet.made));
        self.session.set_clock(self.clock.state());
        for _ in 0..BATCH {
            let Some(received) = self.socket.receive().map_err(SocketError::Receive)? else {
                break;
            };
            let at = received.at.unwrap_or_else(|| self.clock.now());
            if let Err(why) = self.session.answer(received.bytes, received.from, at) {
                witness.refuses(why);
            }
            self.take_stamps(witness);
        }
        self.session.advance(self.clock.now());
        while let Some(heard) = self.session.heard() {
            witness.heard(&heard);
        }
        Ok(())
    }

    /// Waits for room in the socket's queue, which a slow interface leaves full; false if it takes too long.
    fn wait_for_room(&self) -> bool {
        let most = Timespec::try_from(PATIENCE).unwrap_or_default();
        let mut event = [PollFd::new(&self.socket, PollFlags::OUT)];
        poll(&mut event, Some(&most)).is_ok() && event[0].revents().contains(PollFlags::OUT)
    }

    /// Waits for a packet or a stamp, or for `most`, or for the stop.
    fn wait(&self, most: Duration, stop: Option<&Stop>) -> Result<(), SocketError> {
        let most = Timespec::try_from(most.min(PATIENCE)).unwrap_or_default();
        let socket = PollFd::new(&self.socket, PollFlags::IN);
        let stop = stop.map(|stop| PollFd::new(stop, PollFlags::IN));
        let mut events: Vec<_> = [Some(socket), stop].into_iter().flatten().collect();
        match poll(&mut events, Some(&most)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(SocketError::Receive(error.into())),
        }
    }
}
