//! AF_XDP: the method `xdp` on interfaces that the other tests have none of, and sending.

use std::fs::File;
use std::io::Write as _;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::{Duration, Instant};

use wirestamp_capture::capabilities::CounterFunction;
use wirestamp_capture::xsk::Transmitter;
use wirestamp_capture::{
    Capture, CapturedPacket, Config, Error, Facts, Ledger, Limit, Method, Sink, StampSource, Stop,
    Wait,
};
use wirestamp_clock::{ClockService, Counter};
use wirestamp_lab::Netns;

/// A link whose ends, `near` and `far`, are in one namespace.
struct Link(Netns);

impl Link {
    /// A link with so many queues for packets of up to `mtu` bytes.
    fn new(queues: u32, mtu: u32) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return None;
        }
        let link = Self(Netns::new().unwrap());
        let end = format!("mtu {mtu} numrxqueues {queues} numtxqueues {queues}");
        link.command("ip", &format!("link add near {end} type veth peer name far {end}"));
        for name in ["near", "far"] {
            let silent = "arp off multicast off addrgenmode none";
            link.command("ip", &format!("link set {name} {silent} up"));
        }
        Some(link)
    }

    /// Runs a program to its end and returns what it printed.
    fn command(&self, program: &str, arguments: &str) -> String {
        let output = self.0.command(program).args(arguments.split(' ')).output().unwrap();
        assert!(output.status.success(), "{program} {arguments}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// A sender on a queue of the near end.
    fn transmitter(&self, queue: u32) -> Transmitter {
        let line = self.command("ip", "-o link show near");
        let index = line.split(':').next().unwrap().parse().unwrap();
        self.0.run(|| Transmitter::open(index, queue, 64)).unwrap().unwrap()
    }

    /// Captures at the far end while `traffic` runs, to which every packet's bytes are told.
    fn capture(&self, config: Config, traffic: impl FnOnce(&Self, &Told)) -> (Facts, Ledger) {
        let clock = ClockService::start(Counter::select()).unwrap();
        let stop = Stop::new().unwrap();
        let capture = self.0.run(|| Capture::open(config, &clock)).unwrap().unwrap();
        let facts = capture.facts().clone();
        let (tell, told) = mpsc::channel();
        thread::scope(|scope| {
            let capturing = scope.spawn(|| capture.run(&clock, &stop, &mut Telling(tell)));
            let ending = Ending(&stop);
            traffic(self, &Told(told));
            drop(ending);
            let (ledger, outcome) = capturing.join().unwrap();
            outcome.unwrap();
            assert!(ledger.balances(), "{ledger:?}");
            (facts, ledger)
        })
    }
}

fn config(stamp: StampSource) -> Config {
    Config::new("far", Method::Xdp, stamp)
}

/// Tells each packet's bytes and length.
struct Telling(Sender<(Vec<u8>, u32)>);

impl Sink for Telling {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        let _ = self.0.send((packet.bytes.to_vec(), packet.length));
        Ok(())
    }
}

/// Ends a capture, also when its traffic panics: the test is to fail then, and not to wait.
struct Ending<'a>(&'a Stop);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.request();
    }
}

/// Is told.
struct Told(mpsc::Receiver<(Vec<u8>, u32)>);

impl Told {
    /// The next packet, for which it waits, but not for one that was lost.
    fn packet(&self) -> (Vec<u8>, u32) {
        self.0.recv_timeout(Duration::from_secs(30)).expect("a packet that was sent")
    }
}

/// Sends `count` broadcast frames of an experimental type that say `number`.
fn send(transmitter: &mut Transmitter, number: u8, count: usize) {
    for _ in 0..count {
        while !transmitter.queue(|frame| {
            frame[..6].fill(0xff);
            frame[12..14].copy_from_slice(&[0x88, 0xb5]);
            frame[14] = number;
            60
        }) {
            transmitter.reclaim().unwrap();
        }
    }
    transmitter.flush().unwrap();
    while transmitter.in_flight() > 0 {
        transmitter.reclaim().unwrap();
    }
}

#[test]
fn packets_of_every_queue_are_sent_and_captured() {
    let Some(link) = Link::new(4, 1500) else { return };
    for (stamp, wait) in [
        (StampSource::Xdp, Wait::Block { realtime: false }),
        (StampSource::Raw, Wait::Block { realtime: false }),
        (StampSource::Xdp, Wait::Spin),
    ] {
        let config = Config { wait, ..config(stamp) };
        let (facts, ledger) = link.capture(config, |link, told| {
            // One at a time and in turn, so that each queue has to wake the thread by itself.
            let mut queues = [0, 1, 2, 3].map(|queue| link.transmitter(queue));
            for number in 0..40 {
                send(&mut queues[usize::from(number % 4)], number, 1);
                let (bytes, length) = told.packet();
                assert_eq!((bytes.len(), length, bytes[14]), (60, 60, number));
            }
            for queue in &mut queues {
                send(queue, 100, 500);
            }
        });
        assert_eq!((ledger.seen, ledger.delivered), (2040, 2040), "{ledger:?}");
        assert_eq!(ledger.stamped_late, 0, "{stamp}: the driver keeps metadata");
        // That the kernel copies is said, and who stamps if the program cannot; nothing else was
        // refused.
        let by_thread = stamp == StampSource::Raw && CounterFunction::find().is_none();
        let said = ["no zero-copy mode", "stamps are taken by the acquisition thread"];
        let said = &said[..1 + usize::from(by_thread)];
        assert_eq!(facts.notes.len(), said.len(), "{:?}", facts.notes);
        let mut notes = facts.notes.iter().zip(said);
        assert!(notes.all(|(note, said)| note.contains(said)), "{:?}", facts.notes);
    }
}

/// A tap device's queue: what is written to it arrives there. Without `O_NONBLOCK` it would do so
/// as a packet of the first queue (`drivers/net/tun.c`, `tun_can_build_skb`).
fn tap_queue(name: &str) -> File {
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    let queue = options.open("/dev/net/tun").unwrap();
    // SAFETY: ifreq is plain data, for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_MULTI_QUEUE;
    request.ifr_ifru.ifru_flags = flags.try_into().unwrap();
    // SAFETY: TUNSETIFF takes an ifreq, which outlives the call.
    let result = unsafe { libc::ioctl(queue.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    assert_eq!(result, 0, "{}", std::io::Error::last_os_error());
    queue
}

#[test]
fn packets_of_a_queue_that_is_added_later_are_counted_as_lost() {
    let Some(link) = Link::new(1, 1500) else { return };
    let add_queue = || link.0.run(|| tap_queue("tap")).unwrap();
    let mut queues = vec![add_queue()];
    link.command("ip", "link set tap arp off multicast off addrgenmode none up");
    let config = Config { interface: "tap".to_owned(), ..config(StampSource::Xdp) };
    let (_, ledger) = link.capture(config, |_, told| {
        let frame = [&[0xff; 12][..], &[0x88, 0xb5], &[0; 46]].concat();
        queues.push(add_queue());
        for (queue, count) in queues.iter_mut().zip([3, 4]) {
            for _ in 0..count {
                queue.write_all(&frame).unwrap();
            }
        }
        (0..3).for_each(|_| drop(told.packet()));
    });
    assert_eq!((ledger.seen, ledger.delivered, ledger.kernel_dropped), (7, 3, 4), "{ledger:?}");
    assert_eq!((ledger.fill_ring_empty, ledger.stamped_late), (0, 0), "{ledger:?}");
}

#[test]
fn of_a_packet_in_several_chunks_the_first_is_kept_and_all_come_back() {
    let Some(link) = Link::new(1, 9000) else { return };
    let mut wire =
        link.0.run(|| pcap::Capture::from_device("near").unwrap().open().unwrap()).unwrap();
    // 16 chunks: the memory for five such packets.
    let config = Config { ring_bytes: 64 << 10, ..config(StampSource::Xdp) };
    let (facts, ledger) = link.capture(config, |_, told| {
        for number in 0..40 {
            let frame = [&[0xff; 12][..], &[0x88, 0xb5], &[number; 8986]].concat();
            wire.sendpacket(frame).unwrap();
            let (bytes, length) = told.packet();
            assert_eq!((bytes.len(), length), (3840, 9000));
            assert!(bytes[14..].iter().all(|byte| *byte == number), "{number}");
        }
    });
    assert_eq!(facts.snaplen, 3840);
    assert_eq!((ledger.delivered, ledger.lost(), ledger.stamped_late), (40, 0, 0), "{ledger:?}");
}

#[test]
fn an_interface_whose_driver_has_no_xdp_is_captured_in_the_stack_and_says_so() {
    let Some(link) = Link::new(1, 1500) else { return };
    link.command("ip", "link set lo up");
    for stamp in [StampSource::Xdp, StampSource::Raw] {
        let config = Config {
            interface: "lo".to_owned(),
            limit: Limit { packets: Some(10), duration: None },
            ..config(stamp)
        };
        let (facts, ledger) = link.capture(config, |link, told| {
            let socket = link.0.run(|| UdpSocket::bind("127.0.0.1:0")).unwrap().unwrap();
            for _ in 0..10 {
                socket.send_to(b"to nobody", "127.0.0.1:9").unwrap();
                assert!(told.packet().0.ends_with(b"to nobody"));
            }
        });
        let notes = facts.notes.join("; ");
        assert!(notes.contains("lo's driver has no XDP"), "{notes}");
        assert_eq!(facts.taken.contains("network stack"), stamp == StampSource::Xdp);
        assert_eq!((ledger.delivered, ledger.stamped_late), (10, 0), "{ledger:?}");
    }
}

#[test]
fn a_second_capture_is_refused_and_after_the_first_nothing_is_left() {
    let Some(link) = Link::new(2, 1500) else { return };
    link.capture(config(StampSource::Xdp), |link, _| {
        let during = link.command("ip", "-d link show far");
        assert!(during.contains("prog/xdp") && during.contains("promiscuity 1"), "{during}");
        let clock = ClockService::start(Counter::select()).unwrap();
        let open = || Capture::open(config(StampSource::Xdp), &clock).err().unwrap();
        let error = link.0.run(open).unwrap().to_string();
        let expected = "runs on it already";
        assert!(error.contains(expected) && error.contains("ring (kernel, raw)"), "{error}");
    });
    // A child that another test forks has our descriptors until it has become another program.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let after = link.command("ip", "-d link show far");
        if !after.contains("prog/xdp") && after.contains("promiscuity 0") {
            break;
        }
        assert!(Instant::now() < deadline, "{after}");
    }
}
