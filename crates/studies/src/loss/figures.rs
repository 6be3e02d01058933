//! The figures of the experiment.

use super::findings::{CellFindings, LossStudyResult};
use super::rounds::{CORES, Condition, LossStudyScale};
use wirestamp_report::axis::Axis;
use wirestamp_report::figures::{Figure, Frame, Line, lines, ticks};
use wirestamp_report::format::real;

/// The loss against the packet size without a gap, as Figure 6 a; none if nothing was measured.
pub(super) fn against_size(
    findings: &LossStudyResult,
    size: LossStudyScale,
    busy_core: bool,
    screen: (u32, u32),
    id: &str,
) -> Option<Figure> {
    let gap_ns = *size.gaps_ns.iter().min()?;
    let is_meant = |condition: Condition| condition.gap_ns == gap_ns;
    let at = |condition: Condition| f64::from(condition.frame_bytes);
    let lines = of_methods(findings, busy_core, is_meant, at);
    let most = f64::from(*size.frame_bytes.iter().max()?);
    let x = Axis::of_numbers("packet size (bytes)", 0.0..most * 1.02, ticks(screen));
    let caption = "Packets as close as they can be sent.";
    draw(id, screen, ("packet size", busy_core, caption), &x, lines)
}

/// The loss against the gap with the shortest packets, as Figure 6 b; none if nothing was measured.
pub(super) fn against_gap(
    findings: &LossStudyResult,
    size: LossStudyScale,
    busy_core: bool,
    screen: (u32, u32),
    id: &str,
) -> Option<Figure> {
    let frame_bytes = *size.frame_bytes.iter().min()?;
    let is_meant = |condition: Condition| condition.frame_bytes == frame_bytes;
    let lines = of_methods(findings, busy_core, is_meant, |condition| real(condition.gap_ns));
    let most = real(*size.gaps_ns.iter().max()?).max(1.0);
    let x = Axis::of_durations("from one packet to the next", 0.0..most * 1.02, ticks(screen));
    let caption = format!("Packets of {frame_bytes} bytes; at 0, as close as they can be sent.");
    draw(id, screen, ("gap", busy_core, &caption), &x, lines)
}

/// A line of each way to capture through the conditions that are meant.
fn of_methods(
    findings: &LossStudyResult,
    busy_core: bool,
    is_meant: impl Fn(Condition) -> bool,
    at: impl Fn(Condition) -> f64,
) -> Vec<Line> {
    let point = |cell: &CellFindings| Some((at(cell.condition), cell.loss_percent?));
    let of_method = |method| {
        let cells = findings.cells.iter().filter(|cell| {
            let condition = cell.condition;
            condition.method == method && condition.busy_core == busy_core && is_meant(condition)
        });
        cells.filter_map(point).collect()
    };
    (0..findings.methods.len()).map(of_method).collect()
}

fn draw(
    id: &str,
    size: (u32, u32),
    (what, busy_core, how): (&str, bool, &str),
    x: &Axis,
    all: Vec<Line>,
) -> Option<Figure> {
    let ends = all.iter().flatten().map(|(_, loss)| loss.mean + loss.ci95.unwrap_or(0.0));
    let most = ends.filter(|end| end.is_finite()).reduce(f64::max)?.clamp(1.0, 100.0);
    let y = Axis::of_numbers("packets lost (%)", 0.0..most * 1.05, 5.0);
    let core = CORES[usize::from(busy_core)];
    let title = format!("Packet loss in function of the {what}, on a core that is {core}");
    let caption = format!("{how} Strokes are intervals of 95 % confidence.");
    Some(lines(Frame { id, size, title, caption }, x, &y, &all))
}
