//! Ends of active tests: a sender or a reflector for each, whose packets are observed as those of a capture are.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use tracing::{info, warn};
use wirestamp_active::reflector::Server;
use wirestamp_active::sender::{Form, Rhythm, Sender, Test};
use wirestamp_active::{Passage, SocketError, Witness, sender};
use wirestamp_capture::{Sink, Stop};
use wirestamp_clock::{Domain, RawStamp, Span, Stamp, Time, Utc};
use wirestamp_metrics::{Observation, Sampling};
use wirestamp_packet::stamp::NotStamp;
use wirestamp_packet::{FlowKey, PacketId};

use super::ChannelName;
use super::heard::Heard;
use super::look::{Passing, Purpose};
use super::machine::TestClock;
use super::runner::{Failure, Shared, within};
use super::tap::{Command, Tap};
use crate::secret::Secret;

/// For how long answers are waited for when a test ends; what they say is not needed.
const TIMEOUT: Span = Span::from_millis(200);

const UDP: u8 = 17;

/// Ends of tests that are wanted.
pub(super) type Tests = BTreeMap<ChannelName, TestEnd>;

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

/// What is sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sending {
    pub(super) to: SocketAddr,
    pub(super) rhythm: Rhythm,
    /// Bytes of UDP's payload.
    pub(super) length: usize,
    pub(super) dscp: u8,
    /// The number of the session.
    pub(super) session: u16,
    /// By which packets get their codes; they are open without it.
    pub(super) secret: Option<Secret>,
}

/// What is reflected.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reflecting {
    /// At this port, of addresses of that kind.
    pub(super) at: SocketAddr,
    /// The number of the session: others are answered, and not observed.
    pub(super) session: u16,
    /// By which packets have codes; those with others are neither answered nor observed.
    pub(super) secret: Option<Secret>,
}

/// Those that run.
#[derive(Default)]
pub(super) struct Ends(HashMap<ChannelName, Running>);

struct Running {
    end: TestEnd,
    heard: Arc<Heard>,
    commands: mpsc::Sender<Command>,
    stop: Stop,
    thread: JoinHandle<()>,
}

impl Ends {
    /// Lets run what is wanted, and nothing else. Tells which cannot, and why.
    pub(super) fn reconcile(
        &mut self,
        wanted: &Tests,
        shared: &Shared,
    ) -> Vec<(ChannelName, String)> {
        let is_over = |name: &ChannelName, it: &mut Running| {
            wanted.get(name) != Some(&it.end) || it.thread.is_finished()
        };
        for (name, running) in self.0.extract_if(is_over) {
            if !wanted.contains_key(&name) {
                // Where it has ended, nobody looks anyway.
                drop(running.commands.send(Command::LookAway(name)));
            }
            running.end();
        }
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

    /// What they hear.
    pub(super) fn heard(&self) -> Vec<(ChannelName, Arc<Heard>)> {
        self.0.iter().map(|(name, it)| (*name, Arc::clone(&it.heard))).collect()
    }

    /// Ends all of them.
    pub(super) fn end(self) {
        self.0.values().for_each(|running| running.stop.request());
        self.0.into_values().for_each(Running::end);
    }
}

impl Running {
    /// Waits until what it has seen is on its way.
    fn end(self) {
        self.stop.request();
        // A thread that panicked has told so.
        drop(self.thread.join());
    }
}

fn begin(name: ChannelName, end: &TestEnd, shared: &Shared) -> Result<Running, Failure> {
    let (commands, told) = mpsc::channel();
    if let Ok(all) = Sampling::share(1.0) {
        // It is there until this end.
        drop(commands.send(Command::Look(name, None, Purpose::Observe(all))));
    }
    let stop = Stop::new().map_err(Failure::Thread)?;
    let tap = shared.tap(told);
    let session = end.part.session();
    let (stopped, ended) = (stop.clone(), shared.ended());
    let clock = TestClock::new(shared.machine());
    let run = within(end.namespace.as_deref(), || open(&end.part, clock))??;
    let heard = Arc::<Heard>::default();
    let hearing = Arc::clone(&heard);
    let run = move || {
        if let Err(error) = run(&stopped, Watching { name, tap, session, heard: hearing }) {
            warn!("an end of a test has ended: {error}");
        }
        ended.send_replace(());
    };
    let thread = thread::Builder::new().name(format!("test {name}")).spawn(run);
    let thread = thread.map_err(Failure::Thread)?;
    match &end.part {
        Part::Send(sending) => info!("sends to {}", sending.to),
        Part::Reflect(Reflecting { at, .. }) => info!("reflects at port {}", at.port()),
    }
    Ok(Running { end: end.clone(), heard, commands, stop, thread })
}

/// What an end does once it has its socket.
type Run = Box<dyn FnOnce(&Stop, Watching) -> Result<(), SocketError> + Send>;

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
        Part::Reflect(Reflecting { at, secret, .. }) => {
            let any: IpAddr = match at.ip() {
                IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let key = secret.as_ref().map(Secret::key);
            let server = Server::bind(&[SocketAddr::new(any, at.port())], key)?.with_clock(clock);
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
    fn test(&self) -> Test {
        let any: IpAddr = match self.to.ip() {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Test {
            to: self.to,
            from: SocketAddr::new(any, 0),
            packets: None,
            lasting: None,
            rhythm: self.rhythm,
            timeout: TIMEOUT,
            // Packets are as long as was asked for: extensions would make them longer, for answers that tell
            // nothing which the probes do not know.
            form: Form {
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

/// Has test packets observed.
struct Watching {
    name: ChannelName,
    tap: Tap,
    session: u16,
    heard: Arc<Heard>,
}

impl Watching {
    fn end(&mut self) {
        // It has nobody to fail for.
        drop(self.tap.end());
    }
}

impl Witness for &mut Watching {
    fn passes(&mut self, passage: &Passage) {
        let Passage { mark, session, at, error, length, from, to } = *passage;
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
        self.tap.pass(&Passing::observed(observation));
    }

    fn complete(&mut self, until: Time<Utc>) {
        // As above.
        drop(Sink::complete(&mut self.tap, until));
    }

    fn heard(&mut self, heard: &sender::Heard) {
        self.heard.exchanges().hear(heard);
    }

    fn refuses(&mut self, why: NotStamp) {
        self.heard.refuse(self.name, why);
    }
}
