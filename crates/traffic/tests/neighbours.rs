//! Hardware addresses of neighbours that are not in the kernel's table.

use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirestamp_clock::{ClockService, Counter, Span};
use wirestamp_lab::{Netns, check_privilege};
use wirestamp_traffic::{
    Pattern, SendError, SendMethod, SendOptions, Sender, ServiceClock, Stream, StreamPlan,
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
    let plan = StreamPlan { pattern: Pattern::voip(), start: Span::ZERO, packets: 1 };
    let stream =
        Stream { interface: Some("near".into()), ..Stream::new(1, plan, (to, 5000).into()) };
    let by = SendOptions { method: SendMethod::Packet, ..SendOptions::default() };
    netns.run(|| Sender::open_with(vec![stream], &by)).unwrap()
}

#[test]
fn unknown_neighbour_is_resolved_and_receives_the_frame() {
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
fn silent_neighbour_is_an_error_that_names_mac_option() {
    let Some([a, _b]) = link() else { return };
    let retransmit_time = "/proc/sys/net/ipv4/neigh/near/retrans_time_ms";
    a.run(|| fs::write(retransmit_time, "10")).unwrap().unwrap();
    let error = open(&a, "10.78.0.9".parse().unwrap()).unwrap_err();
    assert!(matches!(error, SendError::Neighbour { .. }), "{error}");
    assert!(error.to_string().contains("10.78.0.9 on near") && error.to_string().contains("--mac"));
}

#[test]
fn missing_route_is_an_error_with_next_step() {
    let Some([a, _b]) = link() else { return };
    let error = open(&a, "fd79::1".parse().unwrap()).unwrap_err();
    assert!(matches!(error, SendError::Route { .. }), "{error}");
    assert!(error.to_string().contains("`ip route`"), "{error}");
}
