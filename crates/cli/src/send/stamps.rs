//! What the transmit stamps came to.

use std::collections::BTreeMap;

use serde::Serialize;
use wirestamp_metrics::Distribution;
use wirestamp_traffic::{PerKind, Sent, StampKind, Unavailable};

use crate::output::{count, time};

/// The stamps of all packets, for each kind that could be had.
#[derive(Serialize)]
pub(super) struct Stamps {
    #[serde(flatten)]
    kinds: PerKind<Option<Kind>>,
    /// Why the others could not be had.
    unavailable: BTreeMap<&'static str, String>,
}

/// The stamps of one kind.
#[derive(Default, Serialize)]
struct Kind {
    count: u64,
    /// Packets sent without one: the kernel or its queue of stamps has lost it.
    missing: u64,
    since_intended_ns: Distribution,
    since_actual_ns: Distribution,
}

impl Stamps {
    /// Begins to count the kinds that are not `unavailable`.
    pub(super) fn new(unavailable: &Unavailable) -> Self {
        let kinds = PerKind::each(|kind| unavailable.of(kind).is_none().then(Kind::default));
        let reason = |kind: StampKind| Some((kind.name(), unavailable.of(kind).clone()?));
        Self { kinds, unavailable: StampKind::ALL.into_iter().filter_map(reason).collect() }
    }

    /// Counts the stamps of a packet.
    pub(super) fn record(&mut self, sent: &Sent) {
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

impl Kind {
    fn text(&self, name: &str) -> String {
        let mut text =
            format!("{name} stamps: {}, missing {}", count(self.count), count(self.missing));
        let since = [(&self.since_actual_ns, "hand-over"), (&self.since_intended_ns, "deadline")];
        for (distribution, what) in since {
            if let Some(found) = distribution.summary() {
                text += &format!(
                    "; after the {what}: median {}, 99 % within {}",
                    time(found.p50),
                    time(found.p99)
                );
            }
        }
        text + "\n"
    }
}
