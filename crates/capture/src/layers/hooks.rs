//! Kernel hooks of the programs in `bpf/layers.bpf.c`, and which of them the running kernel has.

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

/// Converts a cgroup program's context to a packet that can be identified (Linux 6.3).
const CAST: &str = "bpf_cast_to_kern_ctx";

/// A program and its hook.
pub(super) struct Hook {
    program: &'static str,
    hook_type: HookType,
    /// The point that is not observed if the hook is missing.
    point: Option<Point>,
    /// The limitation if the hook is missing, as the end of a sentence.
    limitation: &'static str,
}

enum HookType {
    /// A tracepoint, by its name below `/sys/kernel/tracing/events`.
    Tracepoint(&'static str),
    /// A cgroup hook, where the kernel checks whether a socket may receive or send a packet, by the name of its
    /// program type.
    Cgroup(&'static str),
    /// The egress of an interface, after all other programs (Linux 6.6), by the name of its program type.
    Tc(&'static str),
}

const UDP_UNREAD: &str = "UDP datagrams that were read count as open";

const fn at(
    program: &'static str,
    tracepoint: &'static str,
    point: Option<Point>,
    limitation: &'static str,
) -> Hook {
    Hook { program, hook_type: HookType::Tracepoint(tracepoint), point, limitation }
}

/// Hooks of a direction, in the order in which packets reach them.
pub(super) const fn of(direction: Direction) -> &'static [Hook] {
    match direction {
        Direction::In => &IN,
        Direction::Out => &OUT,
    }
}

/// Only the hook before the queue of the sending interface.
pub(super) const DEPARTURE: &[Hook] = &[Hook {
    program: "departs",
    hook_type: HookType::Tc("tcx/egress"),
    point: Some(Point::Queue),
    limitation: "no packet is observed",
}];

const IN: [Hook; 13] = {
    use Point::{Application, Driver, Socket, Stack};
    const LATE: &str = "packets on that path are first observed in the stack";
    [
        at("gro_begins", "napi_gro_receive_entry", Some(Driver), LATE),
        at("gro_ends", "napi_gro_receive_exit", None, "packets that GRO merged count as open"),
        at("to_backlog", "netif_rx_entry", Some(Driver), LATE),
        at("to_stack", "netif_receive_skb_entry", Some(Driver), LATE),
        at("to_stack_in_list", "netif_receive_skb_list_entry", Some(Driver), LATE),
        at("stack", "netif_receive_skb", Some(Stack), "the stack is not observed"),
        Hook {
            program: "socket",
            hook_type: HookType::Cgroup("cgroup_skb/ingress"),
            point: Some(Socket),
            limitation: "sockets and reads of UDP datagrams are not observed",
        },
        at(
            "copied",
            "skb_copy_datagram_iovec",
            Some(Application),
            "only reads of UDP are observed",
        ),
        at("udp_queued", "sk_data_ready", None, UDP_UNREAD), // Linux 6.2
        at("udp_read", "sock_recv_length", Some(Application), UDP_UNREAD), // Linux 6.3
        at("discarded", "kfree_skb", None, "dropped packets count as open"),
        at("consumed", "consume_skb", None, "packets that the kernel consumes count as open"),
        at("sent_on", "net_dev_queue", None, "forwarded packets count as open"),
    ]
};

const OUT: [Hook; 6] = {
    use Point::{Driver, Queue, Sent, Socket};
    [
        Hook {
            program: "leaves_socket",
            hook_type: HookType::Cgroup("cgroup_skb/egress"),
            point: Some(Socket),
            limitation: "sockets are not observed",
        },
        at("to_queue", "net_dev_queue", Some(Queue), "packets are first observed at the driver"),
        at("to_driver", "net_dev_start_xmit", Some(Driver), "the driver is not observed"),
        at("from_driver", "net_dev_xmit", Some(Sent), "packets count as sent when they are freed"),
        at("freed", "consume_skb", None, "packets that were segmented count as open"),
        at("not_sent", "kfree_skb", None, "dropped packets count as open"),
    ]
};

/// A point at which packets are observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ObservedPoint {
    /// The point.
    pub point: Point,
    /// Its hooks, by the names of tracepoints and program types.
    pub places: Vec<&'static str>,
}

/// The attached programs; they are detached on drop, or when the process ends.
pub(super) struct Attached {
    links: Vec<Link>,
    /// The programs, by the kernel's ids.
    programs: Vec<u32>,
    pub(super) observed: Vec<ObservedPoint>,
    /// Hooks that are not available, with their limitations.
    pub(super) notes: Vec<String>,
}

impl Hook {
    /// The kernel's name of the hook.
    fn name(&self) -> &'static str {
        match self.hook_type {
            HookType::Tracepoint(name) | HookType::Cgroup(name) | HookType::Tc(name) => name,
        }
    }

    /// Why the running kernel does not have the hook; `None` if it has.
    fn missing(&self, kernel: &Btf<'_>) -> Option<String> {
        match self.hook_type {
            HookType::Tracepoint(name) => {
                // Declared by include/trace/bpf_probe.h for each tracepoint.
                let probe = kernel.type_by_name::<BtfType<'_>>(&format!("btf_trace_{name}"));
                probe.is_none().then(|| format!("this kernel has no tracepoint {name}"))
            }
            HookType::Cgroup(_) | HookType::Tc(_) => {
                let cast = kernel.type_by_name::<types::Func<'_>>(CAST);
                cast.is_none().then(|| format!("this kernel has no {CAST} (Linux 6.3)"))
            }
        }
    }

    fn attach(&self, program: &ProgramMut<'_>, interface: &Interface) -> Result<Link, String> {
        let attached = match self.hook_type {
            HookType::Tracepoint(_) => program.attach_trace(),
            HookType::Cgroup(_) => {
                let root = cgroups()?;
                program.attach_cgroup(root.as_raw_fd())
            }
            HookType::Tc(_) => attach_tcx(program, interface, BPF_F_AFTER),
        };
        attached
            .map_err(|error| format!("the kernel refuses a program at {}: {error}", self.name()))
    }
}

/// Selects the programs of `object` whose hooks the `kernel` has. Returns a note on the limitation of each missing
/// hook.
pub(super) fn choose(object: &mut OpenObject, hooks: &[Hook], kernel: &Btf<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    for mut program in object.progs_mut() {
        let hook = hooks.iter().find(|hook| program.name() == hook.program);
        let Some(hook) = hook else {
            program.set_autoload(false);
            continue;
        };
        if let Some(reason) = hook.missing(kernel) {
            program.set_autoload(false);
            notes.push(format!("{reason}: {}", hook.limitation));
        }
    }
    notes
}

/// Attaches the loaded programs; `notes` are those of [`choose`].
///
/// Programs at the end of the path are attached first and detached last, so that no followed packet passes a point
/// unobserved.
pub(super) fn attach(
    object: &Object,
    hooks: &[Hook],
    interface: &Interface,
    notes: Vec<String>,
) -> Attached {
    let mut attached =
        Attached { links: Vec::new(), programs: Vec::new(), observed: Vec::new(), notes };
    for hook in hooks.iter().rev() {
        let program = object.progs_mut().find(|program| program.name() == hook.program);
        let Some(program) = program.filter(|program| program.autoload()) else { continue };
        match hook.attach(&program, interface) {
            Ok(link) => {
                attached.programs.extend(Program::id_from_fd(program.as_fd()));
                attached.add(hook, link);
            }
            Err(reason) => attached.notes.push(format!("{reason}: {}", hook.limitation)),
        }
    }
    attached
}

impl Attached {
    fn add(&mut self, hook: &Hook, link: Link) {
        self.links.push(link);
        let Some(point) = hook.point else { return };
        match self.observed.iter_mut().find(|observed| observed.point == point) {
            Some(observed) => observed.places.insert(0, hook.name()),
            None => self.observed.insert(0, ObservedPoint { point, places: vec![hook.name()] }),
        }
    }

    /// How often a program did not run, because it was already running on that core.
    pub(super) fn skipped(&self) -> u64 {
        let all = ProgInfoIter::default();
        let ours = all.filter(|program| self.programs.contains(&program.id));
        ours.map(|program| program.recursion_misses).sum()
    }

    /// Detaches all programs.
    pub(super) fn detach(&mut self) {
        while self.links.pop().is_some() {}
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.detach();
    }
}

/// The root of the control groups (version 2) of this process.
fn cgroups() -> Result<File, String> {
    let mounts = fs::read_to_string("/proc/thread-self/mountinfo").map_err(|e| e.to_string())?;
    let root = cgroup_root(&mounts).ok_or("control groups (version 2) are not mounted")?;
    File::open(root).map_err(|error| format!("cannot open {root}: {error}"))
}

/// Their mount point (proc_pid_mountinfo(5)): the fifth field of a line whose file system, after the dash, is
/// `cgroup2`.
fn cgroup_root(mounts: &str) -> Option<&str> {
    let line = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    line.split(' ').nth(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_are_found_among_other_mounts() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup rw shared:4 - tmpfs tmpfs rw\n\
            31 30 0:27 / /sys/fs/cgroup/cpu rw shared:5 - cgroup cgroup rw,cpu\n\
            32 30 0:28 / /sys/fs/cgroup/unified rw shared:6 - cgroup2 cgroup2 rw\n";
        assert_eq!(cgroup_root(mounts), Some("/sys/fs/cgroup/unified"));
        assert_eq!(cgroup_root("1 2 0:3 / / rw - ext4 /dev/cgroup2 rw"), None);
    }

    #[test]
    fn missing_tracepoint_is_reported() {
        let kernel = Btf::from_vmlinux().unwrap();
        let hook = at("x", "no_such_tracepoint", None, "");
        assert!(hook.missing(&kernel).unwrap().contains("no tracepoint no_such_tracepoint"));
        assert_eq!(at("x", "kfree_skb", None, "").missing(&kernel), None);
    }
}
