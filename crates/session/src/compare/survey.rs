//! Clock difference of two files, estimated from the packets in both.

use std::collections::HashMap;

use wirestamp_capture::Error;
use wirestamp_capture::file::Reader;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{ClockSkew, SkewEstimate};
use wirestamp_packet::PacketId;

use super::file::File;
use super::terms::Terms;
use crate::point_state::PointState;

/// Max identities per file. Beyond this number, half of them are dropped, the same ones in both files. Each takes
/// 24 bytes, in a table of twice the size.
const MOST: usize = 1 << 16;

/// Max plausible skew of a computer clock, as a ratio. Pairs that imply more are rejected.
const STEEPEST: i64 = 1000;

/// Common packets of two files, independent of their clocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Survey {
    /// Distinct packets in both files, among those compared.
    pub common: u64,
    /// Apparent offset of B's clock ahead of A's: the min difference of a packet's stamps, so that no
    /// delay is negative. Includes the min delay.
    pub offset: Span,
    /// Skew of B's clock against A's.
    pub skew: Option<SkewEstimate>,
}

/// Finds packets that are in both files, at any time. `None` if there are none. Memory is
/// bounded: of many packets, a sample by identity is compared, the same in both files.
///
/// # Errors
/// When a file is damaged and `partial` is not set.
pub fn survey(a: Reader, b: Reader, terms: &Terms<'_>) -> Result<Option<Survey>, Error> {
    let [a, b] = [sample(a, terms)?, sample(b, terms)?];
    let mut pairs: Vec<_> = a
        .seen
        .iter()
        .filter_map(|(id, sent)| Some(((*sent)?, (*b.seen.get(id)?)?)))
        .map(|(sent, received)| (sent, received - sent))
        .collect();
    pairs.sort_unstable();
    Ok(judge(&pairs, terms.correlation.timeout))
}

/// Estimate from pairs of send time and stamp difference, in order of time. A difference far from the median is a
/// false match: the packet's true counterpart is not in the other file.
fn judge(pairs: &[(Time<Utc>, Span)], timeout: Span) -> Option<Survey> {
    let mut differences: Vec<_> = pairs.iter().map(|(_, difference)| *difference).collect();
    differences.sort_unstable();
    let median = *differences.get(differences.len() / 2)?;
    let (first, last) = (pairs.first()?.0, pairs.last()?.0);
    let drift = Span::from_nanos((last - first).as_nanos() / STEEPEST);
    let is_near = |difference: Span| (difference - median).abs() <= timeout + drift;
    let mut survey = Survey { common: 0, offset: Span::MAX, skew: None };
    let mut skew = ClockSkew::default();
    for (sent, difference) in pairs.iter().filter(|(_, difference)| is_near(*difference)) {
        survey.common += 1;
        survey.offset = survey.offset.min(*difference);
        skew.record(*sent, *difference);
    }
    Some(Survey { skew: skew.estimate(), ..survey })
}

/// Sampled identities of a file and their stamps; `None` for duplicates.
struct Sample {
    /// Only identities that have none of these bits are kept.
    mask: u64,
    seen: HashMap<PacketId, Option<Time<Utc>>>,
}

fn sample(reader: Reader, terms: &Terms<'_>) -> Result<Sample, Error> {
    let rule = terms.state.map(PointState::rule).unwrap_or_default();
    let state = PointState::default().recognising(rule);
    let mut file = File::new(reader, terms.partial, terms.filter, state);
    let mut sample = Sample { mask: 0, seen: HashMap::new() };
    while let Some(observation) = file.next()? {
        sample.add(observation.id, observation.stamp.utc);
    }
    Ok(sample)
}

impl Sample {
    fn add(&mut self, id: PacketId, time: Time<Utc>) {
        if id.0 & self.mask != 0 {
            return;
        }
        self.seen.entry(id).and_modify(|seen| *seen = None).or_insert(Some(time));
        if self.seen.len() > MOST {
            self.mask = self.mask << 1 | 1;
            let mask = self.mask;
            self.seen.retain(|id, _| id.0 & mask == 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 86_400_000_000_000;

    fn pairs(of: impl IntoIterator<Item = (i64, i64)>) -> Vec<(Time<Utc>, Span)> {
        of.into_iter().map(|(at, by)| (Time::from_nanos(at), Span::from_nanos(by))).collect()
    }

    #[test]
    fn the_offset_is_the_least_difference_near_the_median() {
        let stray = (5, 7);
        let found = pairs([(0, DAY + 900), stray, (10, DAY + 500), (20, DAY + 700)]);
        let survey = judge(&found, Span::from_secs(1)).expect("packets in common");
        assert_eq!((survey.common, survey.offset.as_nanos()), (3, DAY + 500));
        assert_eq!(judge(&[], Span::from_secs(1)), None);
    }

    #[test]
    fn clocks_that_come_apart_by_more_than_the_time_out_are_followed() {
        let hours = pairs((0..7200).map(|at| (at * 1_000_000_000, DAY + at * 200_000)));
        let survey = judge(&hours, Span::from_millis(100)).expect("packets in common");
        assert_eq!((survey.common, survey.offset.as_nanos()), (7200, DAY));
        let skew = survey.skew.expect("a skew");
        assert!((skew.ppm - 200.0).abs() < 1e-3 && skew.is_certain(), "{skew:?}");
    }

    #[test]
    fn samples_of_many_packets_keep_the_same_ones_and_stay_small() {
        let many = MOST as u64 * 5;
        let [mut few, mut all] = [(); 2].map(|()| Sample { mask: 0, seen: HashMap::new() });
        let id = |number: u64| PacketId(number.wrapping_mul(0x9e37_79b9_7f4a_7c15).swap_bytes());
        (0..many).for_each(|number| all.add(id(number), Time::from_nanos(1)));
        (0..many).step_by(100).for_each(|number| few.add(id(number), Time::from_nanos(2)));
        assert!((MOST / 4..=MOST).contains(&all.seen.len()), "{}", all.seen.len());
        let common = few.seen.keys().filter(|id| all.seen.contains_key(id)).count();
        let expected = few.seen.len() * all.seen.len() / usize::try_from(many).expect("fits");
        assert!(common.abs_diff(expected) < expected / 4, "{common} {expected}");
    }
}
