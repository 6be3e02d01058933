//! Packets that A captured twice, as a capture at `any` of a router or at a mirror port does.

use wirestamp_metrics::{Counts, FlowTable};

/// The number of packets that A captured twice, if it is about half of its packets, and B has about half as many.
pub(super) fn packets_twice(flows: &FlowTable) -> Option<u64> {
    let total = flows.total();
    let counts = total.counts();
    has_half_twice(counts).then_some(counts.identical)
}

/// Whether about half of the packets of A are identical to an earlier one, and about half were observed at B.
pub(super) const fn has_half_twice(counts: &Counts) -> bool {
    let Counts { sent, matched, identical, .. } = *counts;
    counts.lost > 0 && is_about_half(identical, sent) && is_about_half(matched, sent)
}

/// Whether a part is 40 to 60 % of all.
const fn is_about_half(part: u64, all: u64) -> bool {
    let (part, all) = (part.saturating_mul(10), all.saturating_mul(4));
    all <= part && part <= all.saturating_add(all / 2)
}
