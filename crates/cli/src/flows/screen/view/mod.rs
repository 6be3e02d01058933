//! Drawing of the screen, independent of the terminal.

mod columns;
mod flow;
mod format;
mod help;
mod ladder;
mod list;
mod theme;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};
use ratatui::text::{Line, Span};

pub(super) use self::theme::Theme;
use super::data::Data;
use super::state::{FlowId, Page, ScreenContent, State};
use crate::output::{count, plural};

/// Draws the screen and returns its content.
pub(super) fn view(
    frame: &mut Frame<'_>,
    state: &State,
    data: &Data,
    theme: Theme,
) -> ScreenContent {
    let rows = [Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)];
    let [top, body, bottom] = Layout::vertical(rows).areas(frame.area());
    let listed = data.listed(state);
    let flows: Vec<_> = listed.iter().map(|report| FlowId::of(report)).collect();
    frame.render_widget(title(state, data, listed.len(), theme), top);
    let place = state.place(&flows);
    let hidden = match listed.get(place).filter(|_| state.page == Page::Flow) {
        Some(report) => flow::draw(frame, body, state.scrolled, &flow::lines(report, data, theme)),
        None => {
            list::draw(frame, body, (state, data), (&listed, place), theme);
            0
        }
    };
    frame.render_widget(keys(state, theme), bottom);
    if state.help {
        help::draw(frame, body, theme);
    }
    ScreenContent { flows, rows: usize::from(body.height.saturating_sub(1)), hidden }
}

/// The source, the number of flows and packets, and the sort order.
fn title(state: &State, data: &Data, listed: usize, theme: Theme) -> Line<'static> {
    let flows = match data.reports.len() {
        all if all == listed => plural(all as u64, "flow", "flows"),
        all => format!("{} of {} flows", count(listed as u64), count(all as u64)),
    };
    let packets = plural(data.packets, "packet", "packets");
    let mut title = Line::from(vec![
        Span::styled(format!(" {} ", data.from), theme.bar()),
        format!(" {flows}  {packets}  sort: {}", state.order.name()).into(),
    ]);
    match data.capture_lost {
        None => title.push_span("  lost by the capture: unknown"),
        Some(0) => {}
        Some(lost) => {
            let lost = format!("  lost by the capture: {}", count(lost));
            title.push_span(Span::styled(lost, theme.bad()));
        }
    }
    if state.paused {
        title.push_span("  ");
        title.push_span(Span::styled(" paused ", theme.bar()));
    }
    title
}

/// The filter being typed, or the help for keys.
fn keys(state: &State, theme: Theme) -> Line<'static> {
    if state.typing {
        let cursor = Span::styled(" ", theme.bar());
        return Line::from(vec![format!("/{}", state.filter.text()).into(), cursor]);
    }
    let keys: &[(&str, &str)] = match state.page {
        Page::List => &[
            ("?", "help"),
            ("q", "quit"),
            ("Enter", "details"),
            ("s", "sort"),
            ("/", "filter"),
            ("g", "graph"),
            ("space", "pause"),
        ],
        Page::Flow => &[("?", "help"), ("q", "quit"), ("Esc", "back"), ("space", "pause")],
    };
    let mut line = Line::default();
    if !state.filter.text().is_empty() {
        line.push_span(Span::styled(format!("/{}", state.filter.text()), theme.bar()));
        line.push_span("  ");
    }
    for (key, does) in keys {
        line.push_span(Span::styled(*key, theme.strong()));
        line.push_span(format!(" {does}  "));
    }
    line
}
