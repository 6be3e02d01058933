//! Enterprise-specific elements, documented in `docs/ipfix.md`.

use crate::protocol::ipfix::Element;

const fn own(number: u16) -> Element {
    // The number for examples and documentation (RFC 5612): the project has none of its own yet.
    Element { enterprise: 32_473, number }
}

pub(super) const TASK_NAME: Element = own(1);
pub(super) const FIRST_POINT_NAME: Element = own(2);
pub(super) const SECOND_POINT_NAME: Element = own(3);
pub(super) const RECEIVED: Element = own(4);
pub(super) const MATCHED: Element = own(5);
pub(super) const DUPLICATED: Element = own(6);
pub(super) const REORDERED: Element = own(7);
pub(super) const UNEXPECTED: Element = own(8);
pub(super) const UNDETERMINED_SENT: Element = own(9);
pub(super) const UNDETERMINED_RECEIVED: Element = own(10);
pub(super) const IDENTICAL: Element = own(11);
pub(super) const CLOCK_STATE: Element = own(12);
pub(super) const CLOCKS_CONTRADICTED: Element = own(13);
pub(super) const DELAY_ERROR: Element = own(14);

/// Min, mean, standard deviation, median, 90th, 99th and 99.9th percentile and max, in this order.
pub(super) type OfSummary = [Element; 8];

const fn of_summary(first: u16) -> OfSummary {
    let mut elements = [own(first); 8];
    let mut nth = 0;
    while nth < 8 {
        elements[nth as usize] = own(first + nth);
        nth += 1;
    }
    elements
}

pub(super) const DELAY: OfSummary = of_summary(16);
pub(super) const ABOVE_MINIMUM: OfSummary = of_summary(24);
pub(super) const VARIATION: OfSummary = of_summary(32);

// Totals of flows since their begin.
pub(super) const RETRANSMITTED_TOTAL: Element = own(40);
pub(super) const DUPLICATED_TOTAL: Element = own(41);
pub(super) const REORDERED_TOTAL: Element = own(42);
pub(super) const MISSED_TOTAL: Element = own(43);
pub(super) const SOURCE_OF_RTP: Element = own(44);
pub(super) const PAYLOAD_TYPE: Element = own(45);
pub(super) const CODEC_NAME: Element = own(46);
pub(super) const JITTER: Element = own(47);
pub(super) const MOS: Element = own(48);
pub(super) const ROUND_TRIP_MIN: Element = own(49);
pub(super) const ROUND_TRIP_MEAN: Element = own(50);
