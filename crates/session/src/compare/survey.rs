//! Clock difference of two files, estimated from the packets in both.

use wirestamp_capture::Error;
use wirestamp_capture::file::Reader;
use wirestamp_clock::{Span, Time, Utc};
use wirestamp_metrics::{ClockSkew, SkewEstimate};

use super::file::File;
use super::terms::Terms;
use crate::identity_sample::IdentitySample;
use crate::point_state::PointState;

/// Max identities per file.
const MAX_IDENTITIES: usize = 1 << 16;

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
    let mut pairs: Vec<_> =
        a.with(&b).filter_map(|(sent, received)| Some((sent, received? - sent))).collect();
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

fn sample(reader: Reader, terms: &Terms<'_>) -> Result<IdentitySample, Error> {
    let rule = terms.state.map(PointState::rule).unwrap_or_default();
    let state = PointState::default().recognising(rule);
    let mut file = File::new(reader, terms.partial, terms.filter, state);
    let mut sample = IdentitySample::new(MAX_IDENTITIES);
    while let Some(observation) = file.next()? {
        sample.add(observation.id, observation.stamp.utc);
    }
    Ok(sample)
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
}
