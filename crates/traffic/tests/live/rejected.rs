//! Rejected live frames and their error messages.

use std::net::IpAddr;

use wirestamp_lab::{SOURCE_INTERFACE, TAP_B};
use wirestamp_traffic::MacAddress;
use wirestamp_traffic::live::{self, Direction, Endpoint, LiveError, LiveFrames, Template};

use crate::{incoming, lab, outgoing, tool};

#[test]
fn veth_with_passive_peer_is_rejected_with_next_step() {
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
fn invalid_frames_and_interfaces_are_rejected_by_name() {
    let Some(lab) = lab() else { return };
    let open = |interface: &str, template: Template, direction| {
        let open = || LiveFrames::open(interface, template, direction).err();
        lab.sink().run(open).unwrap().unwrap().to_string()
    };
    let error = open("none", incoming(false, 100), Direction::Receive);
    assert!(error.contains("over interface `none`"), "{error}");
    let error = open(TAP_B, incoming(false, 1519), Direction::Transmit);
    assert!(error.contains("MTU allows 1518"), "{error}");
    let error = open(TAP_B, incoming(false, 4000), Direction::Receive);
    assert!(error.contains("use 60 to 3072 over IPv4"), "{error}");
    tool(lab.sink(), "ip link set tap-b down");
    let error = open(TAP_B, incoming(false, 100), Direction::Receive);
    assert!(error.contains("tap-b is down"), "{error}");
}

#[test]
fn missing_addresses_come_from_the_kernel() {
    let Some(lab) = lab() else { return };
    let expected = outgoing(100);
    let [source, destination] = [expected.source, expected.destination];
    let (to, port) = (destination.address, source.address.port());
    let find = |from, mac| {
        let find = || live::outgoing(SOURCE_INTERFACE, to, from, port, mac);
        lab.source().run(find).unwrap()
    };
    assert_eq!(find(None, None).unwrap(), [source, destination]);
    let other = MacAddress([0xff; 6]);
    let [_, end] = find(None, Some(other)).unwrap();
    assert_eq!(end, Endpoint { mac: other, ..destination });
    let elsewhere = IpAddr::from([192, 0, 2, 1]);
    assert_eq!(find(Some(elsewhere), None).unwrap()[0].address.ip(), elsewhere);
    let arriving = || live::incoming(TAP_B, to, source.address, None);
    let [far, near] = lab.sink().run(arriving).unwrap().unwrap();
    assert_eq!((far.address, near.mac), (source.address, incoming(false, 100).destination.mac));
}
