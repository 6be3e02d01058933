//! Raw stamps of packets that a kernel program handles: taken in the softIRQ if the kernel has a function that
//! reads the counter, otherwise reported.

use wirestamp_capture::capabilities::{CounterFunction, works_without_card};
use wirestamp_capture::{
    Capture, CapturedPacket, Config, Error, Facts, Ledger, Limit, Method, Sink, StampSource, Stop,
    pair,
};
use wirestamp_clock::{ClockService, Counter, Domain, RawStamp};
use wirestamp_lab::Netns;

const PACKETS: u8 = 100;

/// A link from `near` to `far` without other traffic.
fn link() -> Option<Netns> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return None;
    }
    let namespace = Netns::new().unwrap();
    let silent = "arp off multicast off addrgenmode none";
    for arguments in [
        "link add near type veth peer name far",
        // Sets the options before the interfaces are up: with both in one command, Linux 6.1 brings them up first.
        &format!("link set near {silent}"),
        &format!("link set far {silent}"),
        "link set near up",
        "link set far up",
    ] {
        let status = namespace.command("ip").args(arguments.split(' ')).status().unwrap();
        assert!(status.success(), "ip {arguments}");
    }
    Some(namespace)
}

/// Number and stamp of each packet, and the counter when it was received.
#[derive(Default)]
struct KeptStamps(Vec<(u8, RawStamp, u64)>);

impl Sink for KeptStamps {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        self.0.push((packet.bytes[14], packet.stamp.raw, Counter::select().read_ordered()));
        Ok(())
    }
}

/// Sends numbered packets; returns the counter before each.
fn send() -> Vec<u64> {
    let mut wire = pcap::Capture::from_device("near").unwrap().open().unwrap();
    let mut send = |number| {
        let before = Counter::select().read_ordered();
        wire.sendpacket([&[0xff; 12][..], &[0x88, 0xb5], &[number; 46]].concat()).unwrap();
        before
    };
    (0..PACKETS).map(&mut send).collect()
}

/// Captures packets at the far end, with raw stamps between the sender's and the sink's readings.
fn capture(link: &Netns, method: Method, filter: Option<&str>) -> Result<(Facts, Ledger), Error> {
    let clock = ClockService::start(Counter::select()).unwrap();
    let limit = Limit { packets: Some(PACKETS.into()), duration: None };
    let filter = filter.map(str::to_owned);
    let config = Config { limit, filter, ..Config::new("far", method, StampSource::Raw) };
    let capture = link.run(|| Capture::open(config, &clock)).unwrap()?;
    let facts = capture.facts().clone();
    let sent = link.run(send).unwrap();
    let mut kept = KeptStamps::default();
    let (ledger, outcome) = capture.run(&clock, &Stop::new().unwrap(), &mut kept);
    outcome.unwrap();
    assert!(ledger.balances(), "{ledger:?}");
    assert_eq!(kept.0.len(), sent.len());
    for (&(number, stamp, read), &before) in kept.0.iter().zip(&sent) {
        assert_eq!(stamp.domain, Domain::Counter);
        let between = before <= stamp.value && stamp.value <= read;
        assert!(between, "packet {number}: {before} {} {read}", stamp.value);
    }
    assert!(kept.0.is_sorted_by_key(|&(_, stamp, _)| stamp.value), "one queue, one order");
    Ok((facts, ledger))
}

#[test]
fn raw_xdp_stamps_report_their_origin() {
    let Some(link) = link() else { return };
    for filter in [None, Some("ether proto 0x88b5")] {
        let (facts, ledger) = capture(&link, Method::Xdp, filter).unwrap();
        assert_eq!(ledger.stamped_late, 0, "{ledger:?}");
        let note = facts.notes.iter().find(|note| note.contains("acquisition thread"));
        if CounterFunction::find().is_some() {
            assert!(facts.taken.contains("softIRQ") && note.is_none(), "{facts:?}");
        } else {
            assert!(facts.taken.starts_with("by the acquisition thread"), "{facts:?}");
            assert!(note.unwrap().contains("load the module wirestamp"), "{facts:?}");
        }
    }
}

#[test]
fn raw_stamps_of_passed_packets_are_softirq_or_refused() {
    let Some(link) = link() else { return };
    let filters = [None, Some("ether proto 0x88b5")];
    let can = |method: &Method| works_without_card(pair(*method, method.default_stamp()).unwrap());
    let methods = [Method::XdpPass, Method::TcPass].into_iter().filter(can);
    for (method, filter) in methods.flat_map(|method| filters.map(|filter| (method, filter))) {
        match (CounterFunction::find(), capture(&link, method, filter)) {
            (Some(_), Ok((facts, ledger))) => {
                assert!(facts.taken.contains("softIRQ"), "{facts:?}");
                assert_eq!(ledger.stamped_late, 0, "{ledger:?}");
            }
            (None, Err(error)) => {
                let words = error.to_string();
                assert!(error.is_usage() && words.lines().count() == 1, "{words}");
                let why = format!(
                    "{method} with raw stamps is not available on far: this kernel has no function \
                     that reads the counter for BPF programs: load the module"
                );
                assert!(words.starts_with(&why) && words.contains("it supports ring ("), "{words}");
            }
            (function, captured) => panic!("{function:?}, but {captured:?}"),
        }
    }
}
