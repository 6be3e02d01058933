//! Two veth cables with the test as the network between them: it sends each packet into both cables, or, to lose it,
//! only into the first. A gate blocks the captures while it is shut.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use pcap::Active;
use wirestamp_capture::{Capture, Config, Method, StampSource};
use wirestamp_clock::ClockService;
use wirestamp_lab::Netns;
use wirestamp_metrics::{Outcome, Point};

/// The UDP ports of the RTP streams, and that of the packets that follow a burst.
const FIRST_PORT: u16 = 7000;
pub(crate) const STREAMS: u32 = 16;
const FOLLOWING: u16 = 6999;

/// Max packets sent at once while every capture keeps up: any queue has room for them.
const SMALL_BURST: usize = 4;
/// Number of small bursts.
const SMALL_BURSTS: usize = 100;

/// Max wait for a follower, which may be lost, before the next one is sent.
const LOST_AFTER: Duration = Duration::from_millis(300);

/// Max time until a capture has dated earlier drops: it reads the kernel's counts every 10 ms.
const DATED_WITHIN: Duration = Duration::from_millis(50);

/// The cables and their near ends.
pub(crate) struct Bed {
    namespace: Netns,
    ends: [pcap::Capture<Active>; 2],
    /// For each numbered packet, whether the network lost it.
    pub(crate) lost: Vec<bool>,
    /// Packets that followed bursts.
    followers: u32,
}

impl Bed {
    pub(crate) fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return None;
        }
        let namespace = Netns::new().unwrap();
        let silent = "arp off multicast off addrgenmode none up";
        for (near, far) in [("near-a", "a"), ("near-b", "b")] {
            for command in [
                &format!("link add {near} type veth peer name {far}"),
                &format!("link set dev {near} {silent}"),
                &format!("link set dev {far} {silent}"),
            ] {
                let status = namespace.command("ip").args(command.split(' ')).status().unwrap();
                assert!(status.success(), "ip {command}");
            }
        }
        let end = |name| pcap::Capture::from_device(name).unwrap().open().unwrap();
        let ends = namespace.run(|| ["near-a", "near-b"].map(end)).unwrap();
        Some(Self { namespace, ends, lost: Vec::new(), followers: 0 })
    }

    /// Receive drops of the kernel at each point, before the capture: on a busy machine, the backlog of a core is full.
    pub(crate) fn dropped_by_kernel(&self) -> [u64; 2] {
        ["a", "b"].map(|far| {
            let asked = ["-s", "-j", "link", "show", "dev", far];
            let said = self.namespace.command("ip").args(asked).output().unwrap().stdout;
            let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
            said[0]["stats64"]["rx"]["dropped"].as_u64().unwrap()
        })
    }

    /// A capture at a point, with `bytes` of buffer memory.
    pub(crate) fn open(
        &self,
        point: Point,
        (method, stamp): (Method, StampSource),
        bytes: usize,
        clock: &ClockService,
    ) -> Capture {
        let interface = if point == Point::A { "a" } else { "b" };
        let config = Config { ring_bytes: bytes, ..Config::new(interface, method, stamp) };
        self.namespace.run(|| Capture::open(config, clock)).unwrap().unwrap()
    }

    /// Sends the next numbered packet. The network loses one in `loss` packets, of varying streams; with 0, none.
    fn send(&mut self, loss: usize) {
        let number = self.lost.len();
        let is_lost = loss > 0 && number % loss == number / loss % loss;
        self.lost.push(is_lost);
        self.pass(&rtp(u32::try_from(number).unwrap()), is_lost);
    }

    fn pass(&mut self, frame: &[u8], is_lost: bool) {
        let [a, b] = &mut self.ends;
        a.sendpacket(frame).unwrap();
        if !is_lost {
            b.sendpacket(frame).unwrap();
        }
    }

    /// Sends bursts while no capture reads; after each burst, followers until all captures have read it. Then sends
    /// packets at a rate that all captures handle, and finally one packet of each stream. The network loses packets of
    /// the bursts (`loss`), of the later packets (`loss_later`), or of both.
    pub(crate) fn overload(
        &mut self,
        gate: &Gate,
        (bursts, packets): (usize, usize),
        [loss, loss_later]: [usize; 2],
    ) {
        // The followers must be recognised as a stream before a capture misses one.
        (0..SMALL_BURST).for_each(|_| self.follow(gate));
        for _ in 0..bursts {
            gate.shut();
            (0..packets).for_each(|_| self.send(loss));
            gate.open();
            self.follow(gate);
        }
        self.send_calmly(gate, STREAMS as usize / SMALL_BURST, 0);
        if loss_later > 0 {
            let over = Instant::now();
            while over.elapsed() < DATED_WITHIN {
                self.send_calmly(gate, 1, 0);
            }
            self.send_calmly(gate, SMALL_BURSTS, loss_later);
            self.send_calmly(gate, STREAMS as usize / SMALL_BURST, 0);
        }
    }

    /// Sends a small burst `times` times.
    fn send_calmly(&mut self, gate: &Gate, times: usize, loss: usize) {
        for _ in 0..times {
            (0..SMALL_BURST).for_each(|_| self.send(loss));
            self.follow(gate);
        }
    }

    /// Sends followers until one is matched: the captures have then read all earlier packets.
    fn follow(&mut self, gate: &Gate) {
        gate.expect_follower();
        loop {
            self.followers += 1;
            self.pass(&datagram(FOLLOWING, &voice(STREAMS, self.followers)), false);
            if gate.has_passed_follower() {
                break;
            }
        }
    }
}

/// Blocks callers while it is shut.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    shut: bool,
    /// Whether a packet that follows a burst has been matched.
    followed: bool,
}

impl Gate {
    fn shut(&self) {
        self.state.lock().unwrap().shut = true;
    }

    fn expect_follower(&self) {
        self.state.lock().unwrap().followed = false;
    }

    pub(crate) fn open(&self) {
        self.state.lock().unwrap().shut = false;
        self.changed.notify_all();
    }

    /// Waits for the gate to be open.
    pub(crate) fn wait(&self) {
        drop(self.changed.wait_while(self.state.lock().unwrap(), |state| state.shut).unwrap());
    }

    /// Waits until the gate is open. Records whether the outcome is a matched follower.
    pub(crate) fn pass(&self, outcome: &Outcome) {
        self.wait();
        if matches!(outcome, Outcome::Matched { .. })
            && outcome.flow().destination.port() == FOLLOWING
        {
            self.state.lock().unwrap().followed = true;
            self.changed.notify_all();
        }
    }

    /// Waits up to [`LOST_AFTER`] for a matched follower. Returns whether there was one.
    fn has_passed_follower(&self) -> bool {
        let state = self.state.lock().unwrap();
        let not_yet = |state: &mut State| !state.followed;
        self.changed.wait_timeout_while(state, LOST_AFTER, not_yet).unwrap().0.followed
    }
}

/// The RTP packet with this number; streams take turns.
fn rtp(number: u32) -> Vec<u8> {
    let (stream, place) = (number % STREAMS, number / STREAMS);
    datagram(FIRST_PORT + 2 * u16::try_from(stream).unwrap(), &voice(stream, place))
}

/// A packet of G.711 in RTP (RFC 3550 section 5.1, RFC 3551).
fn voice(stream: u32, place: u32) -> Vec<u8> {
    let mut payload = vec![0x80, 0];
    payload.extend(u16::try_from(place).unwrap().to_be_bytes());
    // RTP timestamps are 2 s apart, so that no packet is late for playout.
    payload.extend((place * 16_000).to_be_bytes());
    payload.extend((0x5eed_0000 + stream).to_be_bytes());
    payload.resize(12 + 160, 0x55);
    payload
}

/// A UDP datagram in an Ethernet frame to an unused address.
fn datagram(port: u16, payload: &[u8]) -> Vec<u8> {
    let length = 8 + u16::try_from(payload.len()).unwrap();
    let mut frame = vec![2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
    frame.extend([0x45, 0]);
    frame.extend((20 + length).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    frame.extend([7000, port, length, 0].map(u16::to_be_bytes).concat());
    frame.extend(payload);
    frame
}

/// The number of a packet of [`rtp`], from its bytes.
pub(crate) fn number(frame: &[u8]) -> Option<usize> {
    let short = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
    let stream = short(36)?.checked_sub(FIRST_PORT)? / 2;
    Some(usize::from(short(44)?) * STREAMS as usize + usize::from(stream))
}
