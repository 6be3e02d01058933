//! The newest gaps of a source, as long as it may turn out that the capture made them.

use std::collections::VecDeque;

use super::gap::Gap;
use super::gap_losses::{GapLosses, LossChange};
use super::missed::CaptureLosses;

/// Gaps of a source that are remembered.
const MAX_KEPT: usize = 16;

/// The newest gaps of a source, and what it was told that each comes to.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    newest_last: VecDeque<(Gap, GapLosses)>,
}

impl Gaps {
    /// Takes a gap, all of which was counted as the network's.
    pub(super) fn push(&mut self, gap: Gap, missed: &mut CaptureLosses) {
        missed.note_gap(&gap);
        let reported = gap.losses();
        if self.newest_last.len() >= MAX_KEPT {
            match self.newest_last.iter().position(|(gap, _)| !missed.affects(gap)) {
                Some(oldest) => drop(self.newest_last.remove(oldest)),
                None => missed.request_decision(),
            }
        }
        self.newest_last.push_back((gap, reported));
    }

    /// Takes note that a number has come late: what its gap came to, and comes to now. None if the
    /// gap is forgotten.
    pub(super) fn arrived(&mut self, number: u64) -> Option<LossChange> {
        let place = self.newest_last.iter().rposition(|(gap, _)| gap.has(number))?;
        let (gap, reported) = &mut self.newest_last[place];
        gap.arrived(number);
        let change = change_of(gap, reported);
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
    pub(super) fn apply_decisions(
        &mut self,
        missed: &mut CaptureLosses,
        mut tell: impl FnMut(LossChange),
    ) {
        for (gap, reported) in &mut self.newest_last {
            let change = change_of(gap, reported);
            if change.before != change.now {
                tell(change);
            }
        }
        while self.newest_last.len() > MAX_KEPT {
            self.newest_last.drain(..MAX_KEPT / 2).for_each(|(gap, _)| missed.forget(&gap));
        }
    }

    /// Forgets them all.
    pub(super) fn forget(&mut self, missed: &mut CaptureLosses) {
        self.newest_last.drain(..).for_each(|(gap, _)| missed.forget(&gap));
    }
}

/// The change since `reported`, which becomes the losses of now.
fn change_of(gap: &Gap, reported: &mut GapLosses) -> LossChange {
    let now = gap.losses();
    LossChange { before: std::mem::replace(reported, now), now, time: gap.until() }
}
