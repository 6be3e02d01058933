//! What an interface, its kernel and this process can do, asked of the kernel, and what follows for
//! each pair of method and stamp ([`verdict`]).

mod counter_function;
mod ethtool;
mod generic_netlink;
mod privileges;
mod verdict;
mod xdp;

use rustix::system::uname;
use wirestamp_clock::{Counter, Domain};

use crate::Error;
use crate::interface::Interface;
use crate::method::{Method, Pair, StampSource};
pub use counter_function::CounterFunction;
pub use ethtool::{CardStamps, Stamping};
#[cfg(fuzzing)]
pub(crate) use generic_netlink::read_any;
pub use privileges::{Privileges, how_to_get};
pub use verdict::{Obstacle, card_stamps, verdict};
pub(crate) use verdict::{STACK_WITHOUT_XDP, THREAD_WITHOUT_FUNCTION};
pub use xdp::Xdp;

/// The facts that decide which pairs an interface can do. Where the kernel gives no answer, a fact
/// is what rules nothing out: the capture itself then says what does not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Its hardware type, `ARPHRD_*` of linux/if_arp.h.
    pub kind: u16,
    /// Whether it is up.
    pub up: bool,
    /// The driver's name; none for an interface of the kernel's own, such as loopback.
    pub driver: Option<String>,
    /// How many receive queues it uses; none where the driver does not say.
    pub queues: Option<u32>,
    /// What can stamp its packets.
    pub stamping: Stamping,
    /// What its driver can do for XDP; none where the kernel cannot tell (before Linux 6.3).
    pub xdp: Option<Xdp>,
    /// The id of the XDP program that runs on it.
    pub xdp_program: Option<u32>,
    /// What reads the CPU's counter for an XDP or tc program.
    pub counter_function: Option<CounterFunction>,
    /// What this process may do.
    pub privileges: Privileges,
    /// Major and minor version of the kernel.
    pub kernel: (u32, u32),
}

impl Capabilities {
    /// Asks after `interface` of the calling thread's network namespace.
    ///
    /// # Errors
    /// There is no such interface, or the kernel says nothing of it at all.
    pub fn of(interface: &str) -> Result<Self, Error> {
        Ok(Self::ask(&Interface::find(interface)?))
    }

    fn ask(interface: &Interface) -> Self {
        Self {
            kind: interface.kind,
            up: interface.is_up().unwrap_or(true),
            driver: ethtool::driver(interface),
            queues: ethtool::queues(interface),
            stamping: ethtool::stamping(interface),
            xdp: xdp::features(interface),
            xdp_program: xdp::program(interface),
            counter_function: CounterFunction::find(),
            privileges: Privileges::of_this_thread(),
            kernel: running_kernel(),
        }
    }
}

/// The number of the network card's clock, `/dev/ptpN`, that has to be followed for the stamps of
/// `pair` on `interface` of the calling thread's network namespace
/// ([`wirestamp_clock::ClockService::start_with_nic`]). None if it takes no such clock, or if the
/// interface cannot do the pair: [`crate::Capture::open`] says why.
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

/// Whether this kernel can do `pair` on a link without a network card, such as a veth.
#[must_use]
pub fn works_without_card(pair: &Pair) -> bool {
    let by_program = matches!(pair.method, Method::XdpPass | Method::TcPass);
    match pair.stamp {
        StampSource::Hardware => false,
        StampSource::Raw if by_program && CounterFunction::find().is_none() => false,
        _ => pair.method != Method::TcPass || running_kernel() >= verdict::TCX_LINKS,
    }
}

/// What is to be said of `xdp-pass` on an interface where XDP slows fast TCP transfers down, if
/// this process can have `tc-pass`, with which nothing does.
pub(crate) fn xdp_slows_transfers(interface: &Interface) -> Option<String> {
    let of = Capabilities::ask(interface);
    (verdict::copies_for_xdp(&of) && verdict::tc_program(&of).is_ok()).then(|| {
        format!(
            "for XDP on {} the kernel copies what TCP sends, which slows fast transfers down; with \
             --method tc-pass it does not, but packets that it joins (GRO) are one there",
            interface.name
        )
    })
}

/// What reads the CPU's counter in a program of this process, whose raw stamps are of
/// `counter`.
///
/// # Errors
/// Why there is nothing.
pub(crate) fn counter_function(counter: Counter) -> Result<CounterFunction, Obstacle> {
    match counter {
        Counter::Hpet(_) | Counter::Os => Err(Obstacle::OtherCounter(counter.name())),
        _ => verdict::counter_function(CounterFunction::find(), Privileges::of_this_thread()),
    }
}

/// Refuses a pair that `interface` cannot do, if there is one that it can. Where there is none, and
/// where privileges are all that is missing, what is tried next fails and says why.
pub(crate) fn require(pair: &Pair, interface: &Interface) -> Result<(), Error> {
    let capabilities = Capabilities::ask(interface);
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

/// The first two numbers of a kernel's release, such as `6.1.0-13-amd64`.
fn version(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_program_reads_a_counter_that_is_not_the_cpus_own() {
        let refused = counter_function(Counter::Os).unwrap_err();
        assert_eq!(refused, Obstacle::OtherCounter("os"));
        let words = refused.to_string();
        assert!(
            words.contains("counter os here") && words.contains("`wirestamp clock`"),
            "{words}"
        );
    }

    #[test]
    fn a_release_begins_with_two_numbers() {
        assert_eq!(version("6.1.0-13-amd64"), (6, 1));
        assert_eq!(version("6.18-rc3"), (6, 18));
        assert_eq!(version("unknown"), (0, 0));
    }
}
