//! The sender on its socket.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirestamp_capture::Stop;

use super::{Heard, Report, Session, Test};
use crate::socket::{Manner, SocketError, StampedSocket};
use crate::system_clock::{Kernel, SystemClock};

/// How long one wait for packets takes at most, so that what timed out is settled.
const PATIENCE: Duration = Duration::from_millis(100);
/// Packets whose stamps are waited for at a time.
const WAITING: usize = 4096;
/// How often a packet behind the end is sent, if no answer comes.
const CLOSINGS: u32 = 3;
/// Packets that are sent or taken in a row before the others are looked at.
const BATCH: u32 = 64;

/// A sender with its socket.
pub struct Sender {
    test: Test,
    socket: StampedSocket,
    clock: Kernel,
    session: Session,
    /// The kernel's numbers of packets whose stamps have not come, with ours.
    waiting: VecDeque<(u32, u64)>,
    packet: Vec<u8>,
    failed: u64,
    first_error: Option<String>,
}

impl Sender {
    /// A sender of this test, in the network namespace of the thread that calls.
    ///
    /// # Errors
    /// [`SocketError::Bind`].
    pub fn open(test: Test) -> Result<Self, SocketError> {
        let mut clock = Kernel::default();
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

    /// Sends all packets, or until `stop` is requested, waits for the last answers, and says what came of
    /// it. `on_answer` is told of each.
    ///
    /// # Errors
    /// [`SocketError`], if the socket fails. Packets that the kernel does not take are counted.
    pub fn run(
        mut self,
        stop: &Stop,
        mut on_answer: impl FnMut(&Heard),
    ) -> Result<Report, SocketError> {
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
                self.send();
                left -= 1;
                due += self.test.rhythm.next(&mut random);
            }
            self.listen(&mut on_answer)?;
            if left > 0 {
                self.wait(due.saturating_duration_since(Instant::now()), Some(stop))?;
            }
        }
        self.last_answers(&mut on_answer)?;
        let Self { session, failed, first_error, .. } = self;
        Ok(Report { failed, first_error, ..session.finish() })
    }

    /// Waits for the answers that are under way. When all have come, or no more will, packets that count for
    /// nothing have the reflector tell what became of the last ones.
    fn last_answers(&mut self, on_answer: &mut impl FnMut(&Heard)) -> Result<(), SocketError> {
        let timeout = Duration::from_nanos(self.test.timeout.as_nanos().unsigned_abs());
        let mut end = Instant::now() + timeout;
        let mut closings = 0;
        loop {
            self.listen(on_answer)?;
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
                self.send();
                closings += 1;
                end = Instant::now() + timeout;
            }
        }
    }

    fn send(&mut self) {
        let manner = Manner { from: None, class: self.test.form.dscp.map(|point| point << 2) };
        let sequence = self.session.packet(self.clock.now(), &mut self.packet);
        let mut sent = self.socket.send(&self.packet, self.test.to, manner);
        while sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
            && self.wait_for_room()
        {
            sent = self.socket.send(&self.packet, self.test.to, manner);
        }
        match sent {
            Ok(number) => self.waiting.push_back((number, sequence)),
            Err(error) => {
                self.waiting.clear();
                self.session.not_sent();
                self.failed += 1;
                self.first_error.get_or_insert_with(|| error.to_string());
            }
        }
        if self.waiting.len() > WAITING {
            self.waiting.pop_front();
        }
        self.take_stamps();
    }

    /// Takes the stamps of what has left. Before answers, which they would come too late for.
    fn take_stamps(&mut self) {
        while let Some((number, at)) = self.socket.left() {
            let nth = self.waiting.iter().position(|waiting| waiting.0 == number);
            if let Some((_, sequence)) = nth.and_then(|nth| self.waiting.drain(..=nth).next_back())
            {
                self.session.left(sequence, at);
            }
        }
    }

    /// Takes what has come.
    fn listen(&mut self, on_answer: &mut impl FnMut(&Heard)) -> Result<(), SocketError> {
        self.take_stamps();
        self.session.set_clock(self.clock.state());
        for _ in 0..BATCH {
            let Some(received) = self.socket.receive().map_err(SocketError::Receive)? else {
                break;
            };
            let at = received.at.unwrap_or_else(|| self.clock.now());
            // What is no answer is counted there.
            let _ = self.session.answer(received.bytes, received.from, at);
            self.take_stamps();
        }
        self.session.advance(self.clock.now());
        while let Some(heard) = self.session.heard() {
            on_answer(&heard);
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
