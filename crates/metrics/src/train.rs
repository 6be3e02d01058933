//! Gaps of packet trains before and after the network.

use wirestamp_clock::{Time, Utc};

use crate::Distribution;

/// Gaps between neighbours of a stream before and after the network: between two packets that left A consecutively and
/// arrived at B consecutively in that order.
///
/// Both distributions cover the same pairs, so they can be compared: a bottleneck spreads packets that left together,
/// a draining queue compresses them. The difference of the gaps of a pair is its delay variation (RFC 3393). Memory is
/// constant.
#[derive(Clone, Debug, Default)]
pub struct TrainGaps {
    last: Option<MatchedPacket>,
    /// Gaps at A.
    pub at_a: Distribution,
    /// Gaps of the same pairs at B.
    pub at_b: Distribution,
}

/// A packet matched at both points.
#[derive(Clone, Copy, Debug)]
pub struct MatchedPacket {
    /// Number in the order of sending.
    pub sequence: u64,
    /// Time at A.
    pub sent: Time<Utc>,
    /// Time at B.
    pub received: Time<Utc>,
}

impl TrainGaps {
    /// Records the next packet, in the order of arrival.
    pub fn record(&mut self, packet: MatchedPacket) {
        if let Some(last) = self.last.replace(packet)
            && last.sequence.checked_add(1) == Some(packet.sequence)
        {
            self.at_a.record(packet.sent - last.sent);
            self.at_b.record(packet.received - last.received);
        }
    }

    /// Adds the figures of another stream.
    pub fn merge(&mut self, other: &Self) {
        self.at_a.merge(&other.at_a);
        self.at_b.merge(&other.at_b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_neighbours_that_stay_neighbours_have_a_gap() {
        let mut train = TrainGaps::default();
        let arrivals = [(0, 0, 5), (1, 1, 17), (3, 3, 20), (2, 2, 21), (4, 4, 30), (5, 5, 31)];
        for (sequence, sent, received) in arrivals {
            let [sent, received] = [sent, received].map(Time::from_nanos);
            train.record(MatchedPacket { sequence, sent, received });
        }
        let gaps = |gaps: &Distribution| {
            let gaps = gaps.summary().expect("gaps");
            (gaps.count, gaps.min, gaps.max)
        };
        assert_eq!((gaps(&train.at_a), gaps(&train.at_b)), ((2, 1, 1), (2, 1, 12)));
    }
}
