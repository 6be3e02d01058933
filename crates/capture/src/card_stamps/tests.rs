//! Fake cards, and real sockets without a card.

use std::cell::Cell;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wirestamp_clock::{ClockService, Counter, Domain};
use wirestamp_lab::Netns;

use super::*;
use crate::af_xdp::AfXdp;
use crate::bpf_program::{Hook, Place, StampedBy};
use crate::config::Direction;
use crate::filter::Filter;
use crate::live_ledger::LiveLedger;
use crate::packet_socket::Setup;
use crate::pass::Pass;
use crate::pipeline::{self, CapturedPacket, Limit, PipelineContext, Sink, Wait};
use crate::receiver::Receiver;
use crate::ring::BlockRing;
use crate::socket::{Recvmmsg, Recvmsg, Socket};
use crate::{Cores, Stop};

const OFF: HardwareStamping = HardwareStamping { flags: 0, sent: 0, arriving: 0 };
/// As ptp4l sets it: `HWTSTAMP_TX_ON` and `HWTSTAMP_FILTER_PTP_V2_EVENT`.
const PTP: HardwareStamping = HardwareStamping { flags: 0, sent: 1, arriving: 12 };

/// A card whose driver replaces the filter for all packets by `grants`, if that is set.
struct FakeCard<'a> {
    setting: &'a Cell<HardwareStamping>,
    grants: Option<i32>,
}

impl Card for FakeCard<'_> {
    fn read(&self) -> io::Result<HardwareStamping> {
        Ok(self.setting.get())
    }

    fn write(&self, setting: HardwareStamping) -> io::Result<HardwareStamping> {
        let arriving = match setting.arriving {
            EVERY_PACKET => self.grants.unwrap_or(EVERY_PACKET),
            other => other,
        };
        self.setting.set(HardwareStamping { arriving, ..setting });
        Ok(self.setting.get())
    }
}

fn card(setting: &Cell<HardwareStamping>) -> FakeCard<'_> {
    FakeCard { setting, grants: None }
}

#[test]
fn card_setting_is_restored_after_the_capture() {
    for before in [OFF, PTP] {
        let setting = Cell::new(before);
        let mut enabled = EnabledStamps::on(card(&setting)).unwrap();
        assert_eq!(setting.get(), HardwareStamping { arriving: EVERY_PACKET, ..before });
        enabled.restore().unwrap();
        assert_eq!(setting.get(), before);
        setting.set(PTP);
        drop(enabled);
        assert_eq!(setting.get(), PTP, "it is restored once");
    }
}

#[test]
fn unused_capture_restores_the_setting() {
    let setting = Cell::new(PTP);
    drop(EnabledStamps::on(card(&setting)).unwrap());
    assert_eq!(setting.get(), PTP);
}

#[test]
fn card_that_stamps_everything_keeps_its_setting() {
    let all = HardwareStamping { arriving: EVERY_PACKET, ..PTP };
    let setting = Cell::new(all);
    drop(EnabledStamps::on(card(&setting)).unwrap());
    assert_eq!(setting.get(), all);
}

#[test]
fn setting_of_another_program_is_kept() {
    let setting = Cell::new(OFF);
    let enabled = EnabledStamps::on(card(&setting)).unwrap();
    setting.set(PTP);
    drop(enabled);
    assert_eq!(setting.get(), PTP);
}

#[test]
fn driver_that_stamps_less_is_refused_and_restored() {
    let setting = Cell::new(OFF);
    let narrow = FakeCard { setting: &setting, grants: Some(12) };
    let refused = EnabledStamps::on(narrow).err().unwrap();
    assert!(refused.to_string().contains("filter 12"), "{refused}");
    assert_eq!(setting.get(), OFF);
}

#[test]
fn interface_without_card_is_refused() {
    let error = CardStamping::of("lo").err().unwrap().to_string();
    assert!(error.starts_with("cannot enable stamps of the network card on lo: "), "{error}");
}

/// Keeps clock, time, error and presence of a kernel stamp of each packet.
#[derive(Default)]
struct KeptStamps(Vec<(Domain, i64, i64, bool)>);

impl Sink for KeptStamps {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        let stamp = packet.stamp;
        let (utc, error) = (stamp.utc.as_nanos(), stamp.error.as_nanos());
        self.0.push((stamp.raw.domain, utc, error, packet.kernel.is_some()));
        Ok(())
    }
}

/// A namespace with loopback and a link from `near` to `far`, both up and without other traffic.
fn namespace() -> Netns {
    let namespace = Netns::new().unwrap();
    let silent = "arp off multicast off addrgenmode none";
    for arguments in [
        "link set lo up",
        "link add near type veth peer name far",
        &format!("link set near {silent} up"),
        &format!("link set far {silent} up"),
    ] {
        let status = namespace.command("ip").args(arguments.split(' ')).status().unwrap();
        assert!(status.success(), "ip {arguments}");
    }
    namespace
}

/// Captures three packets on `interface` with card stamps enabled. Checks that the stamps are of the clock `instead`,
/// and returns their max error.
fn captured<R: Receiver>(
    interface: &str,
    instead: Domain,
    send: fn(),
    open: impl FnOnce(&Interface, &Setup<'_>) -> Result<R, Error>,
) -> i64 {
    let clock = ClockService::start(Counter::select()).unwrap();
    let interface = Interface::open(interface).unwrap();
    let setup = Setup {
        snaplen: 1514,
        bytes: 1 << 20,
        direction: Direction::Inout,
        promiscuous: true,
        fanout: None,
        spins: false,
        card_stamps: true,
    };
    let receiver = open(&interface, &setup).unwrap();
    let now = || clock.timeline(Domain::Counter).convert(clock.counter().read()).utc.as_nanos();
    let (stop, mut kept, before) = (Stop::new().unwrap(), KeptStamps::default(), now());
    (0..3).for_each(|_| send());
    let context = PipelineContext {
        shared_count: None,
        clock: &clock,
        domain: Domain::Nic,
        fallback: Some(instead),
        stamped: true,
        lanes: &[Cores::default()],
        wait: Wait::Block { realtime: false },
        limit: Limit { packets: Some(3), duration: Some(Duration::from_secs(10)) },
        stop: &stop,
        interface: &interface,
        wait_for_interface: false,
        snaplen: 1514,
        opened: pipeline::now(),
        live: &LiveLedger::new(Arc::new(Interface::open("lo").unwrap()), 0),
    };
    let started = Instant::now();
    let (ledger, outcome) = pipeline::run(vec![receiver], &context, None, &mut kept);
    outcome.unwrap();
    assert!(started.elapsed() < Duration::from_secs(10), "{ledger:?}");
    assert!(ledger.balances() && ledger.delivered == 3, "{ledger:?}");
    assert_eq!(ledger.stamped_late, 3, "none has a stamp of a card, and each is counted");
    for &(domain, utc, _, kernel) in &kept.0 {
        assert_eq!((domain, kernel), (instead, false), "the stamp has its clock");
        // The stamp and `now` are converted from different clocks.
        let slack = 1_000_000;
        assert!(utc >= before - slack && utc <= now() + slack);
    }
    kept.0.iter().map(|&(_, _, error, _)| error).max().unwrap()
}

fn send_on_loopback() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(b"packet", socket.local_addr().unwrap()).unwrap();
}

fn send_on_the_link() {
    let mut wire = pcap::Capture::from_device("near").unwrap().open().unwrap();
    wire.sendpacket([&[0xff; 12][..], &[0x88, 0xb5], &[0; 46]].concat()).unwrap();
}

#[test]
fn unstamped_by_card_have_kernel_stamps() {
    let namespace = namespace();
    let (realtime, send) = (Domain::Realtime, send_on_loopback as fn());
    let errors = namespace.run(|| {
        [
            captured("lo", realtime, send, |lo, setup| BlockRing::open(lo, None, setup)),
            captured("lo", realtime, send, |lo, s| Socket::<Recvmsg>::open(lo, None, s, None)),
            captured("lo", realtime, send, |lo, s| Socket::<Recvmmsg>::open(lo, None, s, None)),
        ]
    });
    assert!(errors.unwrap().into_iter().all(|error| error <= 1), "it is system time");
}

/// A veth supports programs bound to it, and returns stamps of 0.
#[test]
fn unstamped_by_card_have_xdp_stamps() {
    let (monotonic, send) = (Domain::Monotonic, send_on_the_link as fn());
    let both = || {
        let filter = Filter::compile("ether proto 0x88b5").unwrap();
        for filter in [None, Some(&filter)] {
            captured("far", monotonic, send, |far, setup| {
                let Setup { snaplen, bytes, .. } = *setup;
                let by = StampedBy::Card;
                let (xdp, place) = Pass::open(Hook::Xdp, far, filter, by, snaplen, bytes)?;
                assert_eq!(place, Place::Driver);
                Ok(xdp)
            });
            captured("far", monotonic, send, |far, setup| {
                AfXdp::open(far, filter, setup, StampedBy::Card).map(|(xdp, _)| xdp)
            });
        }
    };
    namespace().run(both).unwrap();
}

#[test]
fn card_stamp_program_requires_driver_xdp() {
    let open = || {
        let loopback = Interface::open("lo").unwrap();
        Pass::open(Hook::Xdp, &loopback, None, StampedBy::Card, 1514, 1 << 16).err()
    };
    let error = namespace().run(open).unwrap().expect("loopback has no XDP").to_string();
    assert!(error.starts_with("cannot run the XDP program on lo: "), "{error}");
}
