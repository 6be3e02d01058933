//! Where in the kernel the programs of `bpf/layers.bpf.c` are attached, and which of these places the
//! running kernel has.

use std::fs::{self, File};
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::btf::{Btf, BtfType, types};
use libbpf_rs::libbpf_sys::BPF_F_AFTER;
use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{Link, Object, OpenObject, Program, ProgramMut};
use serde::Serialize;

use super::{Direction, Point};
use crate::bpf_program::attach_tcx;
use crate::interface::Interface;

/// What turns a cgroup program's context into a packet that we can recognise (Linux 6.3).
const CAST: &str = "bpf_cast_to_kern_ctx";

/// A program and the place it looks at.
pub(super) struct Hook {
    program: &'static str,
    place: Place,
    /// The point that is not seen without it.
    point: Option<Point>,
    /// What is not known without it, to end a sentence.
    otherwise: &'static str,
}

enum Place {
    /// A tracepoint, by its name below `/sys/kernel/tracing/events`.
    Tracepoint(&'static str),
    /// The kernel's question to a cgroup, whether its socket may have a packet or send one, by the name
    /// of such programs.
    Cgroup(&'static str),
    /// What an interface sends, behind all other programs (Linux 6.6), by the name of such programs.
    Tc(&'static str),
}

const UDP_UNREAD: &str = "UDP datagrams that were read count as open";

const fn at(
    program: &'static str,
    tracepoint: &'static str,
    point: Option<Point>,
    otherwise: &'static str,
) -> Hook {
    Hook { program, place: Place::Tracepoint(tracepoint), point, otherwise }
}

/// In the order in which packets come to them.
pub(super) const fn of(direction: Direction) -> &'static [Hook] {
    match direction {
        Direction::In => &IN,
        Direction::Out => &OUT,
    }
}

/// Only where a packet is about to be put into the queue of the interface that sends it.
pub(super) const DEPARTURE: &[Hook] = &[Hook {
    program: "departs",
    place: Place::Tc("tcx/egress"),
    point: Some(Point::Queue),
    otherwise: "no packet is seen",
}];

const IN: [Hook; 13] = {
    use Point::{Application, Driver, Socket, Stack};
    const LATE: &str = "packets that come that way are seen in the stack first";
    [
        at("gro_begins", "napi_gro_receive_entry", Some(Driver), LATE),
        at("gro_ends", "napi_gro_receive_exit", None, "packets that GRO joined count as open"),
        at("to_backlog", "netif_rx_entry", Some(Driver), LATE),
        at("to_stack", "netif_receive_skb_entry", Some(Driver), LATE),
        at("to_stack_in_list", "netif_receive_skb_list_entry", Some(Driver), LATE),
        at("stack", "netif_receive_skb", Some(Stack), "the stack is not seen"),
        Hook {
            program: "socket",
            place: Place::Cgroup("cgroup_skb/ingress"),
            point: Some(Socket),
            otherwise: "sockets are not seen, nor who reads UDP datagrams",
        },
        at("copied", "skb_copy_datagram_iovec", Some(Application), "no read is seen but of UDP"),
        at("udp_queued", "sk_data_ready", None, UDP_UNREAD), // Linux 6.2
        at("udp_read", "sock_recv_length", Some(Application), UDP_UNREAD), // Linux 6.3
        at("discarded", "kfree_skb", None, "dropped packets count as open"),
        at("consumed", "consume_skb", None, "what the kernel consumes counts as open"),
        at("sent_on", "net_dev_queue", None, "forwarded packets count as open"),
    ]
};

const OUT: [Hook; 6] = {
    use Point::{Driver, Queue, Sent, Socket};
    [
        Hook {
            program: "leaves_socket",
            place: Place::Cgroup("cgroup_skb/egress"),
            point: Some(Socket),
            otherwise: "sockets are not seen",
        },
        at("to_queue", "net_dev_queue", Some(Queue), "packets are seen at the driver first"),
        at("to_driver", "net_dev_start_xmit", Some(Driver), "the driver is not seen"),
        at("from_driver", "net_dev_xmit", Some(Sent), "packets count as sent when they are freed"),
        at("freed", "consume_skb", None, "packets that were cut into segments count as open"),
        at("not_sent", "kfree_skb", None, "dropped packets count as open"),
    ]
};

/// A point, and whether packets are seen there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// The point.
    pub point: Point,
    /// Where in the kernel, by the names of tracepoints and program types.
    pub places: Vec<&'static str>,
}

/// The programs that are attached, until this is dropped or the process ends in any way.
pub(super) struct Attached {
    links: Vec<Link>,
    /// The programs, by the kernel's numbers.
    programs: Vec<u32>,
    pub(super) seen: Vec<Seen>,
    /// What could not be had, and what is not known for it.
    pub(super) notes: Vec<String>,
}

impl Hook {
    /// What the kernel calls the place.
    fn name(&self) -> &'static str {
        match self.place {
            Place::Tracepoint(name) | Place::Cgroup(name) | Place::Tc(name) => name,
        }
    }

    /// Why the running kernel does not have it.
    fn missing(&self, kernel: &Btf<'_>) -> Option<String> {
        match self.place {
            Place::Tracepoint(name) => {
                // What include/trace/bpf_probe.h declares for each of them.
                let probe = kernel.type_by_name::<BtfType<'_>>(&format!("btf_trace_{name}"));
                probe.is_none().then(|| format!("this kernel has no tracepoint {name}"))
            }
            Place::Cgroup(_) | Place::Tc(_) => {
                let cast = kernel.type_by_name::<types::Func<'_>>(CAST);
                cast.is_none().then(|| format!("this kernel has no {CAST} (Linux 6.3)"))
            }
        }
    }

    fn attach(&self, program: &ProgramMut<'_>, interface: &Interface) -> Result<Link, String> {
        let attached = match self.place {
            Place::Tracepoint(_) => program.attach_trace(),
            Place::Cgroup(_) => {
                let root = cgroups()?;
                program.attach_cgroup(root.as_raw_fd())
            }
            Place::Tc(_) => attach_tcx(program, interface, BPF_F_AFTER),
        };
        attached
            .map_err(|error| format!("the kernel refuses a program at {}: {error}", self.name()))
    }
}

/// Has `object` load those programs that the `kernel` has a place for; says what is not known for want of
/// the others.
pub(super) fn choose(object: &mut OpenObject, hooks: &[Hook], kernel: &Btf<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    for mut program in object.progs_mut() {
        let hook = hooks.iter().find(|hook| program.name() == hook.program);
        let Some(hook) = hook else {
            program.set_autoload(false);
            continue;
        };
        if let Some(why) = hook.missing(kernel) {
            program.set_autoload(false);
            notes.push(format!("{why}: {}", hook.otherwise));
        }
    }
    notes
}

/// Attaches those that were loaded; `notes` are those of [`choose`].
///
/// Those where journeys go on and end come before those where they begin, and are detached after them,
/// so that no packet that is followed comes to a point unseen.
pub(super) fn attach(
    object: &Object,
    hooks: &[Hook],
    interface: &Interface,
    notes: Vec<String>,
) -> Attached {
    let mut attached =
        Attached { links: Vec::new(), programs: Vec::new(), seen: Vec::new(), notes };
    for hook in hooks.iter().rev() {
        let program = object.progs_mut().find(|program| program.name() == hook.program);
        let Some(program) = program.filter(|program| program.autoload()) else { continue };
        match hook.attach(&program, interface) {
            Ok(link) => {
                attached.programs.extend(Program::id_from_fd(program.as_fd()));
                attached.add(hook, link);
            }
            Err(why) => attached.notes.push(format!("{why}: {}", hook.otherwise)),
        }
    }
    attached
}

impl Attached {
    fn add(&mut self, hook: &Hook, link: Link) {
        self.links.push(link);
        let Some(point) = hook.point else { return };
        match self.seen.iter_mut().find(|seen| seen.point == point) {
            Some(seen) => seen.places.insert(0, hook.name()),
            None => self.seen.insert(0, Seen { point, places: vec![hook.name()] }),
        }
    }

    /// How often one of them did not run, because it was running on that core already.
    pub(super) fn skipped(&self) -> u64 {
        let all = ProgInfoIter::default();
        let ours = all.filter(|program| self.programs.contains(&program.id));
        ours.map(|program| program.recursion_misses).sum()
    }

    /// Detaches all of them.
    pub(super) fn detach(&mut self) {
        while self.links.pop().is_some() {}
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.detach();
    }
}

/// The root of the control groups (version 2), as far as this process sees them.
fn cgroups() -> Result<File, String> {
    let mounts = fs::read_to_string("/proc/thread-self/mountinfo").map_err(|e| e.to_string())?;
    let root = cgroup_root(&mounts).ok_or("control groups (version 2) are not mounted")?;
    File::open(root).map_err(|error| format!("cannot open {root}: {error}"))
}

/// Where they are mounted (proc_pid_mountinfo(5)): the fifth field of a line whose file system, after
/// the dash, is `cgroup2`.
fn cgroup_root(mounts: &str) -> Option<&str> {
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    line.split(' ').nth(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_are_found_among_other_mounts() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup rw shared:4 - tmpfs tmpfs rw\n\
            31 30 0:27 / /sys/fs/cgroup/cpu rw shared:5 - cgroup cgroup rw,cpu\n\
            32 30 0:28 / /sys/fs/cgroup/unified rw shared:6 - cgroup2 cgroup2 rw\n";
        assert_eq!(cgroup_root(mounts), Some("/sys/fs/cgroup/unified"));
        assert_eq!(cgroup_root("1 2 0:3 / / rw - ext4 /dev/cgroup2 rw"), None);
    }

    #[test]
    fn a_place_that_the_kernel_lacks_is_named_and_what_that_means() {
        let kernel = Btf::from_vmlinux().unwrap();
        let hook = at("x", "no_such_tracepoint", None, "");
        assert!(hook.missing(&kernel).unwrap().contains("no tracepoint no_such_tracepoint"));
        assert_eq!(at("x", "kfree_skb", None, "").missing(&kernel), None);
    }
}
