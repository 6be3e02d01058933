//! A silent link, numbered frames on it, and a sink that keeps events.

use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::time::{ClockId, clock_gettime};
use wirestamp_capture::events::{
    Context, Error, EventLedger, InterfaceFilter, Reading, Recorder, RecorderConfig, TraceClock,
    TraceEvent,
};
use wirestamp_clock::Counter;
use wirestamp_lab::Netns;
use wirestamp_sys::scheduling::{allowed_cores, pin_to};

/// Bytes of an Ethernet header, which the driver has removed when the events occur.
pub(crate) const HEADER: u64 = 14;

/// A link from `near` to `far` without other traffic.
pub(crate) struct Link {
    namespace: Netns,
    /// Name of the far end, which no other link has: tracepoints report all namespaces.
    pub(crate) far: String,
}

/// Makes a link; none without root.
pub(crate) fn link() -> Option<Link> {
    static LINKS: AtomicU32 = AtomicU32::new(0);
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return None;
    }
    let namespace = Netns::new().unwrap();
    let far = format!("e{}-{}", std::process::id(), LINKS.fetch_add(1, Ordering::Relaxed));
    let silent = "arp off multicast off addrgenmode none";
    for arguments in [
        &format!("link add near type veth peer name {far}"),
        &format!("link set near {silent}"),
        &format!("link set {far} {silent}"),
        "link set near up",
        &format!("link set {far} up"),
    ] {
        let status = namespace.command("ip").args(arguments.split(' ')).status().unwrap();
        assert!(status.success(), "ip {arguments}");
    }
    Some(Link { namespace, far })
}

/// A recorder of these events of the far end.
pub(crate) fn config(
    link: &Link,
    clock: TraceClock,
    reading: Reading,
    events: &[&str],
) -> RecorderConfig {
    RecorderConfig {
        events: Some(events.iter().map(|&name| name.to_owned()).collect()),
        // The index of no interface: only names select.
        interface: Some(InterfaceFilter { name: link.far.clone(), index: i32::MAX }),
        reading,
        ..RecorderConfig::new(clock)
    }
}

/// The present, in the unit of the trace clock.
pub(crate) fn now(clock: TraceClock) -> u64 {
    match clock {
        TraceClock::X86Tsc => Counter::select().read_ordered(),
        TraceClock::Mono => nanoseconds(ClockId::Monotonic),
        TraceClock::Boot => nanoseconds(ClockId::Boottime),
        TraceClock::Local => panic!("user space cannot read this clock"),
    }
}

fn nanoseconds(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).unwrap()
}

/// Length of frame `number`: different for successive frames.
pub(crate) fn length(number: u64) -> u64 {
    60 + number * 7 % 1_000
}

/// Sends `frames` frames of [`length`] from `near`, on one CPU; calls `around` before and after each.
pub(crate) fn send(link: &Link, frames: u64, mut around: impl FnMut() + Send) {
    let send = || {
        pin_to(allowed_cores().unwrap()[0]).unwrap();
        let mut wire = pcap::Capture::from_device("near").unwrap().open().unwrap();
        for number in 0..frames {
            let payload = vec![0; usize::try_from(length(number) - HEADER).unwrap()];
            let frame = [&[0xff; 12][..], &[0x88, 0xb5], &payload].concat();
            around();
            wire.sendpacket(frame).unwrap();
            around();
        }
    };
    link.namespace.run(send).unwrap();
}

/// A kept event.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) raw: u64,
    pub(crate) name: String,
    pub(crate) context: Context,
    pub(crate) interface: String,
    pub(crate) skb: u64,
    pub(crate) length: u64,
    /// Events lost on its CPU before it; none if unknown.
    pub(crate) lost_before: Option<u64>,
}

/// Ends the recorder; its events in the order of their stamps.
pub(crate) fn finish(recorder: Recorder) -> (Vec<Kept>, EventLedger) {
    let mut kept = Vec::new();
    let mut keep = |event: &TraceEvent<'_>| -> Result<(), Error> {
        kept.push(Kept {
            raw: event.raw,
            name: event.name().to_owned(),
            context: event.context().unwrap(),
            interface: event.interface().unwrap().to_string(),
            skb: event.number("skbaddr").unwrap(),
            length: event.number("len").unwrap(),
            lost_before: event.lost_before.number(),
        });
        Ok(())
    };
    let (ledger, outcome) = recorder.finish(&mut keep);
    outcome.unwrap();
    assert!(ledger.balances(), "{ledger:?}");
    kept.sort_by_key(|event| event.raw);
    (kept, ledger)
}

/// Passes the folder of all trace instances to `work`.
pub(crate) fn with_instances<T>(work: impl FnOnce(&Path) -> T) -> T {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).unwrap();
    fsconfig_create(&context).unwrap();
    let flags = FsMountFlags::FSMOUNT_CLOEXEC;
    let mount = fsmount(&context, flags, MountAttrFlags::empty()).unwrap();
    work(Path::new(&format!("/proc/self/fd/{}/instances", mount.as_raw_fd())))
}
