//! The times between packets that follow each other.

/// A packet that was stamped. Times are in nanoseconds since some moment, the same for all packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Passage {
    /// Its number in the flow.
    pub(crate) packet: u64,
    /// When it was sent, if its sender knows.
    pub(crate) sent_ns: Option<f64>,
    /// Its stamp.
    pub(crate) stamped_ns: f64,
}

/// The time between a packet and the one before it, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gap {
    /// The number of the later packet.
    pub(crate) packet: u64,
    /// Between their stamps.
    pub(crate) stamped_ns: f64,
    /// Between their sendings, where both are known.
    pub(crate) sent_ns: Option<f64>,
}

impl Gap {
    /// How much longer it is by the stamps than by the sender.
    pub(crate) fn error_ns(&self) -> Option<f64> {
        Some(self.stamped_ns - self.sent_ns?)
    }
}

/// The gaps between packets with consecutive numbers. The time across a lost packet is not a gap of the
/// flow.
pub(crate) fn gaps(passages: impl Iterator<Item = Passage>) -> Vec<Gap> {
    let mut before: Option<Passage> = None;
    let between = |now: Passage| {
        let before = before.replace(now).filter(|before| before.packet + 1 == now.packet)?;
        Some(Gap {
            packet: now.packet,
            stamped_ns: now.stamped_ns - before.stamped_ns,
            sent_ns: now.sent_ns.zip(before.sent_ns).map(|(now, before)| now - before),
        })
    };
    passages.filter_map(between).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage((packet, sent_ns, stamped_ns): (u64, Option<f64>, f64)) -> Passage {
        Passage { packet, sent_ns, stamped_ns }
    }

    #[test]
    fn gaps_are_between_neighbours_and_their_errors_against_the_sender() {
        let passages = [
            (0, Some(0.0), 5.0),
            (1, Some(100.0), 108.0),
            (3, Some(300.0), 300.0),
            (4, None, 410.0),
        ];
        let gaps = gaps(passages.into_iter().map(passage));
        let found: Vec<_> = gaps.iter().map(|gap| (gap.packet, gap.stamped_ns)).collect();
        assert_eq!(found, [(1, 103.0), (4, 110.0)]);
        assert_eq!(gaps[0].error_ns(), Some(3.0));
        assert_eq!(gaps[1].error_ns(), None);
    }

    #[test]
    fn one_packet_has_no_gap() {
        assert_eq!(gaps([passage((7, None, 1.0))].into_iter()), []);
        assert_eq!(gaps(std::iter::empty()), []);
    }
}
