//! Flows by key, with eviction of the flow that was idle for longest.

use std::collections::VecDeque;
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_packet::FlowKey;

use super::encapsulations::Encapsulations;
use super::media::Media;
use super::sip_stream::SipStream;
use super::tcp::Direction;
use super::uncertainty::UnnumberedPackets;
use super::volume::Volume;

/// Protocol numbers (IANA "Assigned Internet Protocol Numbers").
const TCP: u8 = 6;
const UDP: u8 = 17;

/// One direction of a conversation.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) key: FlowKey,
    /// Number of its last packet, counted over all flows.
    pub(super) last_packet: u64,
    /// Packets outside RTP streams.
    pub(super) rest: Volume,
    pub(super) content: Content,
    /// None if no packet had one.
    pub(super) encapsulations: Option<Box<Encapsulations>>,
}

/// Content of a flow, by protocol.
#[derive(Clone, Debug)]
pub(super) enum Content {
    Tcp { direction: Box<Direction>, peer: Option<usize>, sip: Option<Box<SipStream>> },
    Udp(Media),
    Other,
}

impl Flow {
    fn new(key: FlowKey) -> Self {
        let content = match key.protocol {
            TCP => Content::Tcp { direction: Box::default(), peer: None, sip: None },
            UDP => Content::Udp(Media::default()),
            _ => Content::Other,
        };
        Self { key, last_packet: 0, rest: Volume::default(), content, encapsulations: None }
    }

    /// Number of RTP streams.
    pub(super) fn streams(&self) -> usize {
        match &self.content {
            Content::Udp(media) => media.streams.len(),
            _ => 0,
        }
    }

    /// Time of the last packet of its RTP streams.
    pub(super) fn last_of_streams(&self) -> Option<Time<Utc>> {
        match &self.content {
            Content::Udp(media) => {
                media.streams.iter().filter_map(|stream| stream.volume.last).max()
            }
            _ => None,
        }
    }

    /// Its packets without sequence numbers; none if there are none.
    pub(super) fn unnumbered(&self) -> Option<UnnumberedPackets> {
        if let Content::Udp(media) = &self.content
            && media.test.test().is_some()
        {
            return None;
        }
        let (first, last) = self.rest.first.zip(self.rest.last)?;
        let closest = Span::from_nanos(self.rest.gaps.min().map_or(i64::MAX, |it| it.max(1)));
        Some(UnnumberedPackets { first, last, closest })
    }

    fn set_peer(&mut self, place: Option<usize>) {
        if let Content::Tcp { peer, .. } = &mut self.content {
            *peer = place;
        }
    }
}

/// A bounded number of flows, by key.
#[derive(Clone, Debug)]
pub(super) struct Table {
    limit: usize,
    hasher: RandomState,
    /// Indices of the flows by the hash of their key. The keys are in the flows, which every packet reads anyway: with
    /// many flows, a second copy would be out of the processor's cache.
    places: HashTable<u32>,
    pub(super) flows: Vec<Flow>,
    /// Flows that were idle for longest when this list was filled, with the number of their last packet then.
    idle: VecDeque<(u64, usize)>,
}

impl Table {
    /// A table for at most `limit` flows: from 1 to 2^32 - 1.
    pub(super) fn new(limit: usize) -> Self {
        let limit = limit.clamp(1, u32::MAX as usize);
        let (hasher, places) = (RandomState::default(), HashTable::new());
        Self { limit, hasher, places, flows: Vec::new(), idle: VecDeque::new() }
    }

    #[inline]
    pub(super) fn place(&self, key: &FlowKey) -> Option<usize> {
        let is_it = |place: &u32| self.flows[*place as usize].key == *key;
        self.places.find(self.hasher.hash_one(key), is_it).map(|place| *place as usize)
    }

    pub(super) fn flow(&mut self, place: usize) -> &mut Flow {
        &mut self.flows[place]
    }

    /// UDP content of all flows.
    pub(super) fn media(&mut self) -> impl Iterator<Item = &mut Media> {
        self.flows.iter_mut().filter_map(|flow| match &mut flow.content {
            Content::Udp(media) => Some(media),
            _ => None,
        })
    }

    /// Messages of SIP over TCP that wait for earlier segments, with their flow and time.
    pub(super) fn waiting_messages(&mut self) -> Vec<(FlowKey, Vec<u8>, Time<Utc>)> {
        let mut messages = Vec::new();
        for flow in &mut self.flows {
            if let Content::Tcp { sip: Some(stream), .. } = &mut flow.content {
                let key = flow.key;
                messages
                    .extend(stream.flush().into_iter().map(|(message, time)| (key, message, time)));
            }
        }
        messages
    }

    /// The opposite direction of a TCP flow, if captured.
    pub(super) fn peer(&mut self, place: usize) -> Option<&mut Direction> {
        let Content::Tcp { peer: Some(peer), .. } = self.flows[place].content else { return None };
        match &mut self.flows[peer].content {
            Content::Tcp { direction, .. } => Some(direction),
            _ => None,
        }
    }

    /// Adds a flow. Returns its index, and the flow evicted for it.
    #[cold]
    pub(super) fn open(&mut self, key: FlowKey) -> (usize, Option<Flow>) {
        let new = Flow::new(key);
        let (place, evicted) = if self.flows.len() < self.limit {
            self.flows.push(new);
            (self.flows.len() - 1, None)
        } else {
            let place = self.pop_idle();
            (place, Some(std::mem::replace(&mut self.flows[place], new)))
        };
        if let Some(evicted) = &evicted {
            let is_it = |other: &u32| *other as usize == place;
            if let Ok(entry) = self.places.find_entry(self.hasher.hash_one(evicted.key), is_it) {
                entry.remove();
            }
            if let Content::Tcp { peer: Some(peer), .. } = evicted.content {
                self.flows[peer].set_peer(None);
            }
        }
        #[expect(clippy::cast_possible_truncation, reason = "the limit fits")]
        let new = place as u32;
        let Self { hasher, places, flows, .. } = self;
        let hash = |place: &u32| hasher.hash_one(flows[*place as usize].key);
        places.insert_unique(hasher.hash_one(key), new, hash);
        self.link_peer(place);
        (place, evicted)
    }

    /// Links both directions of a conversation.
    fn link_peer(&mut self, place: usize) {
        let FlowKey { source, destination, protocol } = self.flows[place].key;
        let back = FlowKey { source: destination, destination: source, protocol };
        if protocol == TCP && source != destination {
            let peer = self.place(&back);
            self.flows[place].set_peer(peer);
            if let Some(peer) = peer {
                self.flows[peer].set_peer(Some(place));
            }
        }
    }

    /// Index of the flow idle for longest. The oldest sixteenth is collected at once, because a search for each new
    /// flow would take too long; entries with newer packets are skipped.
    fn pop_idle(&mut self) -> usize {
        loop {
            match self.idle.pop_front() {
                Some((last_packet, place)) if self.flows[place].last_packet == last_packet => {
                    return place;
                }
                Some(_) => {}
                None => self.refill_idle(),
            }
        }
    }

    fn refill_idle(&mut self) {
        let flows = self.flows.iter().enumerate();
        let mut all: Vec<_> = flows.map(|(place, flow)| (flow.last_packet, place)).collect();
        let oldest = all.len().div_ceil(16);
        all.select_nth_unstable(oldest - 1);
        all.truncate(oldest);
        all.sort_unstable();
        self.idle = all.into();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(number: u16) -> FlowKey {
        let end = |port| std::net::SocketAddr::from(([10, 0, 0, 1], port));
        FlowKey { source: end(number), destination: end(9), protocol: 17 }
    }

    /// Records a packet of a flow; returns the evicted flow.
    fn record(table: &mut Table, number: u16, now: u64) -> Option<u16> {
        let (place, evicted) = match table.place(&key(number)) {
            Some(place) => (place, None),
            None => table.open(key(number)),
        };
        table.flow(place).last_packet = now;
        evicted.map(|flow| flow.key.source.port())
    }

    proptest! {
        #[test]
        fn longest_idle_flow_is_evicted(
            limit in 1..40usize, packets in prop::collection::vec(0..80u16, 1..400),
        ) {
            let mut table = Table::new(limit);
            let mut by_age: Vec<u16> = Vec::new();
            for (now, number) in (1..).zip(packets) {
                let expected = match by_age.iter().position(|it| *it == number) {
                    Some(place) => { by_age.remove(place); None }
                    None => (by_age.len() == limit).then(|| by_age.remove(0)),
                };
                by_age.push(number);
                prop_assert_eq!(record(&mut table, number, now), expected);
                prop_assert!(table.flows.len() <= limit && table.places.len() <= limit);
            }
        }
    }

    #[test]
    fn directions_are_linked_until_one_is_evicted() {
        let mut table = Table::new(2);
        let there = FlowKey { protocol: TCP, ..key(1) };
        let back = FlowKey { source: there.destination, destination: there.source, ..there };
        let (there, _) = table.open(there);
        assert!(table.peer(there).is_none());
        let (back, _) = table.open(back);
        table.flow(back).last_packet = 5;
        assert!(table.peer(there).is_some() && table.peer(back).is_some());
        table.open(key(3));
        assert!(table.peer(back).is_none());
    }
}
