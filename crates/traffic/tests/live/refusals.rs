//! What cannot be sent, and what is said about it.

use wirestamp_lab::{SOURCE_INTERFACE, TAP_B};
use wirestamp_traffic::live::{Direction, LiveError, LiveFrames, Template};

use crate::{incoming, lab, outgoing, tool};

#[test]
fn a_veth_whose_peer_does_not_poll_is_refused_with_what_to_do_about_it() {
    let Some(lab) = lab() else { return };
    let open = || {
        let open = || LiveFrames::open(SOURCE_INTERFACE, outgoing(100), Direction::Transmit).err();
        lab.source().run(open).unwrap()
    };
    let error = open().unwrap();
    assert!(matches!(error, LiveError::NoTransmit { .. }), "{error}");
    assert!(error.to_string().contains("`ethtool -K PEER gro on`"), "{error}");
    tool(lab.router(), "ethtool -K tap-a gro on");
    assert!(open().is_none());
}

#[test]
fn what_does_not_fit_or_is_not_there_is_refused_by_name() {
    let Some(lab) = lab() else { return };
    let open = |interface: &str, template: Template, direction| {
        let open = || LiveFrames::open(interface, template, direction).err();
        lab.sink().run(open).unwrap().unwrap().to_string()
    };
    let error = open("none", incoming(false, 100), Direction::Receive);
    assert!(error.contains("there is no interface none"), "{error}");
    let error = open(TAP_B, incoming(false, 1519), Direction::Transmit);
    assert!(error.contains("MTU of 1500 allows 1518"), "{error}");
    let error = open(TAP_B, incoming(false, 4000), Direction::Receive);
    assert!(error.contains("use 60 to 3072 over IPv4"), "{error}");
    tool(lab.sink(), "ip link set tap-b down");
    let error = open(TAP_B, incoming(false, 100), Direction::Receive);
    assert!(error.contains("tap-b is down"), "{error}");
}
