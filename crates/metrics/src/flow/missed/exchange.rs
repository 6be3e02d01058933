//! Stretches hand missing packets on to each other until none is left over that one of them can account for.
//!
//! Each stretch by itself takes what was due nearest to it. Where stretches overlap, one may so have taken
//! what another needs, and have no room for a packet that only it can account for. What is wanted is a
//! greatest matching of both, which is found by augmenting paths (C. Berge, Two Theorems in Graph Theory,
//! 1957), here from stretch to stretch.

use std::collections::VecDeque;

use super::bounds::Total;
use super::stretch::Stretch;
use crate::flow::gap::Gap;
use crate::flow::unnumbered::Unnumbered;

/// Hands packets on as long as a stretch gains by it of which it is sure that the capture lost more of them
/// in it than were left for it.
///
/// No more often than there are stretches, so that no capture keeps us for long: what is left over then
/// stays in doubt.
pub(super) fn exchange(stretches: &[(u64, Stretch)], gaps: &mut [&mut Gap], others: &[Unnumbered]) {
    let wanted = |(name, it): &(u64, Stretch)| {
        let taken: u64 = gaps.iter().map(|gap| gap.missed_in(&(*name..name + 1))).sum();
        Total::of(it, others).fewest.saturating_sub(taken)
    };
    let mut wanted: Vec<_> = stretches.iter().map(wanted).collect();
    for _ in stretches {
        let Some(chain) = shortest_chain(stretches, gaps, &wanted) else { return };
        wanted[chain[0]] -= hand_on(stretches, gaps, &chain, wanted[chain[0]]);
    }
}

/// The places of stretches of which the first wants more, each next has something that the one before may
/// take, and the last can do with something that is left over.
fn shortest_chain(
    stretches: &[(u64, Stretch)],
    gaps: &[&mut Gap],
    wanted: &[u64],
) -> Option<Vec<usize>> {
    let (first, _) = stretches.first()?;
    let place = |name: u64| usize::try_from(name.checked_sub(*first)?).ok();
    let mut seen: Vec<_> = wanted.iter().map(|it| *it > 0).collect();
    let mut before = vec![None; stretches.len()];
    let mut queue: VecDeque<_> = (0..stretches.len()).filter(|at| seen[*at]).collect();
    while let Some(at) = queue.pop_front() {
        let (_, stretch) = &stretches[at];
        if stretch.left_over(gaps) > 0 {
            let mut chain: Vec<_> = std::iter::successors(Some(at), |at| before[*at]).collect();
            chain.reverse();
            return Some(chain);
        }
        let names = stretch.near(gaps).flat_map(|gap| gap.missed_near(stretch.times));
        for next in names.filter_map(|(name, _)| place(name)) {
            if !std::mem::replace(&mut seen[next], true) {
                before[next] = Some(at);
                queue.push_back(next);
            }
        }
    }
    None
}

/// The last of a chain takes of what is left over, and each takes as much from the next: so many packets.
fn hand_on(
    stretches: &[(u64, Stretch)],
    gaps: &mut [&mut Gap],
    chain: &[usize],
    wanted: u64,
) -> u64 {
    let chain: Vec<_> = chain.iter().map(|at| stretches[*at]).collect();
    let Some((name, last)) = chain.last() else { return 0 };
    let count = chain.windows(2).fold(wanted.min(last.left_over(gaps)), |count, pair| {
        let [(_, stretch), (next, _)] = pair else { return count };
        let theirs = stretch.near(gaps).flat_map(|gap| gap.missed_near(stretch.times));
        count.min(theirs.filter(|(name, _)| name == next).map(|(_, packets)| packets).sum())
    });
    last.take(*name, count, gaps);
    for pair in chain.windows(2) {
        let [(to, stretch), (from, _)] = pair else { continue };
        let mut left = count;
        for gap in stretch.near_mut(gaps) {
            left -= gap.hand_over(stretch.times, *from, *to, left);
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use wirestamp_clock::{Span, Time};

    use super::*;
    use crate::Missed;
    use crate::flow::missed::MissedTimes;

    /// Numbers are missing that were due every 50 ns from 50 ns on, and may have passed 10 ns before or
    /// after; the capture lost one packet in each stretch. How many does it account for?
    fn accounted_for(missing: u64, stretches: &[(i64, i64)]) -> u64 {
        let times = (Time::from_nanos(0), Time::from_nanos(50 * (missing.cast_signed() + 1)));
        let mut gap = Gap::before(missing, missing, times, Some(Span::from_nanos(10)));
        let mut missed = MissedTimes::default();
        for (from, until) in stretches {
            let [from, until] = [from, until].map(|it| Time::from_nanos(*it));
            missed.note(Missed { from, until, packets: 1 });
        }
        missed.decide(&mut [&mut gap], &[]);
        gap.losses().by_capture
    }

    #[test]
    fn a_stretch_leaves_to_another_what_only_that_can_account_for() {
        // The first takes what was due at 100, which is all that is near the second.
        assert_eq!(accounted_for(3, &[(60, 105), (100, 105)]), 2);
        // So do the second and the third.
        assert_eq!(accounted_for(4, &[(60, 105), (110, 155), (150, 155)]), 3);
    }

    #[test]
    fn what_nobody_can_account_for_is_left_over() {
        assert_eq!(accounted_for(3, &[(100, 105), (95, 105)]), 1);
        assert_eq!(accounted_for(3, &[]), 0);
    }
}
