//! The observations of one packet at several points, joined by the outcomes between each two points.

use std::collections::HashMap;

use wirestamp_clock::Span;
use wirestamp_metrics::{Observation, Outcome, Point, Segment};

use super::packet::{ChainPacket, Fate, HopDelay, Place};

/// Packets with an open outcome.
#[derive(Default)]
pub(super) struct Tracks {
    points: usize,
    /// Number of the next observation, and of the track that it begins.
    next: u64,
    tracks: HashMap<u64, Track>,
    /// The track of each observation, by its number.
    of: HashMap<u64, u64>,
}

/// A packet at the points that have observed it so far.
struct Track {
    /// One for each point: the number of the observation, and the packet there.
    places: Vec<Option<(u64, Place)>>,
    /// Delay from the first point to the last.
    whole: Option<HopDelay>,
    /// Outcomes that are open.
    open: usize,
}

impl Tracks {
    pub(super) fn new(points: usize) -> Self {
        Self { points, ..Self::default() }
    }

    /// Begins a track with an observation at this point. Returns its number.
    pub(super) fn open(&mut self, point: usize, place: Place) -> u64 {
        let number = self.next;
        self.next += 1;
        let mut places = vec![None; self.points];
        places[point] = Some((number, place));
        // From the point before and to the next one; at both ends, on the complete path instead of one of these.
        self.tracks.insert(number, Track { places, whole: None, open: 2 });
        self.of.insert(number, number);
        number
    }

    /// Takes an outcome between two points, and records the packets that are complete then.
    pub(super) fn decide(
        &mut self,
        segment: Segment,
        outcome: &Outcome,
        record: &mut impl FnMut(ChainPacket),
    ) {
        let (a, b) = match segment {
            Segment::Hop(hop) => (hop, hop + 1),
            Segment::Whole => (0, self.points - 1),
        };
        let is_hop = matches!(segment, Segment::Hop(_));
        match outcome {
            Outcome::Matched { sent, received, sequence, delay, reordered, .. } => {
                if let Some(track) = self.join(sent, received)
                    && let Some(error) = track.error([a, b])
                {
                    let hop = HopDelay { delay: *delay, error, reordered: *reordered };
                    match &mut track.places[b] {
                        Some((_, place)) if is_hop => place.hop = Some(hop),
                        _ => track.whole = Some(hop),
                    }
                }
                self.set_sequence(a, sent, *sequence);
                self.close(sent, record);
                self.close(received, record);
            }
            Outcome::Lost { sent, sequence } => {
                self.set_sequence(a, sent, *sequence);
                self.end(segment, sent, Fate::Lost { hop: a, flow: sent.flow }, record);
            }
            Outcome::Duplicated { received, .. } => {
                self.begin(segment, received, Fate::Duplicated, record);
            }
            Outcome::Unexpected { received } => {
                self.begin(segment, received, Fate::Unexpected, record);
            }
            Outcome::Undetermined { point: Point::A, observation, sequence, reason } => {
                if let Some(sequence) = sequence {
                    self.set_sequence(a, observation, *sequence);
                }
                self.end(segment, observation, Fate::Undetermined(*reason), record);
            }
            Outcome::Undetermined { point: Point::B, observation, reason, .. } => {
                self.begin(segment, observation, Fate::Undetermined(*reason), record);
            }
            Outcome::Identical { .. } => {}
        }
    }

    /// Records the packets whose outcomes are still open, which are none after all correlators have finished.
    pub(super) fn finish(self, record: &mut impl FnMut(ChainPacket)) {
        self.tracks.into_values().filter_map(Track::packet).for_each(record);
    }

    fn track(&mut self, observation: &Observation) -> Option<&mut Track> {
        self.tracks.get_mut(self.of.get(&number(observation))?)
    }

    /// The place of an observation.
    fn place(&mut self, point: usize, observation: &Observation) -> Option<&mut Place> {
        let place = self.track(observation)?.places[point].as_mut();
        place.filter(|(its, _)| *its == number(observation)).map(|(_, place)| place)
    }

    fn set_sequence(&mut self, point: usize, sent: &Observation, sequence: u64) {
        if let Some(place) = self.place(point, sent) {
            place.sequence.get_or_insert(sequence);
        }
    }

    /// Sets why the next point did not observe a packet.
    fn end(
        &mut self,
        segment: Segment,
        sent: &Observation,
        fate: Fate,
        record: &mut impl FnMut(ChainPacket),
    ) {
        if let Segment::Hop(hop) = segment
            && let Some(place) = self.place(hop, sent)
        {
            place.end = Some(fate);
        }
        self.close(sent, record);
    }

    /// Sets why the point before did not observe a packet.
    fn begin(
        &mut self,
        segment: Segment,
        received: &Observation,
        fate: Fate,
        record: &mut impl FnMut(ChainPacket),
    ) {
        if let Segment::Hop(hop) = segment
            && let Some(place) = self.place(hop + 1, received)
        {
            place.begin = Some(fate);
        }
        self.close(received, record);
    }

    /// Joins the tracks of two observations of one packet, and returns the track. None if a point has an observation in
    /// both, which is of an identical packet.
    fn join(&mut self, sent: &Observation, received: &Observation) -> Option<&mut Track> {
        let [first, second] =
            [sent, received].map(|observation| self.of.get(&number(observation)).copied());
        let (first, second) = (first?, second?);
        if first == second {
            return self.tracks.get_mut(&first);
        }
        let [a, b] = [first, second].map(|track| self.tracks.get(&track));
        let has_both = a?.places.iter().zip(&b?.places).any(|(a, b)| a.is_some() && b.is_some());
        let other = if has_both { None } else { self.tracks.remove(&second) }?;
        let track = self.tracks.get_mut(&first)?;
        for (place, its) in track.places.iter_mut().zip(other.places) {
            if let Some((number, _)) = &its {
                self.of.insert(*number, first);
                *place = its;
            }
        }
        track.open += other.open;
        track.whole = track.whole.or(other.whole);
        Some(track)
    }

    /// Closes an outcome of an observation. Without open outcomes, its track ends.
    fn close(&mut self, observation: &Observation, record: &mut impl FnMut(ChainPacket)) {
        let Some(&of) = self.of.get(&number(observation)) else { return };
        let Some(track) = self.tracks.get_mut(&of) else { return };
        track.open = track.open.saturating_sub(1);
        if track.open == 0
            && let Some(track) = self.tracks.remove(&of)
        {
            for (number, _) in track.places.iter().flatten() {
                self.of.remove(number);
            }
            track.packet().into_iter().for_each(record);
        }
    }
}

/// The number of an observation: the raw value of its stamp.
const fn number(observation: &Observation) -> u64 {
    observation.stamp.raw.value
}

impl Track {
    /// The max error of the delay between two points, if it is known; none unless both observed the packet.
    fn error(&self, [a, b]: [usize; 2]) -> Option<Option<Span>> {
        let [a, b] = [a, b].map(|point| self.places[point].as_ref());
        Some(a?.1.error_to(&b?.1))
    }

    /// The packet; none without observations.
    fn packet(self) -> Option<ChainPacket> {
        let last = self.places.len() - 1;
        let observed = || {
            self.places
                .iter()
                .enumerate()
                .filter_map(|(point, place)| place.as_ref().map(|(_, place)| (point, place)))
        };
        let (begin, first) = observed().next()?;
        let (end, final_place) = observed().next_back()?;
        let fate = match (begin, end) {
            (0, end) if end == last => Some(Fate::Complete),
            (0, _) => final_place.end,
            _ => first.begin,
        };
        // It was matched with one that is already joined with an identical packet.
        let fate = fate.unwrap_or(Fate::Duplicated);
        Some(ChainPacket {
            flow: first.flow,
            length: first.length,
            sequence: first.sequence,
            stamps: self
                .places
                .iter()
                .map(|place| place.as_ref().map(|(_, place)| place.stamp))
                .collect(),
            hops: self.places[1..]
                .iter()
                .map(|place| place.as_ref().and_then(|(_, place)| place.hop))
                .collect(),
            whole: self.whole,
            fate,
        })
    }
}
