//! The columns of the list, and which are dropped first on a narrow terminal.

use ratatui::layout::Constraint;
use ratatui::style::Style;
use ratatui::text::Line;
use ratatui::widgets::Cell;
use wirestamp_metrics::flow::FlowReport;

use super::super::data::Data;
use super::super::graph::Graph;
use super::super::state::State;
use super::format::{self, NONE};
use super::theme::Theme;
use crate::output::{count, mean, time};

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Flow,
    Payload,
    Packets,
    Rate,
    Lost,
    Jitter,
    Gap,
    RoundTrip,
    Mos,
    Graph,
}

/// The columns from left to right, with min width and rank: the highest rank is dropped first.
const COLUMNS: [(Column, u16, u8); 10] = [
    (Column::Flow, 24, 0),
    (Column::Payload, 10, 4),
    (Column::Packets, 10, 8),
    (Column::Rate, 13, 6),
    (Column::Lost, 8, 2),
    (Column::Jitter, 9, 3),
    (Column::Gap, 9, 9),
    (Column::RoundTrip, 10, 7),
    (Column::Mos, 4, 1),
    (Column::Graph, 16, 5),
];

/// Max width of a graph: the number of intervals in a report.
const MAX_GRAPH_WIDTH: u16 = 60;

/// The columns that fit in a line, and their widths. Spare width goes to the flow, up to its longest
/// text, then to the graph.
pub(super) fn fitting(width: u16, longest_flow: u16) -> Vec<(Column, u16)> {
    let mut columns = COLUMNS.to_vec();
    // With the space between them.
    let needed = |columns: &[(Column, u16, u8)]| {
        columns.iter().map(|(_, width, _)| width + 1).sum::<u16>() - 1
    };
    while columns.len() > 1 && needed(&columns) > width {
        let highest = columns.iter().map(|(_, _, rank)| *rank).max();
        columns.retain(|(_, _, rank)| Some(*rank) != highest);
    }
    if columns.len() == 1 {
        return vec![(Column::Flow, width)];
    }
    let mut spare = width.saturating_sub(needed(&columns));
    for (column, own, _) in &mut columns {
        let max = match column {
            Column::Flow => longest_flow,
            Column::Graph => MAX_GRAPH_WIDTH,
            _ => *own,
        };
        let more = max.saturating_sub(*own).min(spare);
        (*own, spare) = (*own + more, spare - more);
    }
    columns.iter().map(|&(column, own, _)| (column, own)).collect()
}

impl Column {
    pub(super) fn constraint((_, width): &(Self, u16)) -> Constraint {
        Constraint::Length(*width)
    }

    pub(super) fn heading(self, state: &State) -> Cell<'static> {
        let name = match self {
            Self::Flow => return Cell::from("flow"),
            Self::Graph => return Cell::from(format!("{} over time", state.graph.name())),
            Self::Payload => return Cell::from("payload"),
            Self::Packets => "packets",
            Self::Rate => "rate",
            Self::Lost => "lost",
            Self::Jitter => "jitter",
            Self::Gap => "max. gap",
            Self::RoundTrip => "round trip",
            Self::Mos => "MOS",
        };
        Cell::from(Line::from(name).right_aligned())
    }

    /// The cell of a flow.
    pub(super) fn cell(
        self,
        report: &FlowReport,
        width: u16,
        (state, data): (&State, &Data),
        theme: Theme,
    ) -> Cell<'static> {
        let rtp = report.rtp.as_ref();
        let width = usize::from(width);
        let plain = Style::new();
        let (text, style) = match self {
            Self::Flow => return Cell::from(format::flow(&report.flow(), width)),
            Self::Payload => return Cell::from(format::payload(report)),
            Self::Graph => {
                let values = data.over_time(report, state.graph);
                return Cell::from(state.graph.line(&values, width));
            }
            Self::Packets => (Some(count(report.packets)), plain),
            Self::Rate => (newest_rate(report, data).map(format::rate), plain),
            Self::Lost => {
                (format::lost(report), theme.loss(report.loss_ratio().unwrap_or_default()))
            }
            Self::Jitter => {
                let of_rtp = rtp.and_then(|rtp| rtp.mean_jitter_ms);
                let jitter = of_rtp.or(report.udp_test().map(|test| test.jitter_ms));
                (jitter.map(|ms| mean(ms * 1e6)), plain)
            }
            Self::Gap => (report.max_gap_ns.map(time), plain),
            Self::RoundTrip => {
                (report.tcp.and_then(|tcp| tcp.rtt_ns).map(|times| time(times.p50)), plain)
            }
            Self::Mos => match rtp.and_then(|rtp| rtp.mos) {
                Some(mos) => (Some(format!("{mos:.2}")), theme.mos(mos)),
                None => (None, plain),
            },
        };
        let text = text.unwrap_or_else(|| NONE.to_owned());
        Cell::from(Line::from(text).right_aligned()).style(style)
    }
}

/// The rate since the last refresh of a live capture, else of the entire flow.
fn newest_rate(report: &FlowReport, data: &Data) -> Option<f64> {
    let rates = data.over_time(report, Graph::Rate);
    rates.last().copied().flatten().or(report.throughput_bps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_fit_in_any_width() {
        for (width, flow) in (0..300).flat_map(|width| [(width, 10), (width, 90)]) {
            let columns = fitting(width, flow);
            let needed: u16 = columns.iter().map(|(_, width)| width + 1).sum::<u16>();
            assert!(needed <= width + 1, "{width}: {columns:?}");
        }
        let names =
            |width| fitting(width, 50).iter().map(|(column, _)| *column).collect::<Vec<_>>();
        assert_eq!(names(20), [Column::Flow]);
        assert_eq!(names(40), [Column::Flow, Column::Lost, Column::Mos]);
        assert_eq!(names(80).last(), Some(&Column::Graph));
        assert_eq!(names(300).len(), COLUMNS.len());
    }
}
