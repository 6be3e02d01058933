//! The newest gaps of a source, as long as it may turn out that the capture made them.

use std::collections::VecDeque;

use super::gap::Gap;
use super::gap_losses::{Change, Losses};
use super::missed::MissedTimes;

/// Gaps of a source that are remembered.
const REMEMBERED: usize = 16;

/// The newest gaps of a source, and what it was told that each comes to.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    newest_last: VecDeque<(Gap, Losses)>,
}

impl Gaps {
    /// Takes a gap, all of which was counted as the network's.
    pub(super) fn push(&mut self, gap: Gap, missed: &mut MissedTimes) {
        missed.hear_of(&gap);
        let told = gap.losses();
        if self.newest_last.len() >= REMEMBERED {
            match self.newest_last.iter().position(|(gap, _)| !missed.concern(gap)) {
                Some(oldest) => drop(self.newest_last.remove(oldest)),
                None => missed.press(),
            }
        }
        self.newest_last.push_back((gap, told));
    }

    /// Takes note that a number has come late: what its gap came to, and comes to now. None if the
    /// gap is forgotten.
    pub(super) fn came(&mut self, number: u64) -> Option<Change> {
        let place = self.newest_last.iter().rposition(|(gap, _)| gap.has(number))?;
        let (gap, told) = &mut self.newest_last[place];
        gap.came(number);
        let change = change_of(gap, told);
        if gap.is_filled() {
            self.newest_last.remove(place);
        }
        Some(change)
    }

    /// The gaps, to be decided on.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Gap> {
        self.newest_last.iter_mut().map(|(gap, _)| gap)
    }

    /// Tells what a decision has changed, and makes room for more gaps.
    pub(super) fn settle(&mut self, missed: &mut MissedTimes, mut tell: impl FnMut(Change)) {
        for (gap, told) in &mut self.newest_last {
            let change = change_of(gap, told);
            if change.before != change.now {
                tell(change);
            }
        }
        while self.newest_last.len() > REMEMBERED {
            self.newest_last.drain(..REMEMBERED / 2).for_each(|(gap, _)| missed.forget(&gap));
        }
    }

    /// Forgets them all.
    pub(super) fn forget(&mut self, missed: &mut MissedTimes) {
        self.newest_last.drain(..).for_each(|(gap, _)| missed.forget(&gap));
    }
}

/// The change since `reported`, which becomes the losses of now.
fn change_of(gap: &Gap, reported: &mut Losses) -> Change {
    let now = gap.losses();
    Change { before: std::mem::replace(reported, now), now, time: gap.until() }
}
