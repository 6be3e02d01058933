//! The list of flows, a line each.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Paragraph, Row, Table, TableState, Wrap};
use wirestamp_metrics::flow::FlowReport;

use super::super::data::Data;
use super::super::state::{FlowId, State};
use super::columns::{Column, fitting};
use super::theme::Theme;

/// Draws the list, with the selected line highlighted.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    (state, data): (&State, &Data),
    (listed, place): (&[&FlowReport], usize),
    theme: Theme,
) {
    if listed.is_empty() {
        frame
            .render_widget(Paragraph::new(empty_text(state, data)).wrap(Wrap { trim: true }), area);
        return;
    }
    let height = usize::from(area.height.saturating_sub(1)).max(1);
    // Only visible lines are drawn; in a longer list the selected one is in the middle.
    let first = place.saturating_sub(height / 2).min(listed.len().saturating_sub(height));
    let shown = listed.iter().skip(first).take(height);
    let longest = shown.clone().map(|report| report.flow().to_string().len()).max().unwrap_or(0);
    let columns = fitting(area.width, u16::try_from(longest).unwrap_or(u16::MAX));
    let heading = Row::new(columns.iter().map(|(column, _)| column.heading(state)));
    let over = data.over();
    let rows = shown.map(|report| {
        let cell =
            |&(column, width): &(Column, u16)| column.cell(report, width, (state, data), theme);
        let row = Row::new(columns.iter().map(cell));
        if over.contains(&FlowId::of(report)) { row.style(theme.over()) } else { row }
    });
    let table = Table::new(rows, columns.iter().map(Column::constraint))
        .header(heading.style(theme.strong()))
        .row_highlight_style(theme.bar());
    let mut selected = TableState::new().with_selected(place - first);
    frame.render_stateful_widget(table, area, &mut selected);
}

/// The text for an empty list.
fn empty_text(state: &State, data: &Data) -> String {
    let Data { from, live, filter, .. } = data;
    let matching =
        filter.as_ref().map_or(String::new(), |filter| format!(" that match '{filter}'"));
    if !data.reports.is_empty() {
        format!("No flow matches '{}'. Esc shows all.", state.filter.text())
    } else if *live {
        format!("Waiting for packets on {from}{matching}.")
    } else {
        format!("There are no IP packets in {from}{matching}.")
    }
}
