//! The sender on its socket.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use fastrand::Rng;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirestamp_capture::Stop;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::CaptureLoss;

use super::session::mark;
use super::{Session, TestConfig, TestReport};
use crate::socket::{
    BACKLOG, DropCounter, POLL_TIMEOUT, SendParameters, SocketError, StampedSocket, wait,
};
use crate::system_clock::{KernelClock, SystemClock};
use crate::{PacketObserver, TestPacket, on_wire};

/// Max packets waiting for transmit stamps.
const MAX_WAITING: usize = 4096;
/// Max wait for a transmit stamp.
const STAMP_TIMEOUT: Span = Span::from_secs(1);
/// Max closing packets sent without an answer.
const MAX_CLOSING_PACKETS: u32 = 3;
/// Max packets sent, or received, in a row.
const BATCH: u32 = 64;

/// A sender with its socket.
pub struct Sender {
    test: TestConfig,
    socket: StampedSocket,
    clock: Box<dyn SystemClock + Send>,
    session: Session,
    drops: DropCounter,
    /// Packets that wait for transmit stamps.
    waiting: VecDeque<Waiting>,
    packet: Vec<u8>,
    failed: u64,
    first_error: Option<String>,
    answers_dropped: u64,
}

/// A sent packet that waits for its transmit stamp.
struct Waiting {
    /// The kernel's number.
    number: u32,
    sequence: u64,
    /// Clock readings before and after the system call.
    made: Time<Utc>,
    sent: Time<Utc>,
    length: u32,
}

impl Sender {
    /// Opens a sender for this test, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// [`SocketError::Bind`].
    pub fn open(test: TestConfig) -> Result<Self, SocketError> {
        let mut clock: Box<dyn SystemClock + Send> = Box::<KernelClock>::default();
        let drops = DropCounter::new(clock.now());
        let socket = StampedSocket::bind(test.from)?;
        let from = SocketAddr::new(test.from.ip(), socket.local_addr()?.port());
        let test = TestConfig { from, ..test };
        let session = Session::new(&test, clock.state());
        Ok(Self {
            test,
            socket,
            clock,
            session,
            drops,
            waiting: VecDeque::new(),
            packet: Vec::new(),
            failed: 0,
            first_error: None,
            answers_dropped: 0,
        })
    }

    /// Replaces the kernel's sync status of the system clock with a better source.
    #[must_use]
    pub fn with_clock(mut self, clock: impl SystemClock + Send + 'static) -> Self {
        self.clock = Box::new(clock);
        self.session.set_clock(self.clock.state());
        self
    }

    /// Sends all packets, or until `stop` is requested, waits for the last answers, and returns the report.
    /// `observer` is notified of each packet and each answer.
    ///
    /// # Errors
    /// [`SocketError`] if the socket fails. Packets refused by the kernel are only counted.
    pub fn run(
        mut self,
        stop: &Stop,
        mut observer: impl PacketObserver,
    ) -> Result<TestReport, SocketError> {
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
                self.send(&mut observer);
                left -= 1;
                due += self.test.schedule.next(&mut random);
            }
            self.receive(&mut observer)?;
            if left > 0 {
                wait([&self.socket], Some(stop), due.saturating_duration_since(Instant::now()))?;
            }
        }
        self.last_answers(&mut observer)?;
        self.stop_waiting(self.waiting.len(), &mut observer);
        self.session.stop_waiting();
        self.report_answers(&mut observer);
        let Self { session, failed, first_error, answers_dropped, .. } = self;
        Ok(TestReport { failed, first_error, answers_dropped, ..session.finish() })
    }

    /// Waits for the answers in flight. Then closing packets, which are not counted, make the reflector
    /// report the outcome of the last packets.
    fn last_answers(&mut self, observer: &mut impl PacketObserver) -> Result<(), SocketError> {
        let timeout = Duration::from_nanos(self.test.timeout.as_nanos().unsigned_abs());
        let mut end = Instant::now() + timeout;
        let mut closings = 0;
        loop {
            self.receive(observer)?;
            let left = end.saturating_duration_since(Instant::now());
            let is_over = left.is_zero() || closings == 0 && self.session.all_came();
            if self.session.is_complete() {
                return Ok(());
            } else if !is_over {
                wait([&self.socket], None, left)?;
            } else if closings == MAX_CLOSING_PACKETS || !self.session.needs_closing() {
                return Ok(());
            } else {
                self.session.close();
                self.send(observer);
                closings += 1;
                end = Instant::now() + timeout;
            }
        }
    }

    fn send(&mut self, observer: &mut impl PacketObserver) {
        let parameters =
            SendParameters { from: None, class: self.test.format.dscp.map(|point| point << 2) };
        let made = self.clock.now();
        let sequence = self.session.packet(made, &mut self.packet);
        let mut sent = self.socket.send(&self.packet, self.test.to, parameters);
        while sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
            && self.wait_for_room()
        {
            sent = self.socket.send(&self.packet, self.test.to, parameters);
        }
        match sent {
            Ok(number) => {
                let length = on_wire(self.packet.len(), self.test.to.is_ipv4());
                let sent = self.clock.now();
                self.session.sent(sequence, sent);
                self.waiting.push_back(Waiting { number, sequence, made, sent, length });
            }
            Err(error) => {
                self.stop_waiting(self.waiting.len(), observer);
                self.session.not_sent();
                self.failed += 1;
                self.first_error.get_or_insert_with(|| error.to_string());
            }
        }
        self.stop_waiting(self.waiting.len().saturating_sub(MAX_WAITING), observer);
        self.take_stamps(observer);
    }

    /// Reads transmit stamps. Called before answers are read, because answers need the stamps.
    fn take_stamps(&mut self, observer: &mut impl PacketObserver) {
        while let Some((number, at)) = self.socket.left() {
            let nth = self.waiting.iter().position(|waiting| waiting.number == number);
            let Some(nth) = nth else { continue };
            self.stop_waiting(nth, observer);
            if let Some(packet) = self.waiting.pop_front() {
                self.session.left(packet.sequence, at);
                // An earlier stamp belongs to a previous packet with the same kernel number.
                self.notify(&packet, Some(at).filter(|at| *at >= packet.made), observer);
            }
        }
    }

    /// Stops waiting for the stamps of the `packets` oldest packets.
    fn stop_waiting(&mut self, packets: usize, observer: &mut impl PacketObserver) {
        for packet in self.waiting.drain(..packets).collect::<Vec<_>>() {
            self.notify(&packet, None, observer);
        }
    }

    fn notify(
        &self,
        packet: &Waiting,
        stamp: Option<Time<Utc>>,
        observer: &mut impl PacketObserver,
    ) {
        if !self.session.is_closing(packet.sequence) {
            let own = (packet.made, packet.sent - packet.made);
            let (at, error) = stamp.map_or(own, |at| (at, Span::ZERO));
            let (from, to, length) = (self.test.from, self.test.to, packet.length);
            let (mark, session) = (mark(packet.made).0, self.test.format.session);
            let sequence = Some(packet.sequence);
            observer.packet(&TestPacket { mark, session, sequence, at, error, length, from, to });
        }
    }

    /// Reads received packets and stamps.
    fn receive(&mut self, observer: &mut impl PacketObserver) -> Result<(), SocketError> {
        let now = self.clock.now();
        self.take_stamps(observer);
        let late = self.waiting.iter().take_while(|it| it.sent + STAMP_TIMEOUT < now).count();
        self.stop_waiting(late, observer);
        self.session.set_clock(self.clock.state());
        let dropped = self.socket.dropped()?;
        if let Some(missed) = self.drops.missed(dropped, now, self.clock.as_ref()) {
            self.answers_dropped += missed.packets;
            // An answer arrives at most the timeout after its packet left.
            let from = missed.from - self.test.timeout;
            observer.answers_missed(&CaptureLoss { from, ..missed });
        }
        let mut is_drained = false;
        for _ in 0..BATCH {
            let Some(received) = self.socket.receive().map_err(SocketError::Receive)? else {
                is_drained = true;
                break;
            };
            let at = received.at.unwrap_or_else(|| self.clock.now());
            if let Err(why) = self.session.answer(received.bytes, received.from, at) {
                observer.rejected(why);
            }
            self.take_stamps(observer);
        }
        self.session.advance(self.clock.now());
        self.report_answers(observer);
        if is_drained {
            // An answer stamped before `now` was in the backlog at most, and may still wait for its follow-up.
            let waited = self.session.waited(now).max(Span::ZERO);
            observer.answered(now - BACKLOG - waited - self.test.timeout);
        }
        // After the answers, which are then in the same batch. Later packets have later times.
        observer.complete(self.waiting.front().map_or(now, |packet| packet.made));
        Ok(())
    }

    /// Notifies the observer of the answers counted since the last call.
    fn report_answers(&mut self, observer: &mut impl PacketObserver) {
        while let Some(answer) = self.session.next_answer() {
            observer.answer(&answer);
        }
    }

    /// Waits for room in the socket's queue, which a slow interface fills; false after the timeout.
    fn wait_for_room(&self) -> bool {
        let timeout = Timespec::try_from(POLL_TIMEOUT).unwrap_or_default();
        let mut event = [PollFd::new(&self.socket, PollFlags::OUT)];
        poll(&mut event, Some(&timeout)).is_ok() && event[0].revents().contains(PollFlags::OUT)
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, UdpSocket};

    use super::*;
    use crate::sender::{PacketFormat, PacketSchedule};

    #[test]
    fn datagrams_dropped_at_the_socket_are_counted() {
        let reflector = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let test = TestConfig {
            to: reflector.local_addr().unwrap(),
            from: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            packets: Some(1),
            lasting: None,
            schedule: PacketSchedule::Periodic(Duration::from_millis(1)),
            timeout: Span::from_millis(1),
            format: PacketFormat { length: 100, ..PacketFormat::default() },
            same_clock: true,
        };
        let sender = Sender::open(test).unwrap();
        let at = sender.socket.local_addr().unwrap();
        // Nothing reads the socket yet.
        while sender.socket.dropped().unwrap() == 0 {
            reflector.send_to(&[0xff; 60_000], at).unwrap();
        }
        let dropped = u64::from(sender.socket.dropped().unwrap());
        let report = sender.run(&Stop::new().unwrap(), ()).unwrap();
        assert_eq!((report.answers_dropped, report.both.counts.lost), (dropped, 1));
    }
}
