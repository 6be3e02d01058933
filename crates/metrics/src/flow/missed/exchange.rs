//! Exchange of missing packets between loss intervals, until no interval can account for a packet that is left over.
//!
//! Each interval alone takes the packets due nearest to it. Where intervals overlap, one may take packets that another
//! needs. The solution is a maximum matching, found by augmenting paths (C. Berge, Two Theorems in Graph Theory, 1957),
//! here from interval to interval.

use std::collections::VecDeque;

use super::bounds::IntervalTotal;
use super::interval::LossInterval;
use crate::flow::gap::Gap;
use crate::flow::uncertainty::UnnumberedPackets;

/// Shifts packets as long as this reduces the deficit of an interval: packets lost in it minus packets assigned to it.
/// At most one pass per interval bounds the time; the rest stays uncertain.
pub(super) fn exchange(
    intervals: &[(u64, LossInterval)],
    gaps: &mut [&mut Gap],
    others: &[UnnumberedPackets],
) {
    let deficit = |(id, it): &(u64, LossInterval)| {
        let taken: u64 = gaps.iter().map(|gap| gap.missed_in(&(*id..id + 1))).sum();
        IntervalTotal::of(it, others).min_numbered.saturating_sub(taken)
    };
    let mut deficit: Vec<_> = intervals.iter().map(deficit).collect();
    let links: Vec<_> = intervals.iter().map(|(id, it)| Link::new(*id, it, gaps)).collect();
    for _ in intervals {
        let Some(chain) = shortest_path(&links, gaps, &deficit) else { return };
        deficit[chain[0]] -= shift_packets(&links, gaps, &chain, deficit[chain[0]]);
    }
}

/// A loss interval with the indices of the gaps that overlap it.
struct Link<'a> {
    id: u64,
    interval: &'a LossInterval,
    near: Vec<usize>,
}

impl<'a> Link<'a> {
    fn new(id: u64, interval: &'a LossInterval, gaps: &[&mut Gap]) -> Self {
        let near = (0..gaps.len()).filter(|at| gaps[*at].overlaps(interval.times)).collect();
        Self { id, interval, near }
    }

    fn gaps<'g>(&self, gaps: &'g [&mut Gap]) -> impl Iterator<Item = &'g Gap> {
        self.near.iter().map(|at| &*gaps[*at])
    }

    /// Unassigned packets that may have passed in it.
    fn left_over(&self, gaps: &[&mut Gap]) -> u64 {
        self.gaps(gaps).map(|gap| gap.due(self.interval.times, gap.max_distance())).sum()
    }

    /// Assigned packets that may have passed in it: interval ID and number.
    fn within_reach(&self, gaps: &[&mut Gap]) -> impl Iterator<Item = (u64, u64)> {
        self.gaps(gaps).flat_map(|gap| gap.missed_near(self.interval.times))
    }
}

/// Indices of intervals: the first has a deficit, each next one holds packets that the previous one can take, and the
/// last can take unassigned packets.
fn shortest_path(links: &[Link<'_>], gaps: &[&mut Gap], deficit: &[u64]) -> Option<Vec<usize>> {
    let place = |id: u64| links.binary_search_by_key(&id, |link| link.id).ok();
    let mut seen: Vec<_> = deficit.iter().map(|it| *it > 0).collect();
    let mut before = vec![None; links.len()];
    let mut queue: VecDeque<_> = (0..links.len()).filter(|at| seen[*at]).collect();
    while let Some(at) = queue.pop_front() {
        if links[at].left_over(gaps) > 0 {
            let mut chain: Vec<_> = std::iter::successors(Some(at), |at| before[*at]).collect();
            chain.reverse();
            return Some(chain);
        }
        for next in links[at].within_reach(gaps).filter_map(|(id, _)| place(id)) {
            if !std::mem::replace(&mut seen[next], true) {
                before[next] = Some(at);
                queue.push_back(next);
            }
        }
    }
    None
}

/// Shifts packets along a path: the last interval takes unassigned packets, each other one takes from the next.
/// Returns the number.
fn shift_packets(links: &[Link<'_>], gaps: &mut [&mut Gap], chain: &[usize], deficit: u64) -> u64 {
    let chain: Vec<_> = chain.iter().map(|at| &links[*at]).collect();
    let Some(last) = chain.last() else { return 0 };
    let pairs = || chain.windows(2).map(|pair| (pair[0], pair[1]));
    let count = pairs().fold(deficit.min(last.left_over(gaps)), |count, (link, next)| {
        let theirs = link.within_reach(gaps).filter(|(id, _)| *id == next.id);
        count.min(theirs.map(|(_, packets)| packets).sum())
    });
    last.interval.take(last.id, count, gaps);
    for (link, next) in pairs() {
        let mut left = count;
        for at in &link.near {
            left -= gaps[*at].reassign(link.interval.times, next.id, link.id, left);
        }
    }
    count
}
