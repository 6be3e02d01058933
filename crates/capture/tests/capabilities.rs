//! Capabilities of real interfaces, compared with what opens.

use wirestamp_capture::capabilities::{Capabilities, CardStamps, Obstacle, card_clock, verdict};
use wirestamp_capture::{Capture, Config, Error, Method, PAIRS, Pair, StampSource};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::Netns;

/// A namespace with an interface of each kind that needs no hardware. The tun and the one called down are down.
fn interfaces() -> Option<Netns> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return None;
    }
    let namespace = Netns::new().unwrap();
    for arguments in [
        "link set lo up",
        "link add name veth type veth peer name down",
        "link set veth up",
        "link add name bridge type bridge",
        "link set bridge up",
        "tuntap add dev tap mode tap",
        "link set tap up",
        "tuntap add dev tun mode tun",
    ] {
        let status = namespace.command("ip").args(arguments.split(' ')).status().unwrap();
        assert!(status.success(), "ip {arguments}");
    }
    Some(namespace)
}

fn capabilities(namespace: &Netns, interface: &str) -> Capabilities {
    namespace.run(|| Capabilities::of(interface)).unwrap().unwrap()
}

fn open(
    namespace: &Netns,
    interface: &str,
    pair: &Pair,
    clock: &ClockService,
) -> Result<Capture, Error> {
    let config = Config::new(interface, pair.method, pair.stamp);
    namespace.run(|| Capture::open(config, clock)).unwrap()
}

#[test]
fn interfaces_report_their_capabilities() {
    let Some(namespace) = interfaces() else { return };
    let found = |interface| {
        let of = capabilities(&namespace, interface);
        let in_driver = of.xdp.map(|xdp| xdp.in_driver);
        (of.driver, of.kind, of.up, in_driver)
    };
    let driver = |name: &str| Some(name.to_owned());
    assert_eq!(found("lo"), (None, 772, true, Some(false)));
    assert_eq!(found("veth"), (driver("veth"), 1, true, Some(true)));
    assert_eq!(found("down"), (driver("veth"), 1, false, Some(true)));
    assert_eq!(found("bridge"), (driver("bridge"), 1, true, Some(false)));
    assert_eq!(found("tap"), (driver("tun"), 1, true, Some(true)));
    assert_eq!(found("tun"), (driver("tun"), 65_534, false, Some(false)));

    let veth = capabilities(&namespace, "veth");
    assert_eq!((veth.queues, veth.xdp_program), (Some(1), None));
    assert!(veth.stamping.software_rx && veth.stamping.software_tx);
    assert_eq!((veth.stamping.card, veth.stamping.clock), (CardStamps::Nothing, None));
    assert!(veth.privileges.net_raw && veth.privileges.net_admin && veth.privileges.bpf);
    assert!(veth.kernel >= (6, 3), "{:?}", veth.kernel);
}

#[test]
fn verdicts_match_opening() {
    let Some(namespace) = interfaces() else { return };
    let clock = ClockService::start(Counter::select()).unwrap();
    for interface in ["lo", "veth", "down", "bridge", "tap", "tun"] {
        let of = capabilities(&namespace, interface);
        for pair in PAIRS {
            let name = format!("{interface} {} {}", pair.method, pair.stamp);
            match (verdict(pair, &of), open(&namespace, interface, pair, &clock)) {
                (Ok(taken), Ok(capture)) => assert_eq!(capture.facts().taken, taken, "{name}"),
                (Err(_), Err(_)) => {}
                (verdict, opened) => panic!("{name}: {verdict:?}, but {:?}", opened.err()),
            }
        }
    }
}

#[test]
fn refusal_with_other_xdp_program_lists_alternatives() {
    let Some(namespace) = interfaces() else { return };
    let clock = ClockService::start(Counter::select()).unwrap();
    let pair = wirestamp_capture::pair(Method::XdpPass, StampSource::Xdp).unwrap();
    let first = open(&namespace, "veth", pair, &clock).unwrap();
    let error = open(&namespace, "veth", pair, &clock).err().unwrap();
    let words = error.to_string();
    assert!(matches!(error, Error::Impossible { reason: Obstacle::XdpProgram(_), .. }), "{words}");
    assert!(error.is_usage() && words.contains("it supports ring (kernel, raw), "), "{words}");
    assert!(!words.lines().any(|line| line.contains("xdp-pass (")), "{words}");
    drop(first);
    assert!(open(&namespace, "veth", pair, &clock).is_ok());
}

#[test]
fn capture_that_slows_tcp_suggests_tc_pass() {
    let Some(namespace) = interfaces() else { return };
    let clock = ClockService::start(Counter::select()).unwrap();
    let notes = |interface, method: Method| {
        let pair = wirestamp_capture::pair(method, method.default_stamp()).unwrap();
        open(&namespace, interface, pair, &clock).unwrap().facts().notes.join("; ")
    };
    for interface in ["veth", "lo"] {
        let words = notes(interface, Method::XdpPass);
        assert!(words.contains("TCP") && words.contains("--method tc-pass avoids this"), "{words}");
    }
    // The driver of a tap supports XDP, and TCP does not keep packets that arrive there.
    assert_eq!(notes("tap", Method::XdpPass), "");
    assert_eq!(notes("veth", Method::TcPass), "");
}

#[test]
fn interface_without_card_lists_other_stamps() {
    let Some(namespace) = interfaces() else { return };
    let clock = ClockService::start(Counter::select()).unwrap();
    for pair in PAIRS.iter().filter(|pair| pair.stamp == StampSource::Hardware) {
        for interface in ["lo", "veth", "bridge", "tap"] {
            let number = namespace.run(|| card_clock(pair, interface)).unwrap().unwrap();
            assert_eq!(number, None, "{interface}");
            let error = open(&namespace, interface, pair, &clock).err().unwrap();
            let words = error.to_string();
            assert!(matches!(error, Error::Impossible { reason: Obstacle::NoCardStamps, .. }));
            assert!(
                error.is_usage() && words.contains("it supports ring (kernel, raw), "),
                "{words}"
            );
        }
    }
}

#[test]
fn missing_interface_is_an_error() {
    let error = Capabilities::of("no-such-if").unwrap_err();
    assert!(matches!(error, Error::NoSuchInterface(_)), "{error}");
}
