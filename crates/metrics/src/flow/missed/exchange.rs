//! Stretches hand missing packets on to each other until none is left over that one of them can account for.
//!
//! Each stretch by itself takes what was due nearest to it. Where stretches overlap, one may so have taken
//! what another needs, and have no room for a packet that only it can account for. What is wanted is a
//! greatest matching of both, which is found by augmenting paths (C. Berge, Two Theorems in Graph Theory,
//! 1957), here from stretch to stretch.

use std::collections::VecDeque;

use super::bounds::Total;
use super::interval::LossInterval;
use crate::flow::gap::Gap;
use crate::flow::unnumbered::Unnumbered;

/// Hands packets on as long as a stretch gains by it of which it is sure that the capture lost more of them
/// in it than were left for it.
///
/// No more often than there are stretches, so that no capture keeps us for long: what is left over then
/// stays in doubt.
pub(super) fn exchange(
    stretches: &[(u64, LossInterval)],
    gaps: &mut [&mut Gap],
    others: &[Unnumbered],
) {
    let wanted = |(name, it): &(u64, LossInterval)| {
        let taken: u64 = gaps.iter().map(|gap| gap.missed_in(&(*name..name + 1))).sum();
        Total::of(it, others).fewest.saturating_sub(taken)
    };
    let mut wanted: Vec<_> = stretches.iter().map(wanted).collect();
    let links: Vec<_> = stretches.iter().map(|(name, it)| Link::new(*name, it, gaps)).collect();
    for _ in stretches {
        let Some(chain) = shortest_chain(&links, gaps, &wanted) else { return };
        wanted[chain[0]] -= hand_on(&links, gaps, &chain, wanted[chain[0]]);
    }
}

/// A stretch, and the places of the gaps that were open in it, so that they are looked for once.
struct Link<'a> {
    name: u64,
    stretch: &'a LossInterval,
    near: Vec<usize>,
}

impl<'a> Link<'a> {
    fn new(name: u64, stretch: &'a LossInterval, gaps: &[&mut Gap]) -> Self {
        let near = (0..gaps.len()).filter(|at| gaps[*at].shares(stretch.times)).collect();
        Self { name, stretch, near }
    }

    fn gaps<'g>(&self, gaps: &'g [&mut Gap]) -> impl Iterator<Item = &'g Gap> {
        self.near.iter().map(|at| &*gaps[*at])
    }

    /// How many packets nothing accounts for that may have passed in it.
    fn left_over(&self, gaps: &[&mut Gap]) -> u64 {
        self.gaps(gaps).map(|gap| gap.due(self.stretch.times, gap.farthest())).sum()
    }

    /// The packets that stretches account for and that may have passed in it: whose, and how many.
    fn within_reach(&self, gaps: &[&mut Gap]) -> impl Iterator<Item = (u64, u64)> {
        self.gaps(gaps).flat_map(|gap| gap.missed_near(self.stretch.times))
    }
}

/// The places of stretches of which the first wants more, each next has something that the one before may
/// take, and the last can do with something that is left over.
fn shortest_chain(links: &[Link<'_>], gaps: &[&mut Gap], wanted: &[u64]) -> Option<Vec<usize>> {
    let place = |name: u64| links.binary_search_by_key(&name, |link| link.name).ok();
    let mut seen: Vec<_> = wanted.iter().map(|it| *it > 0).collect();
    let mut before = vec![None; links.len()];
    let mut queue: VecDeque<_> = (0..links.len()).filter(|at| seen[*at]).collect();
    while let Some(at) = queue.pop_front() {
        if links[at].left_over(gaps) > 0 {
            let mut chain: Vec<_> = std::iter::successors(Some(at), |at| before[*at]).collect();
            chain.reverse();
            return Some(chain);
        }
        for next in links[at].within_reach(gaps).filter_map(|(name, _)| place(name)) {
            if !std::mem::replace(&mut seen[next], true) {
                before[next] = Some(at);
                queue.push_back(next);
            }
        }
    }
    None
}

/// The last of a chain takes of what is left over, and each takes as much from the next: so many packets.
fn hand_on(links: &[Link<'_>], gaps: &mut [&mut Gap], chain: &[usize], wanted: u64) -> u64 {
    let chain: Vec<_> = chain.iter().map(|at| &links[*at]).collect();
    let Some(last) = chain.last() else { return 0 };
    let pairs = || chain.windows(2).map(|pair| (pair[0], pair[1]));
    let count = pairs().fold(wanted.min(last.left_over(gaps)), |count, (link, next)| {
        let theirs = link.within_reach(gaps).filter(|(name, _)| *name == next.name);
        count.min(theirs.map(|(_, packets)| packets).sum())
    });
    last.stretch.take(last.name, count, gaps);
    for (link, next) in pairs() {
        let mut left = count;
        for at in &link.near {
            left -= gaps[*at].hand_over(link.stretch.times, next.name, link.name, left);
        }
    }
    count
}
