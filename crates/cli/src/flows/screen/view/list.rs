//! All flows, a line each.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::widgets::{Paragraph, Row, Table, TableState, Wrap};
use wirestamp_metrics::flow::FlowReport;

use super::super::data::Data;
use super::super::state::State;
use super::columns::{Column, fitting};
use super::theme::Theme;

/// Draws the list, with the bar at a place of it.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    (state, data): (&State, &Data),
    (listed, place): (&[&FlowReport], usize),
    theme: Theme,
) {
    if listed.is_empty() {
        frame.render_widget(Paragraph::new(nothing(state, data)).wrap(Wrap { trim: true }), area);
        return;
    }
    let height = usize::from(area.height.saturating_sub(1)).max(1);
    // Only those on the screen are drawn, with the bar in the middle where the list goes on.
    let first = place.saturating_sub(height / 2).min(listed.len().saturating_sub(height));
    let shown = listed.iter().skip(first).take(height);
    let longest = shown.clone().map(|report| report.flow().to_string().len()).max().unwrap_or(0);
    let columns = fitting(area.width, u16::try_from(longest).unwrap_or(u16::MAX));
    let heading = Row::new(columns.iter().map(|(column, _)| column.heading(state)));
    let rows = shown.map(|report| {
        let cell =
            |&(column, width): &(Column, u16)| column.cell(report, width, (state, data), theme);
        Row::new(columns.iter().map(cell))
    });
    let table = Table::new(rows, columns.iter().map(Column::constraint))
        .header(heading.style(theme.strong()))
        .row_highlight_style(theme.bar());
    let mut chosen = TableState::new().with_selected(place - first);
    frame.render_stateful_widget(table, area, &mut chosen);
}

/// Why there is no flow to be seen.
fn nothing(state: &State, data: &Data) -> String {
    let Data { from, live, filter, .. } = data;
    let passing = filter.as_ref().map_or(String::new(), |filter| format!(" that pass '{filter}'"));
    if !data.reports.is_empty() {
        format!("No flow is like '{}'. Esc shows all.", state.pick.text())
    } else if *live {
        format!("Waiting for packets on {from}{passing}.")
    } else {
        format!("There are no packets of IP in {from}{passing}.")
    }
}
