//! Statistics of transmit stamps.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_metrics::Distribution;
use wirestamp_traffic::{PerStampKind, SentPacket, StampKind, UnavailableStamps};

use crate::output::{count, time};

/// Statistics for each available kind of stamp.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TransmitStamps {
    #[serde(flatten)]
    kinds: PerStampKind<Option<KindStatistics>>,
    /// Why a kind is not available, by its name.
    unavailable: BTreeMap<&'static str, String>,
}

/// Statistics of one kind of stamp.
#[derive(Default, Serialize, JsonSchema)]
struct KindStatistics {
    /// Stamps.
    count: u64,
    /// Packets without a stamp: lost by the kernel or its stamp queue.
    missing: u64,
    /// Stamp minus the intended time of sending, in nanoseconds.
    since_intended_ns: Distribution,
    /// Stamp minus the time before the send call, in nanoseconds.
    since_actual_ns: Distribution,
}

impl TransmitStamps {
    /// Empty statistics of the kinds that are not `unavailable`.
    pub(super) fn new(unavailable: &UnavailableStamps) -> Self {
        let kinds =
            PerStampKind::each(|kind| unavailable.of(kind).is_none().then(KindStatistics::default));
        let reason = |kind: StampKind| Some((kind.name(), unavailable.of(kind).clone()?));
        Self { kinds, unavailable: StampKind::ALL.into_iter().filter_map(reason).collect() }
    }

    /// Records the stamps of a packet.
    pub(super) fn record(&mut self, sent: &SentPacket) {
        for kind in StampKind::ALL {
            let Some(found) = self.kinds.of_mut(kind) else { continue };
            match *sent.stamps.of(kind) {
                Some(stamp) => {
                    found.count += 1;
                    found.since_intended_ns.record(stamp - sent.intended);
                    found.since_actual_ns.record(stamp - sent.actual);
                }
                None => found.missing += 1,
            }
        }
    }

    /// A line for each kind.
    pub(super) fn text(&self) -> String {
        let line = |kind: StampKind| match self.kinds.of(kind) {
            Some(found) => found.text(kind.name()),
            None => {
                let reason = self.unavailable.get(kind.name()).map_or("", String::as_str);
                format!("no {} stamps: {reason}\n", kind.name())
            }
        };
        StampKind::ALL.map(line).concat()
    }
}

impl KindStatistics {
    fn text(&self, name: &str) -> String {
        let mut text =
            format!("{name} stamps: {}, missing {}", count(self.count), count(self.missing));
        let since =
            [(&self.since_actual_ns, "send call"), (&self.since_intended_ns, "intended time")];
        for (distribution, what) in since {
            if let Some(found) = distribution.summary() {
                text += &format!(
                    "; after the {what}: median {}, p99 {}",
                    time(found.p50),
                    time(found.p99)
                );
            }
        }
        text + "\n"
    }
}
