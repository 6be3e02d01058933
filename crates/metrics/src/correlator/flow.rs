//! What is remembered of a flow.

use wirestamp_clock::Span;
use wirestamp_packet::FlowKey;

use super::queue::Link;
use super::table::Value;

/// A flow's number in the list of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowNumber(pub(super) u32);

impl Value for FlowNumber {
    const FREE: Self = Self(u32::MAX);

    fn is_free(&self) -> bool {
        *self == Self::FREE
    }
}

/// A flow with departures in the queue, or without any for the time being.
///
/// It lies in two cache lines, all but the key in the first of them.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Flow {
    /// The place among its packets that its next departure takes.
    pub(super) next_sequence: u64,
    /// The delay of the last departure that has left the queue, if that had been matched.
    pub(super) gone: Option<Span>,
    /// The delay of the departure that is the last of those matched.
    latest: Option<Span>,
    /// How many of its departures left A after that one.
    behind_latest: u32,
    /// Its last departure, if that is in the queue.
    pub(super) last: Link,
    /// Its neighbours in the order in which flows became idle, while it is.
    pub(super) before: FlowNumber,
    pub(super) behind: FlowNumber,
    pub(super) key: FlowKey,
}

/// Where a match lies in the order of its flow.
pub(super) enum Order {
    /// No departure behind it has been matched; with the delay of the one just ahead of it, if that
    /// has been.
    Follows(Option<Span>),
    /// One behind it has been: what RFC 4737 section 3.3 tells by the number it calls NextExp.
    Reordered,
}

impl Flow {
    /// A flow without departures.
    pub(super) fn new(key: FlowKey, next_sequence: u64) -> Self {
        Self {
            next_sequence,
            gone: None,
            latest: None,
            behind_latest: 0,
            last: Link::NONE,
            before: FlowNumber::FREE,
            behind: FlowNumber::FREE,
            key,
        }
    }

    /// The place among its packets of which this is the lower half, of one that is in the queue.
    #[inline]
    pub(super) fn sequence(&self, lower: u32) -> u64 {
        let ago = lower_half(self.next_sequence).wrapping_sub(lower);
        self.next_sequence - u64::from(ago)
    }

    /// One more departure, with this link; returns the one before it, and the lower half of its
    /// place.
    #[inline]
    pub(super) fn depart(&mut self, link: Link) -> (Link, u32) {
        if self.last == Link::NONE {
            // Of those that have left, only the last is a neighbour of this one.
            (self.latest, self.behind_latest) = (self.gone, 0);
        }
        let sequence = lower_half(self.next_sequence);
        self.next_sequence += 1;
        self.behind_latest = self.behind_latest.saturating_add(1);
        (std::mem::replace(&mut self.last, link), sequence)
    }

    /// The departure with this place, of which this is the lower half, has been matched.
    #[inline]
    pub(super) fn arrive(&mut self, lower: u32, delay: Span) -> Order {
        let behind = lower_half(self.next_sequence - 1).wrapping_sub(lower);
        if behind >= self.behind_latest {
            return Order::Reordered;
        }
        let is_next = behind + 1 == self.behind_latest;
        self.behind_latest = behind;
        let latest = self.latest.replace(delay);
        Order::Follows(latest.filter(|_| is_next))
    }

    /// Reads from the cache line of its state.
    #[inline]
    pub(super) fn touch_state(&self) -> u32 {
        self.behind_latest
    }

    /// Reads from the cache line of its state and from that of most of its key.
    #[inline]
    pub(super) fn touch(&self) -> u32 {
        self.touch_state() ^ u32::from(self.key.protocol)
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is wanted")]
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
    fn the_state_of_a_flow_fits_in_front_of_its_key_in_two_cache_lines() {
        assert_eq!((size_of::<Flow>(), align_of::<Flow>()), (128, 64));
        assert!(std::mem::offset_of!(Flow, key) <= 64);
    }

    #[test]
    fn a_place_is_known_from_its_lower_half() {
        let first = (1 << 32) - 2;
        let mut flow = flow(first);
        let lower: Vec<u32> = (0..4).map(|link| flow.depart(Link::to(link)).1).collect();
        assert_eq!(lower, [u32::MAX - 1, u32::MAX, 0, 1]);
        let places: Vec<u64> = lower.into_iter().map(|lower| flow.sequence(lower)).collect();
        assert_eq!(places, [first, first + 1, first + 2, first + 3]);
    }

    #[test]
    fn a_match_follows_the_latest_unless_one_behind_it_came_first() {
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
