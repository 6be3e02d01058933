//! What is remembered of each flow.

use std::net::IpAddr;

use wirestamp_clock::Span;
use wirestamp_packet::FlowKey;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::queue::{Link, Queue};
use super::table::{Table, Value};

/// A flow's number in the list of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlowNumber(u32);

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
    next_sequence: u64,
    /// The delay of the last departure that has left the queue, if that had been matched.
    pub(super) gone: Option<Span>,
    /// The delay of the departure that is the last of those matched.
    latest: Option<Span>,
    /// How many of its departures left A after that one.
    behind_latest: u32,
    /// Its last departure, if that is in the queue.
    pub(super) last: Link,
    /// Its neighbours in the order in which flows became idle, while it is.
    before: FlowNumber,
    behind: FlowNumber,
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
    fn new(key: FlowKey, next_sequence: u64) -> Self {
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

    /// The departure with this place, of which this is the lower half, has been matched.
    #[inline]
    pub(super) fn arrive(&mut self, lower: u32, delay: Span) -> Order {
        let behind = lower_half(self.next_sequence).wrapping_sub(lower) - 1;
        if behind >= self.behind_latest {
            return Order::Reordered;
        }
        let is_next = behind + 1 == self.behind_latest;
        self.behind_latest = behind;
        let latest = self.latest.replace(delay);
        Order::Follows(latest.filter(|_| is_next))
    }

    /// Reads from the cache line of its state and from that of most of its key.
    #[inline]
    pub(super) fn touch(&self) -> u32 {
        u32::from(self.last == Link::NONE) ^ u32::from(self.key.protocol)
    }
}

#[inline]
fn lower_half(number: u64) -> u32 {
    (number & u64::from(u32::MAX)) as u32
}

/// The flows, found by their keys.
///
/// A flow's state outlives its departures, so that the delay variation of a slow flow is known too.
/// Where there is no room for another, the one that has been without departures for the longest
/// time is forgotten.
pub(super) struct Flows {
    list: Queue<Flow>,
    numbers: Table<FlowNumber>,
    seed: u64,
    /// The flows without departures: the first and the last to become so.
    idle: (FlowNumber, FlowNumber),
    /// How many flows there may be at most.
    most: usize,
    /// A place among its packets that no flow has reached which was forgotten.
    forgotten_until: u64,
}

impl Flows {
    /// The bytes that each flow takes.
    pub(super) const BYTES_EACH: usize = size_of::<Flow>() + Table::<FlowNumber>::BYTES_EACH;

    /// No flows yet, and room for `most`, at least one.
    pub(super) fn new(most: usize, seed: u64) -> Self {
        let most = most.clamp(1, 1 << 31);
        Self {
            list: Queue::new(),
            numbers: Table::new(most, seed),
            seed,
            idle: (FlowNumber::FREE, FlowNumber::FREE),
            most,
            forgotten_until: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    #[inline]
    pub(super) fn get(&self, number: FlowNumber) -> Option<&Flow> {
        self.list.get(number.0.into())
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: FlowNumber) -> Option<&mut Flow> {
        self.list.get_mut(number.0.into())
    }

    /// A hash of this key, for [`Self::touch`] and [`Self::likely`].
    pub(super) fn hash(&self, key: &FlowKey) -> u64 {
        hash(key, self.seed)
    }

    /// Reads where a search for the key with this hash begins ([`Table::touch`]).
    #[inline]
    pub(super) fn touch(&self, hash: u64) -> u32 {
        self.numbers.touch(hash)
    }

    /// The flow whose key has this hash, most likely ([`Table::likely`]).
    #[inline]
    pub(super) fn likely(&self, hash: u64) -> Option<FlowNumber> {
        self.numbers.likely(hash)
    }

    /// The flow with this key, new if it is not known; `None` if no more may be added, by `may_grow`
    /// or because there are enough, and all have departures.
    pub(super) fn enter(&mut self, key: &FlowKey, may_grow: bool) -> Option<FlowNumber> {
        let hash = hash(key, self.seed);
        let list = &self.list;
        let is_it = |number: FlowNumber| list.get(number.0.into()).is_some_and(|it| it.key == *key);
        if let Some(slot) = self.numbers.find(hash, is_it) {
            return Some(*self.numbers.value(slot));
        }
        let mut flow = Flow::new(*key, self.forgotten_until);
        let number = if may_grow && self.list.len() < self.most || self.list.len() == 0 {
            let number = FlowNumber(u32::try_from(self.list.len()).ok()?);
            self.list.push(flow);
            number
        } else {
            let number = self.idle.0;
            self.forget(number)?;
            // It may be the one that comes back.
            flow.next_sequence = self.forgotten_until;
            *self.get_mut(number)? = flow;
            number
        };
        self.append_idle(number);
        if self.numbers.is_crowded() {
            self.index_again();
        } else {
            self.numbers.insert(hash, number);
        }
        Some(number)
    }

    /// Makes the table larger; the list has the new flow already.
    fn index_again(&mut self) {
        self.numbers.clear_larger();
        for place in self.list.numbers() {
            if let (Some(flow), Ok(number)) = (self.list.get(place), u32::try_from(place)) {
                self.numbers.insert(hash(&flow.key, self.seed), FlowNumber(number));
            }
        }
    }

    /// Takes a flow without departures out of the table.
    fn forget(&mut self, number: FlowNumber) -> Option<()> {
        let &Flow { key, next_sequence, .. } = self.get(number)?;
        self.forgotten_until = self.forgotten_until.max(next_sequence);
        self.leave_idle(number);
        let slot = self.numbers.find(hash(&key, self.seed), |found| found == number)?;
        self.numbers.remove(slot);
        Some(())
    }

    /// One more of the flow's departures is in the queue, with this link; returns the one before it,
    /// and the lower half of its place among the flow's packets.
    pub(super) fn depart(&mut self, number: FlowNumber, link: Link) -> Option<(Link, u32)> {
        if self.get(number)?.last == Link::NONE {
            self.leave_idle(number);
            let flow = self.get_mut(number)?;
            (flow.latest, flow.behind_latest) = (flow.gone, 0);
        }
        let flow = self.get_mut(number)?;
        let sequence = lower_half(flow.next_sequence);
        flow.next_sequence += 1;
        flow.behind_latest = flow.behind_latest.saturating_add(1);
        Some((std::mem::replace(&mut flow.last, link), sequence))
    }

    /// The first of the flow's departures is to leave the queue, the one with this link, with this
    /// delay if it was matched.
    pub(super) fn leave(
        &mut self,
        number: FlowNumber,
        link: Link,
        delay: Option<Span>,
    ) -> Option<&Flow> {
        let flow = self.get_mut(number)?;
        flow.gone = delay;
        if flow.last == link {
            flow.last = Link::NONE;
            self.append_idle(number);
        }
        self.get(number)
    }

    fn append_idle(&mut self, number: FlowNumber) {
        let last = std::mem::replace(&mut self.idle.1, number);
        if let Some(last) = self.get_mut(last) {
            last.behind = number;
        } else {
            self.idle.0 = number;
        }
        if let Some(flow) = self.get_mut(number) {
            (flow.before, flow.behind) = (last, FlowNumber::FREE);
        }
    }

    fn leave_idle(&mut self, number: FlowNumber) {
        let Some(&Flow { before, behind, .. }) = self.get(number) else { return };
        match self.get_mut(before) {
            Some(flow) => flow.behind = behind,
            None => self.idle.0 = behind,
        }
        match self.get_mut(behind) {
            Some(flow) => flow.before = before,
            None => self.idle.1 = before,
        }
    }
}

/// A hash of what distinguishes flows of packets.
pub(crate) fn hash(key: &FlowKey, seed: u64) -> u64 {
    let mut input = [0; 37];
    for (field, end) in input.chunks_exact_mut(18).zip([key.source, key.destination]) {
        match end.ip() {
            IpAddr::V4(address) => field[..4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => field[..16].copy_from_slice(&address.octets()),
        }
        field[16..].copy_from_slice(&end.port().to_be_bytes());
    }
    input[36] = key.protocol;
    xxh3_64_with_seed(&input, seed)
}
