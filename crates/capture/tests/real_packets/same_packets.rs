//! The same packets with every method: those of a VLAN, and others.

use wirestamp_capture::{Capture, Config, Direction, Limit, Method, Pair, StampSource, Stop};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::PathLab;

use super::bed::{KeptPackets, TAG, frame, lab, pairs, send};

/// A frame with a tag and 100 bytes of UDP payload.
const TAGGED_BYTES: usize = 14 + 4 + 20 + 8 + 100;

#[test]
fn vlan_filter_works_with_every_method() {
    let Some(lab) = lab() else { return };
    let mut wire =
        lab.source().run(|| pcap::Capture::from_device("out").unwrap().open().unwrap()).unwrap();
    let clock = ClockService::start(Counter::select()).unwrap();
    let frame = frame(TAGGED_BYTES, &TAG);
    for pair in pairs() {
        let config = Config {
            filter: Some("vlan 7 and udp".into()),
            snaplen: 60,
            limit: Limit { packets: Some(5), duration: None },
            ..Config::new("tap-a", pair.method, pair.stamp)
        };
        let stop = Stop::new().unwrap();
        let capture = lab.router().run(|| Capture::open(config, &clock)).unwrap().unwrap();
        send(&lab, 3); // without a tag
        for _ in 0..5 {
            wire.sendpacket(&*frame).unwrap();
        }
        let mut kept = KeptPackets::default();
        let (ledger, outcome) = capture.run(&clock, &stop, &mut kept);
        outcome.unwrap();
        let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
        assert!(ledger.balances(), "{name}");
        for (_, bytes, length) in &kept.0 {
            assert_eq!((&bytes[12..16], bytes.len()), (&TAG[..], 60), "{name}");
            assert_eq!(*length as usize, TAGGED_BYTES, "{name}");
        }
    }
}

/// Captures the `count` packets of `traffic` with each of `pairs` at once, at tap A. Packets are sorted by their
/// bytes: packets that the kernel handles on two cores have no other order.
fn with_each_of(
    lab: &PathLab,
    pairs: &[Pair],
    count: u64,
    traffic: impl FnOnce(),
) -> Vec<KeptPackets> {
    let clock = ClockService::start(Counter::select()).unwrap();
    let open = |pair: &Pair| {
        let config = Config {
            limit: Limit { packets: Some(count), duration: None },
            direction: Direction::In, // ICMP port unreachable, which not every method sees
            ..Config::new("tap-a", pair.method, pair.stamp)
        };
        lab.router().run(|| Capture::open(config, &clock)).unwrap().unwrap()
    };
    let captures: Vec<_> = pairs.iter().map(open).collect();
    traffic();
    let run = |capture: Capture| {
        let mut kept = KeptPackets::default();
        let (ledger, outcome) = capture.run(&clock, &Stop::new().unwrap(), &mut kept);
        outcome.unwrap();
        assert!(ledger.balances() && ledger.lost() == 0, "{ledger:?}");
        kept.0.sort_by(|(_, a, _), (_, b, _)| a.cmp(b));
        kept
    };
    captures.into_iter().map(run).collect()
}

#[test]
fn every_pair_captures_the_same_packets() {
    let Some(lab) = lab() else { return };
    let mut wire =
        lab.source().run(|| pcap::Capture::from_device("out").unwrap().open().unwrap()).unwrap();
    let mut traffic = || {
        for number in 0..30 {
            let mut frame = frame(TAGGED_BYTES, &TAG);
            frame.extend(vec![number; 40 * usize::from(number)]);
            wire.sendpacket(&*frame).unwrap();
            frame.drain(12..16); // the tag
            wire.sendpacket(frame).unwrap();
        }
    };
    // Packets of `xdp` go to no other receiver, and an interface has only one XDP program.
    let (mut shared, mut alone): (Vec<Pair>, Vec<Pair>) =
        pairs().partition(|pair| match pair.method {
            Method::Xdp => false,
            Method::XdpPass => pair.stamp == StampSource::Xdp,
            _ => true,
        });
    // It can have any number of tc programs.
    shared.extend(pairs().filter(|pair| matches!(pair.method, Method::TcPass | Method::TracePass)));
    let mut all = with_each_of(&lab, &shared, 60, &mut traffic);
    for pair in &alone {
        all.extend(with_each_of(&lab, &[*pair], 60, &mut traffic));
    }
    let packets = |kept: &KeptPackets| -> Vec<_> {
        kept.0.iter().map(|(_, bytes, length)| (bytes.clone(), *length)).collect()
    };
    let stamps = |kept: &KeptPackets| -> Vec<_> {
        kept.0.iter().map(|(stamp, ..)| stamp.raw.value).collect()
    };
    let mut pairs = shared;
    pairs.append(&mut alone);
    for (pair, kept) in pairs.iter().zip(&all) {
        let name = format!("{} {}", pair.method, pair.stamp);
        assert!(packets(kept) == packets(&all[0]), "{name}");
        if pair.stamp == StampSource::Kernel {
            assert_eq!(stamps(kept), stamps(&all[0]), "{name}");
        }
    }
}
