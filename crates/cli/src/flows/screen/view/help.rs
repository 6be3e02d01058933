//! Help for the keys.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use super::theme::Theme;

const KEYS: [(&str, &str); 12] = [
    ("up, down", "the flow above, below; also k, j"),
    ("PgUp, PgDn", "a page up, down; Home and End: to the ends"),
    ("Enter", "all values of the flow"),
    ("Esc", "back to the list; in the list: show all flows"),
    ("s", "sort: worst first, loss, jitter, round trip,"),
    ("", "bytes, newest packet; ended calls come last"),
    ("g", "graph the rate, MOS, jitter, loss"),
    ("/", "show only flows that match all terms:"),
    ("", "host A, src A, dst A, port N, tcp, udp, rtp,"),
    ("", "not ..., or a part of an address or codec"),
    ("space", "pause the screen; the measurement continues"),
    ("q, Ctrl-C", "end, with the summary"),
];

/// Draws the help over the page.
pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, theme: Theme) {
    let lines: Vec<_> = KEYS
        .iter()
        .map(|(key, does)| {
            Line::from(vec![Span::styled(format!(" {key:<11}"), theme.strong()), (*does).into()])
        })
        .collect();
    let width = lines.iter().map(Line::width).max().unwrap_or(0);
    let [width, height] =
        [width + 3, lines.len() + 2].map(|it| u16::try_from(it).unwrap_or(u16::MAX));
    let area = area.centered(
        Constraint::Length(width.min(area.width)),
        Constraint::Length(height.min(area.height)),
    );
    frame.render_widget(Clear, area);
    let block = Block::bordered().title(" Keys (any key closes this) ");
    frame.render_widget(Paragraph::new(lines).block(block), area);
}
