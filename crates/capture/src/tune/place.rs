//! Where a setting lives.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// Where a setting lives. Its text is the path, or what to ask for where there is none.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A file below `/sys`, as the network namespace of the interface sees it.
    Sys(String),
    /// A file below `/proc`.
    Proc(String),
    /// A question to the interface's driver.
    Ethtool(Knob),
    /// All NAPI threads of the interface: they exist only once threaded NAPI is switched on.
    Threads(Attribute),
    /// One of these threads.
    Thread {
        /// The thread's number.
        pid: i32,
        /// Its name, by which it is known not to be another one with a number used again.
        name: String,
        /// What of it.
        attribute: Attribute,
    },
    /// `/dev/cpu_dma_latency`, which holds for as long as it is kept open.
    CpuLatency,
}

/// What a driver is asked by ioctl (linux/ethtool.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Knob {
    /// Whether the kernel joins packets of a flow: `on` or `off`.
    Gro,
    /// Whether the card does: `on` or `off`.
    Lro,
    /// Whether the driver adapts the next one to the load: `on` or `off`.
    AdaptiveRx,
    /// Microseconds for which the card holds back the interrupt of a packet.
    RxUsecs,
}

/// What a kernel thread can be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribute {
    /// The cores it may run on, such as `0,2`.
    Cores,
    /// Its scheduling policy and priority, such as `SCHED_FIFO 41`.
    Scheduling,
}

impl Place {
    /// The file `name` of `interface`'s folder in sysfs.
    pub(super) fn of_interface(interface: &str, name: &str) -> Self {
        Self::Sys(format!("class/net/{interface}/{name}"))
    }

    /// The frequency governor of `core`.
    pub(super) fn governor(core: usize) -> Self {
        Self::Sys(format!("devices/system/cpu/cpu{core}/cpufreq/scaling_governor"))
    }

    /// The cores that may serve the interrupt `vector`.
    pub(super) fn vector(vector: u32) -> Self {
        Self::Proc(format!("irq/{vector}/smp_affinity_list"))
    }

    /// Whether it is the machine's rather than the interface's, and stays when that goes.
    pub(super) fn outlives_interface(&self) -> bool {
        matches!(self, Self::Sys(path) if path.starts_with("devices/system/cpu/"))
    }
}

/// Serialises a place as its text.
pub(super) fn as_text<S: Serializer>(place: &Place, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(place)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sys(path) => write!(f, "/sys/{path}"),
            Self::Proc(path) => write!(f, "/proc/{path}"),
            Self::Ethtool(Knob::Gro) => f.write_str("ethtool -K gro"),
            Self::Ethtool(Knob::Lro) => f.write_str("ethtool -K lro"),
            Self::Ethtool(Knob::AdaptiveRx) => f.write_str("ethtool -C adaptive-rx"),
            Self::Ethtool(Knob::RxUsecs) => f.write_str("ethtool -C rx-usecs"),
            Self::Threads(Attribute::Cores) => f.write_str("taskset of the napi/ threads"),
            Self::Threads(Attribute::Scheduling) => f.write_str("chrt of the napi/ threads"),
            Self::Thread { pid, name, attribute: Attribute::Cores } => {
                write!(f, "taskset of {name}, pid {pid}")
            }
            Self::Thread { pid, name, attribute: Attribute::Scheduling } => {
                write!(f, "chrt of {name}, pid {pid}")
            }
            Self::CpuLatency => f.write_str("/dev/cpu_dma_latency"),
        }
    }
}
