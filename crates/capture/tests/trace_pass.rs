//! Stamps of `trace-pass`: taken by a tracing program, or later by the tc program and counted.

use wirestamp_capture::capabilities::works_without_card;
use wirestamp_capture::{
    Capture, CapturedPacket, Config, Error, Ledger, Limit, Method, PAIRS, Pair, Sink, StampSource,
    Stop,
};
use wirestamp_clock::{ClockService, Counter, Domain, RawStamp, Stamp};
use wirestamp_lab::Netns;

const PACKETS: u8 = 200;

/// Ethernet address of the macvlan.
const ABOVE: [u8; 6] = [2, 0, 0, 0, 0, 7];

/// A link from `near` to `far` without other traffic, and the macvlan `above` on `far`.
fn link() -> Option<Netns> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return None;
    }
    let namespace = Netns::new().unwrap();
    for arguments in [
        "link add near type veth peer name far",
        "link add link far name above address 02:00:00:00:00:07 type macvlan mode bridge",
        "link set near arp off multicast off addrgenmode none",
        "link set far arp off multicast off addrgenmode none",
        "link set above arp off multicast off addrgenmode none",
        "link set near up",
        "link set far up",
        "link set above up",
    ] {
        let status = namespace.command("ip").args(arguments.split(' ')).status().unwrap();
        assert!(status.success(), "ip {arguments}");
    }
    Some(namespace)
}

/// Number and stamp of each packet, and the counter when it was received.
#[derive(Default)]
struct KeptStamps(Vec<(u8, Stamp, u64)>);

impl Sink for KeptStamps {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        self.0.push((packet.bytes[14], packet.stamp, Counter::select().read_ordered()));
        Ok(())
    }
}

/// Sends numbered packets to an address; returns the counter before each.
fn send(to: [u8; 6]) -> Vec<u64> {
    let mut wire = pcap::Capture::from_device("near").unwrap().open().unwrap();
    let mut send = |number| {
        let before = Counter::select().read_ordered();
        let frame = [&to[..], &[2, 0, 0, 0, 0, 1, 0x88, 0xb5], &[number; 46]].concat();
        wire.sendpacket(frame).unwrap();
        before
    };
    (0..PACKETS).map(&mut send).collect()
}

/// Captures packets on `interface`. Checks that the time of each is between the sender's and the sink's reading.
fn capture(link: &Netns, interface: &str, pair: &Pair, to: [u8; 6]) -> (Vec<RawStamp>, Ledger) {
    let clock = ClockService::start(Counter::select()).unwrap();
    let limit = Limit { packets: Some(PACKETS.into()), duration: None };
    let filter = Some("ether proto 0x88b5".to_owned());
    let config = Config { limit, filter, ..Config::new(interface, pair.method, pair.stamp) };
    let capture = link.run(|| Capture::open(config, &clock)).unwrap().unwrap();
    let sent = link.run(|| send(to)).unwrap();
    let mut kept = KeptStamps::default();
    let (ledger, outcome) = capture.run(&clock, &Stop::new().unwrap(), &mut kept);
    outcome.unwrap();
    assert!(ledger.balances() && ledger.delivered == u64::from(PACKETS), "{ledger:?}");
    let utc = |raw: u64| clock.timeline(Domain::Counter).convert(raw).utc;
    for ((number, stamp, read), (&before, expected)) in kept.0.iter().zip(sent.iter().zip(0..)) {
        assert_eq!(*number, expected);
        if pair.domain == Domain::Counter && stamp.raw.domain == Domain::Counter {
            assert!(before <= stamp.raw.value && stamp.raw.value <= *read, "{stamp:?}");
        }
        let (early, late) = (stamp.utc + stamp.error, stamp.utc - stamp.error);
        assert!(utc(before) <= early && late <= utc(*read), "{stamp:?}, {before} to {read}");
    }
    (kept.0.iter().map(|(_, stamp, _)| stamp.raw).collect(), ledger)
}

/// Domain of the raw values of captured packets.
fn raw_domain(pair: &Pair) -> Domain {
    ClockService::start(Counter::select()).unwrap().raw_domain(pair.domain)
}

fn pairs() -> impl Iterator<Item = &'static Pair> {
    PAIRS.iter().filter(|pair| pair.method == Method::TracePass && works_without_card(pair))
}

#[test]
fn tracing_program_stamps_with_the_requested_clock() {
    let Some(link) = link() else { return };
    for pair in pairs() {
        let (stamps, ledger) = capture(&link, "far", pair, [0xff; 6]);
        let domain = raw_domain(pair);
        let others = stamps.iter().filter(|stamp| stamp.domain != domain).count() as u64;
        // This kernel may skip tracing programs while it interrupts certain tasks.
        assert!(ledger.stamped_late < u64::from(PACKETS) / 2, "{}: {ledger:?}", pair.stamp);
        let expected = if pair.stamp == StampSource::Raw { ledger.stamped_late } else { 0 };
        assert_eq!(others, expected, "{}: {ledger:?}", pair.stamp);
    }
}

#[test]
fn packets_without_tracepoint_are_stamped_late_and_counted() {
    let Some(link) = link() else { return };
    for pair in pairs() {
        // The tracepoint shows them only on the interface below.
        let (stamps, ledger) = capture(&link, "above", pair, ABOVE);
        assert_eq!(ledger.stamped_late, u64::from(PACKETS), "{}: {ledger:?}", pair.stamp);
        // A late stamp of a pair with raw stamps replaces a missing one, and keeps its clock.
        let domain =
            if pair.stamp == StampSource::Raw { Domain::Monotonic } else { raw_domain(pair) };
        assert!(stamps.iter().all(|stamp| stamp.domain == domain), "{}", pair.stamp);
    }
}
