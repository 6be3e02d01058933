//! Whom frames are addressed to, where nobody has told the kernel its neighbours.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirestamp_clock::{ClockService, Counter, Span};
use wirestamp_lab::{Netns, check_privilege};
use wirestamp_traffic::{
    Pattern, Plan, SendError, SendMethod, Sender, ServiceClock, Stream, Transmission,
};

/// Two namespaces with a link between them: `a` has 10.78.0.1 and fd78::1, `b` the 2 of each.
fn link() -> Option<[Netns; 2]> {
    if check_privilege().is_err() {
        eprintln!("skipped: needs root");
        return None;
    }
    let [a, b] = [Netns::new().unwrap(), Netns::new().unwrap()];
    b.run(|| {
        let there = fs::read_link("/proc/thread-self").unwrap();
        let there = format!("/proc/{}/ns/net", there.display());
        ip(&a, &format!("link add name near type veth peer name far netns {there}"));
    })
    .unwrap();
    for (netns, name, host) in [(&a, "near", 1), (&b, "far", 2)] {
        ip(netns, &format!("address add 10.78.0.{host}/24 dev {name}"));
        ip(netns, &format!("address add fd78::{host}/64 dev {name} nodad"));
        ip(netns, &format!("link set {name} up"));
    }
    Some([a, b])
}

fn ip(netns: &Netns, arguments: &str) {
    let output = netns.command("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

fn open(netns: &Netns, to: IpAddr) -> Result<Sender, SendError> {
    let plan = Plan { pattern: Pattern::voip(), start: Span::ZERO, packets: 1 };
    let stream =
        Stream { interface: Some("near".into()), ..Stream::new(1, plan, (to, 5000).into()) };
    let by = Transmission { method: SendMethod::Packet, ..Transmission::default() };
    netns.run(|| Sender::open_with(vec![stream], &by)).unwrap()
}

#[test]
fn a_neighbour_is_looked_for_and_the_frame_reaches_it() {
    let Some([a, b]) = link() else { return };
    for to in ["10.78.0.2", "fd78::2"].map(|to| to.parse::<IpAddr>().unwrap()) {
        let receiver = b.run(|| UdpSocket::bind((to, 5000))).unwrap().unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let sender = open(&a, to).unwrap();
        let service = ClockService::start(Counter::select()).unwrap();
        sender.run(&mut ServiceClock::new(&service), &AtomicBool::new(false), |_| {});
        assert_eq!(receiver.recv(&mut [0; 200]).unwrap(), if to.is_ipv6() { 78 } else { 98 });
    }
}

#[test]
fn where_nobody_answers_the_address_has_to_be_given() {
    let Some([a, _b]) = link() else { return };
    let patience = "/proc/sys/net/ipv4/neigh/near/retrans_time_ms";
    a.run(|| fs::write(patience, "10")).unwrap().unwrap();
    let error = open(&a, "10.78.0.9".parse().unwrap()).unwrap_err();
    assert!(matches!(error, SendError::Neighbour { .. }), "{error}");
    assert!(error.to_string().contains("10.78.0.9 on near") && error.to_string().contains("--mac"));
}

#[test]
fn where_there_is_no_way_it_is_said() {
    let Some([a, _b]) = link() else { return };
    let error = open(&a, "fd79::1".parse().unwrap()).unwrap_err();
    assert!(matches!(error, SendError::Route { .. }), "{error}");
    assert!(error.to_string().contains("`ip route`"), "{error}");
}
