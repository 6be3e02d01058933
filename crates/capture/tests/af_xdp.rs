//! AF_XDP: method `xdp` on interfaces with several queues or without XDP, and sending.

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
    /// A link with `queues` queues for packets of up to `mtu` bytes.
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

    /// Runs a program to its end and returns its output.
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

    /// Captures at the far end while `traffic` runs, which receives every packet's bytes.
    fn capture(&self, config: Config, traffic: impl FnOnce(&Self, &Received)) -> (Facts, Ledger) {
        let clock = ClockService::start(Counter::select()).unwrap();
        let stop = Stop::new().unwrap();
        let capture = self.0.run(|| Capture::open(config, &clock)).unwrap().unwrap();
        let facts = capture.facts().clone();
        let (sender, received) = mpsc::channel();
        thread::scope(|scope| {
            let capturing = scope.spawn(|| capture.run(&clock, &stop, &mut ChannelSink(sender)));
            let ending = StopOnDrop(&stop);
            traffic(self, &Received(received));
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

/// Sends each packet's bytes and length to a channel.
struct ChannelSink(Sender<(Vec<u8>, u32)>);

impl Sink for ChannelSink {
    fn packet(&mut self, packet: &CapturedPacket<'_>) -> Result<(), Error> {
        let _ = self.0.send((packet.bytes.to_vec(), packet.length));
        Ok(())
    }
}

/// Ends a capture, also when its traffic panics, so that the test fails instead of waiting.
struct StopOnDrop<'a>(&'a Stop);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.request();
    }
}

/// Receives the captured packets.
struct Received(mpsc::Receiver<(Vec<u8>, u32)>);

impl Received {
    /// The next packet, with a timeout for lost ones.
    fn packet(&self) -> (Vec<u8>, u32) {
        self.0.recv_timeout(Duration::from_secs(30)).expect("a packet that was sent")
    }
}

/// Sends `count` broadcast frames of an experimental type with `number` as content.
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
        let (facts, ledger) = link.capture(config, |link, received| {
            // One at a time and in turn, so that each queue has to wake the thread alone.
            let mut queues = [0, 1, 2, 3].map(|queue| link.transmitter(queue));
            for number in 0..40 {
                send(&mut queues[usize::from(number % 4)], number, 1);
                let (bytes, length) = received.packet();
                assert_eq!((bytes.len(), length, bytes[14]), (60, 60, number));
            }
            for queue in &mut queues {
                send(queue, 100, 500);
            }
        });
        assert_eq!((ledger.seen, ledger.delivered), (2040, 2040), "{ledger:?}");
        assert_eq!(ledger.stamped_late, 0, "{stamp}: the driver keeps metadata");
        // Notes report copying, and who stamps if the program cannot; nothing else was refused.
        let by_thread = stamp == StampSource::Raw && CounterFunction::find().is_none();
        let expected = ["no zero-copy mode", "stamps are taken by the acquisition thread"];
        let expected = &expected[..1 + usize::from(by_thread)];
        assert_eq!(facts.notes.len(), expected.len(), "{:?}", facts.notes);
        let mut notes = facts.notes.iter().zip(expected);
        assert!(notes.all(|(note, expected)| note.contains(expected)), "{:?}", facts.notes);
    }
}

/// A queue of a tap device: bytes written to it arrive there. Without `O_NONBLOCK` they would arrive as a packet of
/// the first queue (`drivers/net/tun.c`, `tun_can_build_skb`).
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
fn packets_of_a_later_queue_are_counted_as_lost() {
    let Some(link) = Link::new(1, 1500) else { return };
    let add_queue = || link.0.run(|| tap_queue("tap")).unwrap();
    let mut queues = vec![add_queue()];
    link.command("ip", "link set tap arp off multicast off addrgenmode none up");
    let config = Config { interface: "tap".to_owned(), ..config(StampSource::Xdp) };
    let (_, ledger) = link.capture(config, |_, received| {
        let frame = [&[0xff; 12][..], &[0x88, 0xb5], &[0; 46]].concat();
        queues.push(add_queue());
        for (queue, count) in queues.iter_mut().zip([3, 4]) {
            for _ in 0..count {
                queue.write_all(&frame).unwrap();
            }
        }
        (0..3).for_each(|_| drop(received.packet()));
    });
    assert_eq!((ledger.seen, ledger.delivered, ledger.kernel_dropped), (7, 3, 4), "{ledger:?}");
    assert_eq!((ledger.fill_ring_empty, ledger.stamped_late), (0, 0), "{ledger:?}");
}

#[test]
fn multi_chunk_packet_keeps_first_chunk_and_frees_all() {
    let Some(link) = Link::new(1, 9000) else { return };
    let mut wire =
        link.0.run(|| pcap::Capture::from_device("near").unwrap().open().unwrap()).unwrap();
    // 16 chunks: memory for five such packets.
    let config = Config { ring_bytes: 64 << 10, ..config(StampSource::Xdp) };
    let (facts, ledger) = link.capture(config, |_, received| {
        for number in 0..40 {
            let frame = [&[0xff; 12][..], &[0x88, 0xb5], &[number; 8986]].concat();
            wire.sendpacket(frame).unwrap();
            let (bytes, length) = received.packet();
            assert_eq!((bytes.len(), length), (3840, 9000));
            assert!(bytes[14..].iter().all(|byte| *byte == number), "{number}");
        }
    });
    assert_eq!(facts.snaplen, 3840);
    assert_eq!((ledger.delivered, ledger.lost(), ledger.stamped_late), (40, 0, 0), "{ledger:?}");
}

#[test]
fn interface_without_xdp_is_captured_in_the_stack() {
    let Some(link) = Link::new(1, 1500) else { return };
    link.command("ip", "link set lo up");
    for stamp in [StampSource::Xdp, StampSource::Raw] {
        let config = Config {
            interface: "lo".to_owned(),
            limit: Limit { packets: Some(10), duration: None },
            ..config(stamp)
        };
        let (facts, ledger) = link.capture(config, |link, received| {
            let socket = link.0.run(|| UdpSocket::bind("127.0.0.1:0")).unwrap().unwrap();
            for _ in 0..10 {
                socket.send_to(b"no receiver", "127.0.0.1:9").unwrap();
                assert!(received.packet().0.ends_with(b"no receiver"));
            }
        });
        let notes = facts.notes.join("; ");
        assert!(notes.contains("lo's driver has no XDP"), "{notes}");
        assert_eq!(facts.taken.contains("network stack"), stamp == StampSource::Xdp);
        assert_eq!((ledger.delivered, ledger.stamped_late), (10, 0), "{ledger:?}");
    }
}

#[test]
fn second_capture_is_refused_and_first_cleans_up() {
    let Some(link) = Link::new(2, 1500) else { return };
    link.capture(config(StampSource::Xdp), |link, _| {
        let during = link.command("ip", "-d link show far");
        assert!(during.contains("prog/xdp") && during.contains("promiscuity 1"), "{during}");
        let clock = ClockService::start(Counter::select()).unwrap();
        let open = || Capture::open(config(StampSource::Xdp), &clock).err().unwrap();
        let error = link.0.run(open).unwrap().to_string();
        let expected = "is attached to it";
        assert!(error.contains(expected) && error.contains("ring (kernel, raw)"), "{error}");
    });
    // A child process of another test has this process's descriptors until it calls exec.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let after = link.command("ip", "-d link show far");
        if !after.contains("prog/xdp") && after.contains("promiscuity 0") {
            break;
        }
        assert!(Instant::now() < deadline, "{after}");
    }
}
