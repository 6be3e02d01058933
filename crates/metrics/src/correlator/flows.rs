//! States of all flows.

use std::net::IpAddr;

use wirestamp_clock::Span;
use wirestamp_packet::FlowKey;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::flow::{Flow, FlowNumber};
use super::queue::{Link, Queue};
use super::table::{Table, Value};

/// Flows by key.
///
/// The state of a flow outlives its departures, so that the delay variation of a slow flow is known. Where there is no
/// room for another flow, the one idle for longest is removed.
pub(super) struct Flows {
    list: Queue<Flow>,
    numbers: Table<FlowNumber>,
    seed: u64,
    /// Idle flows: the first and the last in the order of becoming idle.
    idle: (FlowNumber, FlowNumber),
    /// Max number of flows.
    max: usize,
    /// Sequence number above those of all removed flows.
    removed_until: u64,
}

impl Flows {
    /// Bytes per flow.
    pub(super) const BYTES_EACH: usize = size_of::<Flow>() + Table::<FlowNumber>::BYTES_EACH;

    /// An empty list with room for `max` flows, at least one.
    pub(super) fn new(max: usize, seed: u64) -> Self {
        let max = max.clamp(1, 1 << 31);
        Self {
            list: Queue::new(),
            numbers: Table::new(max, seed),
            seed,
            idle: (FlowNumber::FREE, FlowNumber::FREE),
            max,
            removed_until: 0,
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

    /// Hash of a key, for [`Self::touch`] and [`Self::likely`].
    pub(super) fn hash(&self, key: &FlowKey) -> u64 {
        hash(key, self.seed)
    }

    /// Reads the memory where a search for this hash begins ([`Table::touch`]).
    #[inline]
    pub(super) fn touch(&self, hash: u64) -> u32 {
        self.numbers.touch(hash)
    }

    /// Flow that most likely has this hash ([`Table::likely`]).
    #[inline]
    pub(super) fn likely(&self, hash: u64) -> Option<FlowNumber> {
        self.numbers.likely(hash)
    }

    /// Number of the flow with this key, added if new. `None` if no flow can be added: not allowed by `may_grow`, or
    /// the max is reached and all have departures.
    pub(super) fn enter(&mut self, key: &FlowKey, may_grow: bool) -> Option<FlowNumber> {
        let hash = hash(key, self.seed);
        let list = &self.list;
        let is_it = |number: FlowNumber| list.get(number.0.into()).is_some_and(|it| it.key == *key);
        if let Some(slot) = self.numbers.find(hash, is_it) {
            return Some(*self.numbers.value(slot));
        }
        let mut flow = Flow::new(*key, self.removed_until);
        let number = if may_grow && self.list.len() < self.max || self.list.len() == 0 {
            let number = FlowNumber(u32::try_from(self.list.len()).ok()?);
            self.list.push(flow);
            number
        } else {
            let number = self.idle.0;
            self.remove_idle(number)?;
            // Removing the idle flow may have raised it.
            flow.next_sequence = self.removed_until;
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

    /// Enlarges the table; the list already contains the new flow.
    fn index_again(&mut self) {
        self.numbers.clear_larger();
        for place in self.list.numbers() {
            if let (Some(flow), Ok(number)) = (self.list.get(place), u32::try_from(place)) {
                self.numbers.insert(hash(&flow.key, self.seed), FlowNumber(number));
            }
        }
    }

    /// Removes an idle flow from the table.
    fn remove_idle(&mut self, number: FlowNumber) -> Option<()> {
        let &Flow { key, next_sequence, .. } = self.get(number)?;
        self.removed_until = self.removed_until.max(next_sequence);
        self.leave_idle(number);
        let slot = self.numbers.find(hash(&key, self.seed), |found| found == number)?;
        self.numbers.remove(slot);
        Some(())
    }

    /// Adds a departure of the flow to the queue. Returns the previous one, and the lower half of the sequence number.
    pub(super) fn depart(&mut self, number: FlowNumber, link: Link) -> Option<(Link, u32)> {
        if self.get(number)?.last == Link::NONE {
            self.leave_idle(number);
        }
        Some(self.get_mut(number)?.depart(link))
    }

    /// Removes the first departure of the flow, with its delay if matched.
    pub(super) fn leave(
        &mut self,
        number: FlowNumber,
        link: Link,
        delay: Option<Span>,
    ) -> Option<&Flow> {
        let flow = self.get_mut(number)?;
        flow.last_removed_delay = delay;
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

/// Hash of a flow key.
fn hash(key: &FlowKey, seed: u64) -> u64 {
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
