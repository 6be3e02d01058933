//! Capabilities of an interface, its kernel and this process, read from the kernel, and which pairs of method and
//! stamp they allow ([`verdict`]).

mod counter_function;
mod ethtool;
mod obstacle;
mod privileges;
mod verdict;
mod xdp;

use rustix::system::uname;
use wirestamp_clock::{Counter, Domain};

use crate::Error;
use crate::bpf_program::counter_events;
use crate::interface::Interface;
use crate::method::{Method, StampSource};
use crate::pairs::Pair;
pub use counter_function::CounterFunction;
pub use ethtool::{CardStamps, Stamping};
pub use obstacle::Obstacle;
pub use privileges::{Privileges, how_to_get};
pub(crate) use verdict::{STACK_WITHOUT_XDP, THREAD_WITHOUT_FUNCTION};
pub use verdict::{card_stamps, verdict};
pub use xdp::Xdp;

/// Properties that decide which pairs an interface supports. A property that the kernel does not report excludes no
/// pair: opening the capture then reports the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Hardware type, `ARPHRD_*` of linux/if_arp.h.
    pub kind: u16,
    /// Whether the interface is up.
    pub up: bool,
    /// Driver name; none for an interface of the kernel, such as loopback.
    pub driver: Option<String>,
    /// Receive queues in use; none if the driver does not report them.
    pub queues: Option<u32>,
    /// Timestamping support.
    pub stamping: Stamping,
    /// XDP support of its driver; none if the kernel does not report it (before Linux 6.3).
    pub xdp: Option<Xdp>,
    /// Id of the XDP program that runs on it.
    pub xdp_program: Option<u32>,
    /// The function that reads the CPU's counter for an XDP or tc program.
    pub counter_function: Option<CounterFunction>,
    /// Whether the kernel has a perf event of the CPU's counter, for a tracing program.
    pub counter_event: bool,
    /// Privileges of this process.
    pub privileges: Privileges,
    /// Major and minor version of the kernel.
    pub kernel: (u32, u32),
}

impl Capabilities {
    /// Reads the capabilities of `interface` in the calling thread's network namespace.
    ///
    /// # Errors
    /// There is no such interface, or the kernel reports nothing about it.
    pub fn of(interface: &str) -> Result<Self, Error> {
        Ok(Self::query(&Interface::find(interface)?))
    }

    fn query(interface: &Interface) -> Self {
        // libbpf would print an error about all interfaces at once.
        let one = Some(interface).filter(|it| !it.is_any());
        Self {
            kind: interface.kind,
            up: interface.is_up().unwrap_or(true),
            driver: ethtool::driver(interface),
            queues: ethtool::queues(interface),
            stamping: ethtool::stamping(interface),
            xdp: one.and_then(xdp::features),
            xdp_program: one.and_then(xdp::program),
            counter_function: CounterFunction::find(),
            counter_event: counter_events::exist(),
            privileges: Privileges::of_this_thread(),
            kernel: running_kernel(),
        }
    }
}

/// Number of the network card's clock, `/dev/ptpN`, that the clock service has to follow for `pair` on `interface`
/// of the calling thread's network namespace ([`wirestamp_clock::ClockService::start_with_nic`]). None if the pair
/// uses no such clock, or if the interface does not support it: [`crate::Capture::open`] reports why.
///
/// # Errors
/// As [`Capabilities::of`].
pub fn card_clock(pair: &Pair, interface: &str) -> Result<Option<u32>, Error> {
    if pair.domain != Domain::Nic {
        return Ok(None);
    }
    let of = Capabilities::of(interface)?;
    Ok(of.stamping.clock.filter(|_| verdict(pair, &of).is_ok()))
}

/// Whether this kernel supports `pair` on a link without a network card, such as a veth.
#[must_use]
pub fn works_without_card(pair: &Pair) -> bool {
    let has_links = running_kernel() >= verdict::TCX_LINKS;
    let reads_counter = || CounterFunction::find().is_some();
    match (pair.method, pair.stamp) {
        (_, StampSource::Hardware) => false,
        (Method::XdpPass, StampSource::Raw) => reads_counter(),
        (Method::TcPass, StampSource::Raw) => has_links && reads_counter(),
        (Method::TracePass, StampSource::Raw) => has_links && counter_events::exist(),
        (Method::TcPass | Method::TracePass, _) => has_links,
        _ => true,
    }
}

/// A note on `xdp-pass` where XDP slows fast TCP transfers down, if this process can use `tc-pass` instead.
pub(crate) fn xdp_slows_transfers(interface: &Interface) -> Option<String> {
    let of = Capabilities::query(interface);
    (verdict::copies_for_xdp(&of) && verdict::tc_program(&of).is_ok()).then(|| {
        format!(
            "for XDP on {} the kernel copies outgoing TCP packets, which slows fast transfers down; \
             --method tc-pass avoids this, but there merged packets (GRO) count as one",
            interface.name
        )
    })
}

/// The function that reads the CPU's counter in a program of this process, with raw stamps of `counter`.
///
/// # Errors
/// The obstacle, if no such function is available.
pub(crate) fn counter_function(counter: Counter) -> Result<CounterFunction, Obstacle> {
    match counter {
        Counter::Hpet(_) | Counter::Os => Err(Obstacle::OtherCounter(counter.name())),
        _ => verdict::counter_function(CounterFunction::find(), Privileges::of_this_thread()),
    }
}

/// Whether a tracing program can read the CPU's counter, with raw stamps of `counter`.
///
/// # Errors
/// The obstacle.
pub(crate) fn counter_event(counter: Counter) -> Result<(), Obstacle> {
    if !counter_events::count(counter) {
        return Err(Obstacle::OtherCounter(counter.name()));
    }
    if counter_events::exist() { Ok(()) } else { Err(Obstacle::NoCounterEvent) }
}

/// Refuses a pair that `interface` does not support, if it supports another. Otherwise, and where only privileges
/// are missing, opening the capture reports the error.
pub(crate) fn require(pair: &Pair, interface: &Interface) -> Result<(), Error> {
    let capabilities = Capabilities::query(interface);
    let reason = match verdict(pair, &capabilities) {
        Ok(_) | Err(Obstacle::Privileges(_)) => return Ok(()),
        Err(reason) => reason,
    };
    let alternatives = verdict::alternatives(&capabilities);
    if alternatives.is_empty() {
        return Ok(());
    }
    Err(Error::Impossible {
        interface: interface.name.clone(),
        method: pair.method,
        stamp: pair.stamp,
        reason,
        alternatives,
    })
}

/// Major and minor version of the kernel.
fn running_kernel() -> (u32, u32) {
    version(&uname().release().to_string_lossy())
}

/// The first two numbers of a kernel release such as `6.1.0-13-amd64`.
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_read_only_the_cpus_counter() {
        let refused = counter_function(Counter::Os).unwrap_err();
        assert_eq!(refused, Obstacle::OtherCounter("os"));
        let words = refused.to_string();
        assert!(words.contains("counter os,") && words.contains("`wirestamp clock`"), "{words}");
    }

    #[test]
    fn release_starts_with_two_numbers() {
        assert_eq!(version("6.1.0-13-amd64"), (6, 1));
        assert_eq!(version("6.18-rc3"), (6, 18));
        assert_eq!(version("unknown"), (0, 0));
    }
}
