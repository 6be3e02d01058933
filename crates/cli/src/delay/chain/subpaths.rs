//! The sub-paths of several points, and what distinguishes them.

use super::super::document::{ChainDocument, SubpathDocument};
use super::super::result::DelayResult;
use crate::table::table;

/// A sub-path (RFC 6049): the measurement between two points.
pub(super) struct Subpath<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) result: DelayResult,
    /// Undetermined packets that the second point did not capture, as a later point observed them.
    pub(super) not_captured: u64,
}

/// The sub-paths between neighbours, and the complete path from the first point to the last.
pub(super) struct Chain<'a> {
    pub(super) subpaths: Vec<Subpath<'a>>,
    pub(super) complete: Subpath<'a>,
}

impl Subpath<'_> {
    pub(super) fn name(&self) -> String {
        format!("{} > {}", self.from, self.to)
    }

    /// The two points with the letters that notes use.
    pub(super) fn lettered(&self) -> String {
        format!("{} (A) > {} (B)", self.from, self.to)
    }

    /// A note on packets that the second point did not capture.
    pub(super) fn not_captured_note(&self) -> Option<String> {
        (self.not_captured > 0).then(|| {
            format!(
                "{} packets that were not observed at {} were observed at a later point: they are undetermined, not \
                 lost.",
                self.not_captured, self.to
            )
        })
    }

    fn document(&self) -> anyhow::Result<SubpathDocument<'_>> {
        Ok(SubpathDocument { from: self.from, to: self.to, result: self.result.document()? })
    }

    /// Packets lost while the second point captured.
    fn lost(&self) -> u64 {
        let lost = self.result.flows.total().counts().lost;
        lost.saturating_sub(self.result.lost_outside_capture)
    }

    /// The median delay; none if the error of the clocks is unknown, because their difference may be larger.
    fn median(&self) -> Option<Figure> {
        let (total, clocks) = (self.result.flows.total(), &self.result.clocks);
        let error = clocks.max_error(&total).filter(|_| clocks.relative().is_none())?;
        let value = total.delay().summary()?.p50;
        Some(Figure { value, error: error.saturating_add(value.abs() / RESOLUTION) })
    }

    /// The delay variation, PDV p99.
    fn variation(&self) -> Option<Figure> {
        let delay = self.result.flows.total().delay().summary()?;
        let largest = delay.min.abs().max(delay.max.abs());
        Some(Figure { value: delay.above_minimum().p99, error: largest / RESOLUTION })
    }
}

/// A figure in nanoseconds with its max error.
#[derive(Clone, Copy)]
struct Figure {
    value: i64,
    error: i64,
}

/// Relative resolution of percentiles: one part in this many.
const RESOLUTION: i64 = 2048;

/// The index of the largest figure; none if its difference from another one may be an error, or if one is unknown.
fn largest(figures: &[Option<Figure>]) -> Option<usize> {
    let figures: Option<Vec<_>> = figures.iter().copied().collect();
    let mut figures: Vec<_> = figures?.into_iter().enumerate().collect();
    figures.sort_by_key(|(_, figure)| std::cmp::Reverse(figure.value));
    let [(place, first), (_, second), ..] = figures[..] else { return None };
    (first.value - second.value > first.error + second.error).then_some(place)
}

impl<'a> Chain<'a> {
    /// The sub-paths, then the complete path.
    pub(super) fn all(&self) -> impl Iterator<Item = &Subpath<'a>> {
        self.subpaths.iter().chain([&self.complete])
    }

    pub(super) fn document(&self) -> anyhow::Result<ChainDocument<'_>> {
        let subpaths: anyhow::Result<Vec<_>> =
            self.subpaths.iter().map(Subpath::document).collect();
        Ok(ChainDocument { subpaths: subpaths?, complete_path: self.complete.document()? })
    }

    pub(super) fn text(&self) -> String {
        let rows: Vec<_> = self.all().map(|it| it.result.total_row(it.name())).collect();
        let mut lines = self.conclusions();
        let notes: Vec<_> =
            self.all().map(|it| it.result.caveats(&it.result.flows.total())).collect();
        // Common notes are printed once.
        let is_common = |note: &String| notes.iter().all(|all| all.contains(note));
        for (subpath, its_notes) in self.all().zip(&notes) {
            let own = its_notes.iter().filter(|note| !is_common(note));
            let own = own.cloned().chain(subpath.not_captured_note());
            lines.extend(own.map(|note| format!("{}: {note}", subpath.lettered())));
        }
        lines.extend(notes[0].iter().filter(|note| is_common(note)).cloned());
        table(&self.complete.result.quality_header(), &rows) + &lines.join("\n") + "\n"
    }

    /// The sub-path with the most losses, and those that add the most delay and variation; nothing where they are unknown
    /// or not distinguishable.
    pub(super) fn conclusions(&self) -> Vec<String> {
        // A sub-path does not lose more than the complete path, unless its points observed different packets.
        let is_known = |it: &Subpath<'_>| {
            it.result.unknown_loss.is_none() && it.lost() <= self.complete.lost()
        };
        let worst = self.subpaths.iter().max_by_key(|it| it.lost());
        let worst = worst.filter(|it| self.subpaths.iter().all(is_known) && it.lost() > 0);
        let of = |figure: fn(&Subpath<'_>) -> Option<Figure>| {
            let figures: Vec<_> = self.subpaths.iter().map(figure).collect();
            largest(&figures).map(|place| self.subpaths[place].name())
        };
        let delay = of(|it| it.median());
        let variation = of(|it| it.variation());
        let lines = [
            worst.map(|it| format!("Most packets are lost in {}.", it.name())),
            delay.map(|name| format!("{name} adds the most delay (p50).")),
            variation.map(|name| format!("{name} adds the most delay variation (PDV p99).")),
        ];
        lines.into_iter().flatten().collect()
    }
}
