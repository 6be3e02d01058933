//! Where the kernel stamps packets: a setting of the machine, restored afterwards.

use std::fs;

use anyhow::Context;
use serde::Serialize;
use strum::IntoStaticStr;
use wirestamp_capture::softirq_cost::PacketStamping;

/// 1 if the kernel stamps packets before the queue of a core, 0 if after it (Documentation/admin-guide/sysctl/net.rst).
const PREQUEUE: &str = "/proc/sys/net/core/netdev_tstamp_prequeue";

/// Whether and where the kernel stamps packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(super) enum StampPlace {
    /// No stamp.
    None,
    /// On the core at which a packet arrives, before it enters the queue of the core that processes it.
    BeforeQueue,
    /// On the core that processes it, after the queue.
    AfterQueue,
}

impl StampPlace {
    /// All of them.
    pub(super) const ALL: [Self; 3] = [Self::None, Self::BeforeQueue, Self::AfterQueue];

    /// Name in results.
    pub(super) fn name(self) -> &'static str {
        self.into()
    }

    /// Makes the kernel stamp there until the result is dropped. Some milliseconds pass until it is in force.
    pub(super) fn set(self) -> anyhow::Result<InForce> {
        let before = fs::read_to_string(PREQUEUE).with_context(|| {
            format!("cannot read {PREQUEUE}; only the first network namespace has it")
        })?;
        let prequeue = if self == Self::AfterQueue { "0" } else { "1" };
        fs::write(PREQUEUE, prequeue).with_context(|| format!("cannot write {PREQUEUE}"))?;
        // From here on the setting is restored, whatever happens.
        let mut in_force = InForce { before, _stamping: None };
        if self != Self::None {
            in_force._stamping = Some(PacketStamping::by_kernel()?);
        }
        Ok(in_force)
    }
}

/// A setting in force.
pub(super) struct InForce {
    /// Value of the setting before.
    before: String,
    _stamping: Option<PacketStamping>,
}

impl Drop for InForce {
    fn drop(&mut self) {
        // It could be written before.
        let _ = fs::write(PREQUEUE, self.before.trim());
    }
}
