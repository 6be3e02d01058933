//! State of a flow.

use wirestamp_clock::Span;
use wirestamp_packet::FlowKey;

use super::queue::Link;
use super::table::Value;

/// Number of a flow in the list of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowNumber(pub(super) u32);

impl Value for FlowNumber {
    const FREE: Self = Self(u32::MAX);

    fn is_free(&self) -> bool {
        *self == Self::FREE
    }
}

/// State of a flow with or without departures in the queue.
///
/// Occupies two cache lines; all but the key is in the first.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Flow {
    /// Sequence number of its next departure.
    pub(super) next_sequence: u64,
    /// Delay of the last departure removed from the queue, if matched.
    pub(super) last_removed_delay: Option<Span>,
    /// Delay of the last matched departure, in the order of departure.
    latest_delay: Option<Span>,
    /// Number of departures of the flow after that one.
    after_latest: u32,
    /// Its last departure, if in the queue.
    pub(super) last: Link,
    /// Neighbours in the list of idle flows, while idle.
    pub(super) before: FlowNumber,
    pub(super) behind: FlowNumber,
    pub(super) key: FlowKey,
}

/// Position of a match in the order of its flow.
pub(super) enum Order {
    /// No later departure has been matched. Contains the delay of the previous departure, if matched.
    Follows(Option<Span>),
    /// A later departure has been matched: the condition of RFC 4737 section 3.3 (NextExp).
    Reordered,
}

impl Flow {
    /// A flow without departures.
    pub(super) fn new(key: FlowKey, next_sequence: u64) -> Self {
        Self {
            next_sequence,
            last_removed_delay: None,
            latest_delay: None,
            after_latest: 0,
            last: Link::NONE,
            before: FlowNumber::FREE,
            behind: FlowNumber::FREE,
            key,
        }
    }

    /// Sequence number of a queued departure from its lower half.
    #[inline]
    pub(super) fn sequence(&self, lower: u32) -> u64 {
        let ago = lower_half(self.next_sequence).wrapping_sub(lower);
        self.next_sequence - u64::from(ago)
    }

    /// Adds a departure. Returns the previous one, and the lower half of the sequence number.
    #[inline]
    pub(super) fn depart(&mut self, link: Link) -> (Link, u32) {
        if self.last == Link::NONE {
            // Only the last removed departure can be a neighbour of this one.
            (self.latest_delay, self.after_latest) = (self.last_removed_delay, 0);
        }
        let sequence = lower_half(self.next_sequence);
        self.next_sequence += 1;
        self.after_latest = self.after_latest.saturating_add(1);
        (std::mem::replace(&mut self.last, link), sequence)
    }

    /// Records the match of a departure, given by the lower half of its sequence number.
    #[inline]
    pub(super) fn arrive(&mut self, lower: u32, delay: Span) -> Order {
        let behind = lower_half(self.next_sequence - 1).wrapping_sub(lower);
        if behind >= self.after_latest {
            return Order::Reordered;
        }
        let is_next = behind + 1 == self.after_latest;
        self.after_latest = behind;
        let latest_delay = self.latest_delay.replace(delay);
        Order::Follows(latest_delay.filter(|_| is_next))
    }

    /// Reads from the cache line of its state.
    #[inline]
    pub(super) fn touch_state(&self) -> u32 {
        self.after_latest
    }

    /// Reads from the cache line of its state and from that of most of its key.
    #[inline]
    pub(super) fn touch(&self) -> u32 {
        self.touch_state() ^ u32::from(self.key.protocol)
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "takes the lower half")]
fn lower_half(number: u64) -> u32 {
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(next_sequence: u64) -> Flow {
        let end = ([10, 77, 1, 1], 1).into();
        Flow::new(FlowKey { source: end, destination: end, protocol: 17 }, next_sequence)
    }

    #[test]
    fn flow_takes_two_cache_lines() {
        assert_eq!((size_of::<Flow>(), align_of::<Flow>()), (128, 64));
        assert!(std::mem::offset_of!(Flow, key) <= 64);
    }

    #[test]
    fn sequence_is_restored_from_its_lower_half() {
        let first = (1 << 32) - 2;
        let mut flow = flow(first);
        let lower: Vec<u32> = (0..4).map(|link| flow.depart(Link::to(link)).1).collect();
        assert_eq!(lower, [u32::MAX - 1, u32::MAX, 0, 1]);
        let places: Vec<u64> = lower.into_iter().map(|lower| flow.sequence(lower)).collect();
        assert_eq!(places, [first, first + 1, first + 2, first + 3]);
    }

    #[test]
    fn overtaken_match_is_reordered() {
        let mut flow = flow((1 << 32) - 2);
        let places: Vec<u32> = (0..5).map(|link| flow.depart(Link::to(link)).1).collect();
        // 0 and 1 follow one another, 2 is overtaken by 3, and 4 follows 3.
        let arrivals = [0, 1, 3, 2, 4];
        let orders = arrivals.map(|arrival| {
            let delay = Span::from_millis(i64::try_from(arrival).expect("a few"));
            match flow.arrive(places[arrival], delay) {
                Order::Follows(before) => Some(before),
                Order::Reordered => None,
            }
        });
        let follows = |millis| Some(Some(Span::from_millis(millis)));
        assert_eq!(orders, [Some(None), follows(0), Some(None), None, follows(3)]);
    }
}
