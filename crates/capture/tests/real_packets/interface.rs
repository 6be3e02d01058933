//! Interfaces that are removed, down, without an Ethernet header, or the loopback.

use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use wirestamp_capture::{Capture, Config, Error, Method, Stop, Wait};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::{Netns, TAP_B};

use super::bed::{KeptPackets, PORT, capture, config, ip, lab, pairs, send};

#[test]
fn removed_interface_ends_the_capture_with_error() {
    let (sleeps, spins) = (Wait::Block { realtime: false }, Wait::Spin);
    let (down, del) = ("link set tap-b down", "link del tap-b");
    let cases = [(down, sleeps), (del, sleeps), (down, spins), (del, spins)];
    for (pair, (removal, wait)) in pairs().flat_map(|pair| cases.map(|case| (pair, case))) {
        let Some(lab) = lab() else { return };
        let mut kept = KeptPackets::default();
        let config = Config { wait, ..config(pair.method, pair.stamp, None) };
        let (ledger, outcome) = capture(&lab, config, &mut kept, |_| {
            send(&lab, 5);
            ip(lab.sink(), removal);
        });
        let name = format!("{} {} {removal} {wait:?}: {ledger:?}", pair.method, pair.stamp);
        assert!(matches!(outcome, Err(Error::Unusable { .. })), "{name}: {outcome:?}");
        assert_eq!((kept.0.len(), ledger.delivered, ledger.balances()), (5, 5, true), "{name}");
    }
}

#[test]
fn capture_continues_after_the_interface_was_down_if_it_is_to_wait() {
    for pair in pairs() {
        let Some(lab) = lab() else { return };
        let mut kept = KeptPackets::default();
        let config =
            Config { wait_for_interface: true, ..config(pair.method, pair.stamp, Some(6)) };
        let (ledger, outcome) = capture(&lab, config, &mut kept, |stop| {
            send(&lab, 5);
            ip(lab.sink(), "link set tap-b down");
            ip(lab.sink(), "link set tap-b up");
            // Packets pass again some time after the link is up.
            let until = Instant::now() + Duration::from_secs(20);
            while !stop.is_requested() && Instant::now() < until {
                send(&lab, 1);
                thread::sleep(Duration::from_millis(10));
            }
            stop.request();
        });
        let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
        outcome.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!((kept.0.len(), ledger.balances()), (6, true), "{name}");
    }
}

#[test]
fn interface_that_is_down_or_without_ethernet_header_is_refused() {
    let Some(lab) = lab() else { return };
    let clock = ClockService::start(Counter::select()).unwrap();
    ip(lab.source(), "tuntap add dev tun0 mode tun");
    ip(lab.source(), "link set tun0 up");
    ip(lab.sink(), "link set tap-b down");
    for pair in pairs() {
        let refused = |namespace: &Netns, interface: &str| {
            let config = Config::new(interface, pair.method, pair.stamp);
            namespace.run(|| Capture::open(config, &clock).err()).unwrap().unwrap()
        };
        let down = refused(lab.sink(), TAP_B);
        assert!(down.to_string().contains("tap-b is down"), "{down}");
        use Method::{TcPass, TracePass, Xdp, XdpPass};
        if matches!(pair.method, TcPass | TracePass | Xdp | XdpPass) {
            let tun = refused(lab.source(), "tun0");
            assert!(tun.to_string().contains("no Ethernet header"), "{tun}");
        }
    }
}

#[test]
fn loopback_packets_count_once() {
    let Some(lab) = lab() else { return };
    ip(lab.sink(), "link set lo up");
    let clock = ClockService::start(Counter::select()).unwrap();
    for pair in pairs() {
        let stop = Stop::new().unwrap();
        let config = Config {
            filter: Some(format!("udp port {PORT}")),
            ..Config::new("lo", pair.method, pair.stamp)
        };
        let capture = lab.sink().run(|| Capture::open(config, &clock)).unwrap().unwrap();
        let socket = lab.sink().run(|| UdpSocket::bind("127.0.0.1:0")).unwrap().unwrap();
        for _ in 0..10 {
            // Refused, because the port is closed.
            let _ = socket.send_to(b"once", (Ipv4Addr::LOCALHOST, PORT));
        }
        stop.request();
        let (ledger, outcome) = capture.run(&clock, &stop, &mut KeptPackets::default());
        outcome.unwrap();
        let name = format!("{} {}: {ledger:?}", pair.method, pair.stamp);
        assert_eq!((ledger.seen - ledger.filtered, ledger.delivered), (10, 10), "{name}");
    }
}
