//! Locations of settings.

use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

/// Location of a setting. Its text is the path, or the command that reads it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A file below `/sys`, in the network namespace of the interface.
    Sys(String),
    /// A file below `/proc`.
    Proc(String),
    /// A setting of the interface's driver.
    Ethtool(Knob),
    /// All NAPI threads of the interface: they exist only once threaded NAPI is enabled.
    Threads(Attribute),
    /// One of these threads.
    Thread {
        /// Thread id.
        pid: i32,
        /// Its name, to detect a reused id.
        name: String,
        /// Attribute of the thread.
        attribute: Attribute,
    },
    /// `/dev/cpu_dma_latency`, effective while it is open.
    CpuLatency,
}

/// A driver setting, accessed by ioctl (linux/ethtool.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Knob {
    /// Whether the kernel merges packets of a flow: `on` or `off`.
    Gro,
    /// Whether the card merges packets of a flow: `on` or `off`.
    Lro,
    /// Whether the driver adapts the interrupt delay to the load: `on` or `off`.
    AdaptiveRx,
    /// Microseconds by which the card delays the interrupt of a packet.
    RxUsecs,
}

/// An attribute of a kernel thread.
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

    /// Whether it belongs to the machine rather than the interface, and exists without the interface.
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
