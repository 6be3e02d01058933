//! Tells RTP from everything else that begins with the same two bits, without being told a port.

use super::header::Header;

/// So many packets of one source have to follow others in sequence. RFC 3550 appendix A.1 asks for one
/// (`MIN_SEQUENTIAL` 2) where a port is known to be for RTP; here any datagram may be a coincidence.
const MIN_FOLLOWERS: u32 = 3;
/// A packet follows that is ahead by no more than this: losses are allowed for, and fields of other
/// protocols that count in greater steps are not.
const MAX_SEQUENCE_STEP: u16 = 16;
/// Packets of a candidate that are kept until it is a stream; recognition is not delayed by more.
const MAX_PACKETS: usize = 16;
/// Sources of one flow that are watched at once.
const MAX_CANDIDATES: usize = 4;

/// A source that may be one of RTP.
#[derive(Clone, Debug)]
struct Candidate {
    ssrc: u32,
    highest: u16,
    followers: u32,
    packets: Vec<Header>,
}

/// The sources of one flow that may be RTP, the one heard last at the end.
#[derive(Clone, Debug, Default)]
pub(super) struct Recognition {
    candidates: Vec<Candidate>,
}

impl Recognition {
    /// Takes a packet of a source that is not known yet. When it makes the source a stream, these are
    /// the packets of it that were kept, with this one as the last.
    pub(super) fn record(&mut self, header: &Header) -> Option<Vec<Header>> {
        let known = self.candidates.iter().position(|it| it.ssrc == header.ssrc);
        let Some(place) = known else {
            self.begin(header);
            return None;
        };
        let candidate = &mut self.candidates[place];
        candidate.follow(header);
        if candidate.followers >= MIN_FOLLOWERS {
            return Some(self.candidates.remove(place).packets);
        }
        self.candidates[place..].rotate_left(1);
        None
    }

    /// Begins to watch a source, in place of the one that was not heard for longest if need be.
    fn begin(&mut self, header: &Header) {
        if self.candidates.len() < MAX_CANDIDATES {
            self.candidates.push(Candidate::new(header));
            return;
        }
        self.candidates.rotate_left(1);
        if let Some(last) = self.candidates.last_mut() {
            last.restart(header);
        }
    }
}

impl Candidate {
    fn new(first: &Header) -> Self {
        Self { ssrc: first.ssrc, highest: first.sequence, followers: 0, packets: vec![*first] }
    }

    /// The same as [`Self::new`], in the memory of another: most sources are coincidences.
    fn restart(&mut self, first: &Header) {
        (self.ssrc, self.highest, self.followers) = (first.ssrc, first.sequence, 0);
        self.packets.clear();
        self.packets.push(*first);
    }

    fn follow(&mut self, header: &Header) {
        let ahead = header.sequence.wrapping_sub(self.highest);
        let behind = ahead.wrapping_neg();
        if (1..=MAX_SEQUENCE_STEP).contains(&ahead) {
            self.followers += 1;
            self.highest = header.sequence;
        } else if behind > MAX_SEQUENCE_STEP {
            self.restart(header);
            return;
        }
        if self.packets.len() == MAX_PACKETS {
            self.packets.remove(0);
        }
        self.packets.push(*header);
    }
}
