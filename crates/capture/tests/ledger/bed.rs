//! A wire with only the test's traffic, and a capture of its far end.

use std::sync::mpsc;
use std::thread;

use pcap::Active;
use wirestamp_capture::capabilities::works_without_card;
use wirestamp_capture::{
    Capture, CapturedPacket, Config, Error, Facts, Ledger, Limit, Method, PAIRS, Pair, Sink, Stop,
};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::Netns;

/// The longest frame that goes over the wire: a jumbo frame with its header.
pub(crate) const LONGEST: usize = 14 + 9000;

/// Number of flows of the frames of [`frame`].
const FLOWS: u32 = 64;

/// Two ends of a cable in a network namespace of their own, and a sender at the near one.
pub(crate) struct Wire {
    namespace: Netns,
    pub(crate) sender: Sender,
    clock: ClockService,
}

/// Sends at the near end, and counts.
pub(crate) struct Sender {
    near: pcap::Capture<Active>,
    /// Frames accepted by the kernel since the last capture was opened.
    pub(crate) sent: u64,
}

impl Sender {
    pub(crate) fn send(&mut self, frame: &[u8]) {
        self.near.sendpacket(frame).unwrap();
        self.sent += 1;
    }

    /// Sends numbered frames of many flows.
    pub(crate) fn send_numbered(&mut self, count: u32) {
        (0..count).for_each(|number| self.send(&frame(number)));
    }
}

impl Wire {
    pub(crate) fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return None;
        }
        let namespace = Netns::new().unwrap();
        let silent = "arp off multicast off addrgenmode none";
        for command in [
            "link add near mtu 9000 type veth peer name far mtu 9000",
            &format!("link set near {silent} up"),
            &format!("link set far {silent} up"),
        ] {
            let status = namespace.command("ip").args(command.split(' ')).status().unwrap();
            assert!(status.success(), "ip {command}");
        }
        let near = || pcap::Capture::from_device("near").unwrap().open().unwrap();
        let near = namespace.run(near).unwrap();
        let clock = ClockService::start(Counter::select()).unwrap();
        Some(Self { namespace, sender: Sender { near, sent: 0 }, clock })
    }

    /// Opens a capture at the far end: frames sent from now on arrive in its ring or queue.
    pub(crate) fn open(&mut self, config: Config) -> Capture {
        self.sender.sent = 0;
        self.namespace.run(|| Capture::open(config, &self.clock)).unwrap().unwrap()
    }

    /// Runs a capture until it ends automatically.
    pub(crate) fn run(&self, capture: Capture, sink: &mut dyn Sink) -> (Ledger, Result<(), Error>) {
        capture.run(&self.clock, &Stop::new().unwrap(), sink)
    }

    /// Captures the frames sent before, and ends.
    pub(crate) fn take_in(&self, capture: Capture, sink: &mut dyn Sink) -> Ledger {
        let stop = Stop::new().unwrap();
        stop.request();
        let (ledger, outcome) = capture.run(&self.clock, &stop, sink);
        outcome.unwrap();
        ledger
    }

    /// Runs a capture while `send` sends.
    pub(crate) fn while_sending<S: Sink + Send>(
        &mut self,
        capture: Capture,
        sink: &mut S,
        send: impl FnOnce(&mut Sender),
    ) -> Ledger {
        let Self { sender, clock, .. } = self;
        let stop = Stop::new().unwrap();
        let (ledger, outcome) = thread::scope(|scope| {
            let capturing = scope.spawn(|| capture.run(clock, &stop, sink));
            let ending = StopOnDrop(&stop);
            send(sender);
            drop(ending);
            capturing.join().unwrap()
        });
        outcome.unwrap();
        ledger
    }

    /// Runs a capture whose consumer takes its first packet only when all of `count` were sent.
    pub(crate) fn overload(&mut self, config: Config, count: u32) -> (Facts, Ledger) {
        let capture = self.open(config);
        let facts = capture.facts().clone();
        let (all_sent, wait) = mpsc::channel();
        let ledger = self.while_sending(capture, &mut WaitingSink(Some(wait)), |sender| {
            let _all_sent: mpsc::Sender<()> = all_sent; // dropped when all were sent
            sender.send_numbered(count);
        });
        (facts, ledger)
    }
}

/// A capture at the far end, with defaults for everything else.
pub(crate) fn config(pair: &Pair) -> Config {
    Config::new("far", pair.method, pair.stamp)
}

/// A capture of `packets` packets.
pub(crate) fn limited(pair: &Pair, packets: u64) -> Config {
    Config { limit: Limit { packets: Some(packets), duration: None }, ..config(pair) }
}

/// Checks that every packet sent is written, or lost at one stage.
pub(crate) fn assert_accounted(name: &str, sent: u64, ledger: &Ledger) {
    let Ledger {
        interface_dropped,
        kernel_dropped,
        left_behind,
        filtered,
        surplus,
        consumer_dropped,
        delivered,
        ..
    } = *ledger;
    let lost = interface_dropped + kernel_dropped + left_behind + consumer_dropped;
    assert_eq!(sent, delivered + filtered + surplus + lost, "{name}: {ledger:?}");
    assert!(ledger.balances(), "{name}: {ledger:?}");
    assert_eq!(ledger.lost(), lost - interface_dropped, "{name}: {ledger:?}");
}

/// A UDP datagram of flow `number % FLOWS` to an unused Ethernet address: the network stack handles it like a frame
/// that a switch has flooded.
pub(crate) fn frame(number: u32) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
    frame.extend([0x45, 0, 0, 232, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let port = u16::try_from(7000 + number % FLOWS).unwrap();
    frame.extend([port, 5000, 212, 0].map(u16::to_be_bytes).concat());
    frame.extend(number.to_be_bytes());
    frame.resize(14 + 232, 0);
    frame
}

/// Waits at the first packet until all packets were sent.
struct WaitingSink(Option<mpsc::Receiver<()>>);

impl Sink for WaitingSink {
    fn packet(&mut self, _: &CapturedPacket<'_>) -> Result<(), Error> {
        if let Some(all_sent) = self.0.take() {
            let _ = all_sent.recv();
        }
        Ok(())
    }
}

/// Ends the capture, also when the sender panics.
struct StopOnDrop<'a>(&'a Stop);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.request();
    }
}

/// Pairs that need neither a network card nor a missing kernel function.
pub(crate) fn pairs() -> impl Iterator<Item = &'static Pair> {
    PAIRS.iter().filter(|pair| works_without_card(pair))
}

/// The pairs of these whose packets can be distributed over several threads.
pub(crate) fn shareable_pairs() -> impl Iterator<Item = &'static Pair> {
    let alone = [Method::Xdp, Method::XdpPass, Method::TcPass, Method::TracePass];
    pairs().filter(move |pair| !alone.contains(&pair.method))
}
