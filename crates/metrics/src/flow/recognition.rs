//! Recognition of RTP on any port.

use super::header::Header;

/// Min packets of one source that follow others in sequence. RFC 3550 appendix A.1 requires one (`MIN_SEQUENTIAL` 2)
/// on ports known to carry RTP; here any datagram may match by chance.
const MIN_FOLLOWERS: u32 = 3;
/// Max sequence step of a following packet: allows losses, excludes fields of other protocols that count in larger
/// steps.
const MAX_SEQUENCE_STEP: u16 = 16;
/// Max packets kept of a candidate, which also bounds the delay of recognition.
const MAX_PACKETS: usize = 16;
/// Max candidates of a flow.
const MAX_CANDIDATES: usize = 4;

/// A source that may be RTP.
#[derive(Clone, Debug)]
struct Candidate {
    ssrc: u32,
    highest: u16,
    followers: u32,
    packets: Vec<Header>,
}

/// Candidates of one flow, most recent last.
#[derive(Clone, Debug, Default)]
pub(super) struct Recognition {
    candidates: Vec<Candidate>,
}

impl Recognition {
    /// Records a packet of an unrecognised source. If this recognises the source, returns its kept packets, this one
    /// last.
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

    /// Adds a source; replaces the least recent one if there are too many.
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

    /// As [`Self::new`], reusing memory: most candidates match by chance.
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
