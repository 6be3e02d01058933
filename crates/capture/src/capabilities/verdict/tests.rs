//! Verdicts about synthetic interfaces.

use super::super::{Privileges, Stamping, Xdp};
use super::*;
use crate::pairs::pair;

const ALL: Privileges =
    Privileges { net_raw: true, net_admin: true, bpf: true, perfmon: true, sys_admin: true };
const SOCKETS: [Method; 4] = [Method::Ring, Method::Recvmsg, Method::Recvmmsg, Method::LibPcap];

/// A network card that supports everything, on a kernel with the module, as root.
fn card() -> Capabilities {
    Capabilities {
        kind: 1,
        up: true,
        driver: Some("ice".to_owned()),
        queues: Some(16),
        stamping: Stamping {
            software_rx: true,
            software_tx: true,
            card: CardStamps::AllPackets,
            clock: Some(0),
        },
        xdp: Some(Xdp { in_driver: true, zero_copy: true, zero_copy_pieces: 8, card_stamps: true }),
        xdp_program: None,
        counter_function: Some(CounterFunction::Module),
        counter_event: true,
        privileges: ALL,
        kernel: (6, 18),
    }
}

/// Kernel stamps only.
const SOFTWARE: Stamping =
    Stamping { software_rx: true, software_tx: true, card: CardStamps::Nothing, clock: None };

fn veth() -> Capabilities {
    let xdp = Xdp { in_driver: true, card_stamps: true, ..Xdp::default() };
    let driver = Some("veth".to_owned());
    Capabilities { driver, stamping: SOFTWARE, xdp: Some(xdp), ..card() }
}

fn loopback() -> Capabilities {
    Capabilities { kind: 772, driver: None, ..wifi() }
}

fn wifi() -> Capabilities {
    Capabilities { driver: Some("iwlwifi".to_owned()), xdp: Some(Xdp::default()), ..veth() }
}

fn tun() -> Capabilities {
    Capabilities { kind: 65_534, ..wifi() }
}

/// Where stamps are taken if everything that the table mentions is available.
fn taken(pair: &Pair) -> &'static str {
    match (pair.method, pair.stamp) {
        (Method::Xdp, StampSource::Raw) => IN_THE_SOFTIRQ_BY_FUNCTION,
        _ => pair.taken,
    }
}

fn xdp_pass() -> &'static Pair {
    pair(Method::XdpPass, StampSource::Xdp).unwrap()
}

fn tc_pass() -> &'static Pair {
    pair(Method::TcPass, StampSource::Tc).unwrap()
}

/// Pairs without network card stamps.
fn without_card() -> impl Iterator<Item = &'static Pair> {
    PAIRS.iter().filter(|pair| pair.stamp != StampSource::Hardware)
}

fn by_card() -> impl Iterator<Item = &'static Pair> {
    PAIRS.iter().filter(|pair| pair.stamp == StampSource::Hardware)
}

fn socket_pairs() -> impl Iterator<Item = &'static Pair> {
    without_card().filter(|pair| SOCKETS.contains(&pair.method))
}

#[test]
fn full_card_supports_every_pair() {
    for pair in PAIRS {
        assert_eq!(verdict(pair, &card()), Ok(taken(pair)), "{} {}", pair.method, pair.stamp);
        assert_eq!(card_stamps(pair.method, &card()), Ok(()), "{}", pair.method);
    }
}

#[test]
fn veth_supports_all_but_card_stamps() {
    for pair in without_card() {
        assert_eq!(verdict(pair, &veth()), Ok(taken(pair)));
    }
    for pair in by_card() {
        assert_eq!(verdict(pair, &veth()), Err(Obstacle::NoCardStamps));
    }
    for pair in PAIRS {
        // Its driver supports network card stamps in XDP programs, but a veth has no network card.
        assert_eq!(card_stamps(pair.method, &veth()), Err(Obstacle::NoCardStamps));
    }
}

#[test]
fn generic_xdp_stamps_in_the_stack() {
    for interface in [loopback(), wifi()] {
        assert_eq!(verdict(xdp_pass(), &interface), Ok(STACK_WITHOUT_XDP));
        for pair in socket_pairs() {
            assert_eq!(verdict(pair, &interface), Ok(pair.taken));
        }
    }
    let untold = Capabilities { xdp: None, ..wifi() };
    assert_eq!(verdict(xdp_pass(), &untold), Ok(xdp_pass().taken));
}

#[test]
fn counter_function_decides_where_raw_stamps_are() {
    let raw = |method| pair(method, StampSource::Raw).unwrap();
    let verdicts = |of: &Capabilities| [Method::Xdp, Method::XdpPass].map(|m| verdict(raw(m), of));
    let tc_verdict = |of: &Capabilities| verdict(raw(Method::TcPass), of);
    let by_thread = Ok(THREAD_WITHOUT_FUNCTION);

    let stock = Capabilities { counter_function: None, ..card() };
    assert_eq!(verdicts(&stock), [by_thread, Err(Obstacle::NoCounterFunction)]);
    assert_eq!(tc_verdict(&stock), Err(Obstacle::NoCounterFunction));
    let words = "xdp (xdp, raw, hardware), xdp-pass (xdp, hardware), tc-pass (tc), trace-pass (trace, \
                 raw)";
    assert!(alternatives(&stock).ends_with(words));

    let privileges = Privileges { sys_admin: false, ..ALL };
    let unprivileged = Capabilities { privileges, ..card() };
    assert_eq!(verdicts(&unprivileged), [by_thread, Err(Obstacle::Privileges("cap_sys_admin"))]);
    assert_eq!(tc_verdict(&unprivileged), Err(Obstacle::Privileges("cap_sys_admin")));
    let own = Capabilities { counter_function: Some(CounterFunction::Kernel), ..unprivileged };
    assert_eq!(verdicts(&own), [Ok(IN_THE_SOFTIRQ_BY_FUNCTION); 2]);
    assert_eq!(tc_verdict(&own), Ok(raw(Method::TcPass).taken));

    assert_eq!(verdicts(&wifi()), [Ok(STACK_WITHOUT_XDP); 2]);
    let stock_wifi = Capabilities { counter_function: None, ..wifi() };
    assert_eq!(verdicts(&stock_wifi), [by_thread, Err(Obstacle::NoCounterFunction)]);
}

#[test]
fn interface_that_is_down_or_of_another_type_supports_nothing() {
    let down = Capabilities { up: false, ..card() };
    let other = Capabilities { kind: 824, ..card() };
    for pair in PAIRS {
        assert_eq!(verdict(pair, &other), Err(Obstacle::UnknownLink(824)));
        assert_eq!(verdict(pair, &down), Err(Obstacle::Down));
    }
    assert_eq!(alternatives(&other), "");
}

#[test]
fn plain_ip_packets_are_captured_by_sockets() {
    for pair in PAIRS.iter().filter(|pair| pair.stamp != StampSource::Hardware) {
        let expected =
            if pair.method.runs_program() { Err(Obstacle::NotEthernet) } else { Ok(pair.taken) };
        assert_eq!(verdict(pair, &tun()), expected);
    }
}

#[test]
fn each_method_requires_its_own_privileges() {
    let with = |privileges| Capabilities { privileges, ..card() };
    let sockets = with(Privileges { bpf: false, perfmon: false, net_admin: false, ..ALL });
    let programs = with(Privileges { net_raw: false, ..ALL });
    for pair in socket_pairs() {
        assert_eq!(verdict(pair, &sockets), Ok(pair.taken));
        assert_eq!(verdict(pair, &programs), Err(Obstacle::Privileges("cap_net_raw")));
    }
    let needed = Err(Obstacle::Privileges(PASS));
    let needed_by_xdp = Err(Obstacle::Privileges(XDP));
    for pair in [xdp_pass(), tc_pass()] {
        assert_eq!(verdict(pair, &sockets), needed);
        assert_eq!(verdict(pair, &programs), Ok(pair.taken));
    }
    for pair in by_card() {
        let lacks = |capability| Err(Obstacle::Privileges(capability));
        let (without_admin, without_raw) = match pair.method {
            Method::Xdp => (needed_by_xdp, needed_by_xdp),
            Method::XdpPass => (needed, Ok(pair.taken)),
            _ => (lacks("cap_net_admin"), lacks("cap_net_raw")),
        };
        assert_eq!(verdict(pair, &sockets), without_admin, "{}", pair.method);
        assert_eq!(verdict(pair, &programs), without_raw, "{}", pair.method);
    }
}

#[test]
fn old_kernel_or_other_program_blocks_only_xdp() {
    let old = Capabilities { kernel: (5, 4), ..card() };
    let too_old = Obstacle::Kernel { has: (5, 4), needs: XDP_LINKS };
    assert_eq!(too_old.to_string(), "Linux 5.4 is too old; it needs 5.9 or newer");
    assert_eq!(verdict(xdp_pass(), &old), Err(too_old));
    let taken = Capabilities { xdp_program: Some(12), ..card() };
    assert_eq!(verdict(xdp_pass(), &taken), Err(Obstacle::XdpProgram(12)));
    for pair in socket_pairs() {
        assert_eq!((verdict(pair, &old), verdict(pair, &taken)), (Ok(pair.taken), Ok(pair.taken)));
        let words = alternatives(&taken);
        assert!(words.contains(pair.method.name()) && !words.contains("xdp"), "{words}");
    }
    assert!(alternatives(&card()).starts_with("ring (kernel, raw, hardware), recvmsg (kernel, "));
    assert!(alternatives(&veth()).starts_with("ring (kernel, raw), recvmsg (kernel, raw), "));
}

#[test]
fn tc_program_requires_links_and_allows_others() {
    let has = |kernel| verdict(tc_pass(), &Capabilities { kernel, ..veth() });
    let too_old = Obstacle::Kernel { has: (6, 5), needs: (6, 6) };
    assert_eq!((has((6, 5)), has((6, 6))), (Err(too_old), Ok(tc_pass().taken)));
    let beside = Capabilities { xdp_program: Some(12), ..veth() };
    assert_eq!(verdict(tc_pass(), &beside), Ok(tc_pass().taken));
    for interface in [loopback(), wifi()] {
        assert_eq!(verdict(tc_pass(), &interface), Ok(tc_pass().taken));
    }
}

#[test]
fn tracing_program_requires_event_only_for_raw_stamps() {
    let verdicts = |of: &Capabilities| {
        [StampSource::Trace, StampSource::Raw]
            .map(|stamp| verdict(pair(Method::TracePass, stamp).unwrap(), of).map(|_| ()))
    };
    assert_eq!(verdicts(&wifi()), [Ok(()); 2]);
    let eventless = Capabilities { counter_event: false, ..wifi() };
    assert_eq!(verdicts(&eventless), [Ok(()), Err(Obstacle::NoCounterEvent)]);
    let too_old = Obstacle::Kernel { has: (6, 5), needs: (6, 6) };
    assert_eq!(verdicts(&Capabilities { kernel: (6, 5), ..wifi() }), [Err(too_old); 2]);
    // Only in the stack does an XDP program run after the tracing program.
    let xdp = |of| verdicts(&Capabilities { xdp_program: Some(12), ..of });
    assert_eq!([xdp(veth()), xdp(wifi())], [[Ok(()); 2], [Err(Obstacle::XdpProgram(12)); 2]]);
}

#[test]
fn kernel_copies_for_xdp_on_veth_and_generic_xdp() {
    for interface in [veth(), loopback(), wifi()] {
        assert!(copies_for_xdp(&interface), "{interface:?}");
    }
    assert!(!copies_for_xdp(&card()));
    assert!(!copies_for_xdp(&Capabilities { xdp: None, ..card() }), "it may have XDP");
}

#[test]
fn card_stamps_require_all_packets_and_a_clock() {
    let with = |card_stamps, clock| {
        let stamping = Stamping { card: card_stamps, clock, ..SOFTWARE };
        Capabilities { stamping, ..card() }
    };
    for method in SOCKETS.into_iter().chain([Method::Xdp, Method::XdpPass]) {
        let verdicts = |stamps, clock| card_stamps(method, &with(stamps, clock));
        assert_eq!(verdicts(CardStamps::Nothing, Some(0)), Err(Obstacle::NoCardStamps));
        assert_eq!(verdicts(CardStamps::SomePackets, Some(0)), Err(Obstacle::OnlySomeCardStamps));
        assert_eq!(verdicts(CardStamps::AllPackets, None), Err(Obstacle::NoCardClock));
    }
}

#[test]
fn xdp_card_stamps_require_driver_support() {
    let verdicts = |of: Capabilities| card_stamps(Method::XdpPass, &of);
    let with = |xdp| Capabilities { xdp: Some(xdp), ..card() };
    let silent = Xdp { in_driver: true, ..Xdp::default() };
    assert_eq!(verdicts(with(silent)), Err(Obstacle::NoXdpStamps));
    let in_the_stack = Xdp { card_stamps: true, ..Xdp::default() };
    assert_eq!(verdicts(with(in_the_stack)), Err(Obstacle::NoXdpStamps));
    let too_old = Obstacle::Kernel { has: (6, 6), needs: XDP_METADATA };
    assert_eq!(verdicts(Capabilities { kernel: (6, 6), ..card() }), Err(too_old));
}
