//! Ends of active tests: senders and reflectors. Their packets are observed like captured ones.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use tracing::{info, warn};
use wirestamp_active::reflector::{RateLimit, Server};
use wirestamp_active::sender::{PacketFormat, PacketSchedule, Sender, TestConfig};
use wirestamp_active::{PacketObserver, SocketError, TestPacket, sender};
use wirestamp_capture::{Sink, Stop};
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time, Utc};
use wirestamp_metrics::{Observation, ReplyKind};
use wirestamp_packet::stamp::NotStamp;
use wirestamp_packet::{CaptureLoss, FlowKey, LinkType, PacketId};

use super::ChannelName;
use super::answer_log::AnswerEvent;
use super::machine::TestClock;
use super::observer::ObservedPacket;
use super::purpose::Purpose;
use super::shared::{Shared, StartError, within};
use super::tap::{Command, Tap};
use super::test_stats::TestStats;
use crate::protocol::TestAnswer;
use crate::secret::Secret;

/// Time after which an answer counts as lost; also the wait for the last answers when a test ends.
///
/// With the length of a batch, it is shorter than the time after which the collector decides on a packet (the default
/// timeout and skew of [`wirestamp_metrics::Config`]). So the collector has the answers by then.
const ANSWER_TIMEOUT: Span = Span::from_millis(800);

const UDP: u8 = 17;

/// Ends of tests that the probe must run.
pub(super) type RequiredTests = BTreeMap<ChannelName, TestEnd>;

/// An end of a test.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TestEnd {
    pub(super) namespace: Option<String>,
    pub(super) part: Part,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Send(Sending),
    Reflect(Reflecting),
}

/// The packets to send.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sending {
    pub(super) to: SocketAddr,
    pub(super) schedule: PacketSchedule,
    /// Length of the UDP payload, in bytes.
    pub(super) length: usize,
    pub(super) dscp: u8,
    /// Session number (SSID).
    pub(super) session: u16,
    /// Key of the authentication codes; without it the test is open.
    pub(super) secret: Option<Secret>,
}

/// The packets to reflect.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reflecting {
    /// Port and address family to listen at.
    pub(super) at: SocketAddr,
    /// Session number. Packets of other sessions are answered but not observed.
    pub(super) session: u16,
    /// Key of the authentication codes. Packets with other codes are neither answered nor observed.
    pub(super) secret: Option<Secret>,
    /// Max rate of the answers to each sender.
    pub(super) limit: RateLimit,
}

/// The test ends that run.
#[derive(Default)]
pub(super) struct TestEnds(HashMap<ChannelName, Running>);

struct Running {
    end: TestEnd,
    stats: Arc<TestStats>,
    commands: mpsc::Sender<Command>,
    stop: Stop,
    thread: JoinHandle<()>,
}

impl TestEnds {
    /// Starts the ends in `wanted` and stops all others. Returns those that cannot start, and why.
    pub(super) fn reconcile(
        &mut self,
        wanted: &RequiredTests,
        shared: &Shared,
    ) -> Vec<(ChannelName, String)> {
        let is_over = |name: &ChannelName, it: &mut Running| {
            wanted.get(name) != Some(&it.end) || it.thread.is_finished()
        };
        let over: Vec<_> = self.0.extract_if(is_over).collect();
        for (name, running) in &over {
            if !wanted.contains_key(name) {
                // If the end has stopped already, nothing receives the command.
                drop(running.commands.send(Command::Detach(*name)));
            }
            // All at once: each waits for its last answers.
            running.stop.request();
        }
        over.into_iter().for_each(|(_, running)| running.end());
        let mut troubles = Vec::new();
        for (name, end) in
            wanted.iter().filter(|(name, _)| !self.0.contains_key(*name)).collect::<Vec<_>>()
        {
            match begin(*name, end, shared) {
                Ok(running) => drop(self.0.insert(*name, running)),
                Err(failure) => troubles.push((*name, failure.to_string())),
            }
        }
        troubles
    }

    /// Statistics of each running end.
    pub(super) fn stats(&self) -> Vec<(ChannelName, Arc<TestStats>)> {
        self.0.iter().map(|(name, it)| (*name, Arc::clone(&it.stats))).collect()
    }

    /// Stops all ends.
    pub(super) fn end(self) {
        self.0.values().for_each(|running| running.stop.request());
        self.0.into_values().for_each(Running::end);
    }
}

impl Running {
    /// Waits until the end has sent its last observations.
    fn end(self) {
        self.stop.request();
        // A panic was reported by the thread itself.
        drop(self.thread.join());
    }
}

fn begin(name: ChannelName, end: &TestEnd, shared: &Shared) -> Result<Running, StartError> {
    let (commands, receiver) = mpsc::channel();
    // The observer stays attached until this end stops.
    drop(commands.send(Command::Attach(name, None, None, Purpose::Test)));
    let stop = Stop::new().map_err(StartError::Thread)?;
    let tap = shared.tap(LinkType::Ip, receiver);
    let session = end.part.session();
    let (stopped, ended) = (stop.clone(), shared.ended());
    let clock = TestClock::new(shared.machine());
    let run = within(end.namespace.as_deref(), || open(&end.part, clock))??;
    let stats = Arc::<TestStats>::default();
    let thread_stats = Arc::clone(&stats);
    let run = move || {
        if let Err(error) = run(&stopped, TestObserver { name, tap, session, stats: thread_stats })
        {
            warn!("test {name} ended: {error}");
        }
        ended.send_replace(());
    };
    let thread = thread::Builder::new().name(format!("test {name}")).spawn(run);
    let thread = thread.map_err(StartError::Thread)?;
    match &end.part {
        Part::Send(sending) => info!("test {name}: sending to {}", sending.to),
        Part::Reflect(Reflecting { at, .. }) => {
            info!("test {name}: reflecting at port {}", at.port())
        }
    }
    Ok(Running { end: end.clone(), stats, commands, stop, thread })
}

/// The work of an end after its socket is open.
type Run = Box<dyn FnOnce(&Stop, TestObserver) -> Result<(), SocketError> + Send>;

fn open(part: &Part, clock: TestClock) -> Result<Run, SocketError> {
    match part {
        Part::Send(sending) => {
            let sender = Sender::open(sending.test())?.with_clock(clock);
            Ok(Box::new(move |stop, mut watching| {
                let sent = sender.run(stop, &mut watching).map(drop);
                watching.end();
                sent
            }))
        }
        Part::Reflect(Reflecting { at, secret, limit, .. }) => {
            let any: IpAddr = match at.ip() {
                IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let key = secret.as_ref().map(Secret::key);
            let server = Server::bind(&[SocketAddr::new(any, at.port())], key)?;
            let server = server.with_clock(clock).with_limit(*limit);
            Ok(Box::new(move |stop, mut watching| {
                let reflected = server.run(stop, &mut watching).map(drop);
                watching.end();
                reflected
            }))
        }
    }
}

impl Part {
    fn session(&self) -> u16 {
        match self {
            Self::Send(Sending { session, .. }) | Self::Reflect(Reflecting { session, .. }) => {
                *session
            }
        }
    }
}

impl Sending {
    fn test(&self) -> TestConfig {
        let any: IpAddr = match self.to.ip() {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        TestConfig {
            to: self.to,
            from: SocketAddr::new(any, 0),
            packets: None,
            lasting: None,
            schedule: self.schedule,
            timeout: ANSWER_TIMEOUT,
            // The packet length is exactly the requested one: no extensions, because the probes already know their
            // contents.
            format: PacketFormat {
                key: self.secret.as_ref().map(Secret::key),
                session: self.session,
                length: self.length,
                dscp: (self.dscp > 0).then_some(self.dscp),
                light: true,
            },
            same_clock: true,
        }
    }
}

/// Observes the packets of a test.
struct TestObserver {
    name: ChannelName,
    tap: Tap,
    session: u16,
    stats: Arc<TestStats>,
}

impl TestObserver {
    fn end(&mut self) {
        // There is no caller to report an error to.
        drop(self.tap.end());
    }
}

impl PacketObserver for &mut TestObserver {
    fn packet(&mut self, packet: &TestPacket) {
        let TestPacket { mark, session, at, error, length, from, to, .. } = *packet;
        if session != self.session {
            return;
        }
        let value = u64::try_from(at.as_nanos()).unwrap_or(0);
        let raw = RawStamp { domain: Domain::Realtime, value };
        let observation = Observation {
            id: PacketId(mark),
            flow: FlowKey { source: from, destination: to, protocol: UDP },
            length,
            stamp: Stamp { raw, utc: at, error },
        };
        self.tap.pass(&ObservedPacket::observed(observation));
    }

    fn missed(&mut self, missed: &CaptureLoss) {
        // There is no caller to report an error to.
        drop(Sink::missed(&mut self.tap, missed));
    }

    fn complete(&mut self, until: Time<Utc>) {
        // There is no caller to report an error to.
        drop(Sink::complete(&mut self.tap, until));
    }

    fn answer(&mut self, answer: &sender::ReceivedAnswer) {
        self.stats.exchanges().add(answer);
        let sender::ReceivedAnswer { mark, sent, round_trip, back, taken, .. } = *answer;
        if taken == ReplyKind::First
            && let Some((sent, round_trip)) = sent.zip(round_trip)
        {
            let (identity, error) = (PacketId(mark), sent.error);
            let sent = sent.utc;
            let answer = TestAnswer { identity, sent, round_trip, back, error };
            self.tap.answers(AnswerEvent::Received(answer));
        }
    }

    fn answered(&mut self, until: Time<Utc>) {
        self.tap.answers(AnswerEvent::CompleteUntil(until));
    }

    fn answers_missed(&mut self, missed: &CaptureLoss) {
        self.tap.answers(AnswerEvent::Missed(*missed));
    }

    fn returned(&mut self, session: u16, sending: Option<Span>) {
        if session == self.session {
            self.tap.answers(AnswerEvent::Returned(sending));
        }
    }

    fn rejected(&mut self, why: NotStamp) {
        self.stats.refuse(self.name, why);
    }

    fn limited(&mut self) {
        self.stats.limit(self.name);
    }
}
