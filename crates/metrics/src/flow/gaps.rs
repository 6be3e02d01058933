//! Newest gaps of a source, kept while they may still be assigned to the capture.

use std::collections::VecDeque;

use super::gap::Gap;
use super::gap_losses::{GapLosses, LossChange};
use super::missed::CaptureLosses;

/// Max gaps kept for a source.
const MAX_KEPT: usize = 16;

/// Newest gaps of a source, each with the losses reported for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    newest_last: VecDeque<(Gap, GapLosses)>,
}

impl Gaps {
    /// Adds a gap. All of its losses were counted as network losses.
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

    /// Records a late arrival. Returns the change of the losses; none if the gap is no longer kept.
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

    /// Gaps, for a new assignment.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Gap> {
        self.newest_last.iter_mut().map(|(gap, _)| gap)
    }

    /// Reports the changes since the last call, and removes gaps where there are too many.
    pub(super) fn apply_decisions(
        &mut self,
        missed: &mut CaptureLosses,
        mut report: impl FnMut(LossChange),
    ) {
        for (gap, reported) in &mut self.newest_last {
            let change = change_of(gap, reported);
            if change.before != change.now {
                report(change);
            }
        }
        while self.newest_last.len() > MAX_KEPT {
            self.newest_last.drain(..MAX_KEPT / 2).for_each(|(gap, _)| missed.forget(&gap));
        }
    }

    /// Removes all gaps.
    pub(super) fn clear(&mut self, missed: &mut CaptureLosses) {
        self.newest_last.drain(..).for_each(|(gap, _)| missed.forget(&gap));
    }
}

/// Change since `reported`, which is set to the current losses.
fn change_of(gap: &Gap, reported: &mut GapLosses) -> LossChange {
    let now = gap.losses();
    LossChange { before: std::mem::replace(reported, now), now, time: gap.until }
}
