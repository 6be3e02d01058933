//! The state of the screen, and its changes by keys.

use wirestamp_metrics::flow::{CallStream, FlowReport};
use wirestamp_packet::FlowKey;

use super::filter::DisplayFilter;
use super::graph::Graph;
use super::order::Order;

/// Protocol number of UDP (IANA "Assigned Internet Protocol Numbers").
const UDP: u8 = 17;

/// Identity of a flow or of one of its RTP streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FlowId {
    flow: FlowKey,
    /// SSRC and time of the first packet.
    stream: Option<(u32, i64)>,
}

impl FlowId {
    pub(super) fn of(report: &FlowReport) -> Self {
        let stream = report.rtp.as_ref().map(|rtp| (rtp.ssrc, report.first_ns));
        Self { flow: report.flow(), stream }
    }

    /// Identity of the stream of a call.
    pub(super) fn of_stream(stream: &CallStream) -> Self {
        let CallStream { src: source, dst: destination, ssrc, first_ns, .. } = *stream;
        let flow = FlowKey { source, destination, protocol: UDP };
        Self { flow, stream: Some((ssrc, first_ns)) }
    }
}

/// The page below the heading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Page {
    /// All flows, a line each.
    #[default]
    List,
    /// All values of the selected flow.
    Flow,
}

/// The user's selections.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    pub(super) page: Page,
    pub(super) help: bool,
    /// The selected flow; the first one if none.
    pub(super) selected: Option<FlowId>,
    pub(super) order: Order,
    pub(super) graph: Graph,
    pub(super) filter: DisplayFilter,
    /// Whether keys edit the filter.
    pub(super) typing: bool,
    /// Lines of a flow's page above the screen.
    pub(super) scrolled: usize,
    pub(super) paused: bool,
    pub(super) done: bool,
}

/// A key, independent of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    /// Ctrl-C.
    Interrupt,
    Letter(char),
}

/// The content of the screen when a key was pressed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ScreenContent {
    /// All flows of the list, in order, also those beyond the screen.
    pub(super) flows: Vec<FlowId>,
    /// Rows that fit on the screen.
    pub(super) rows: usize,
    /// Lines of a flow's page that do not fit.
    pub(super) hidden: usize,
}

impl State {
    /// Index of the selected flow.
    pub(super) fn place(&self, flows: &[FlowId]) -> usize {
        let place =
            self.selected.and_then(|selected| flows.iter().position(|flow| *flow == selected));
        place.unwrap_or(0)
    }
}

/// The state after a key.
pub(super) fn update(state: State, key: Key, shown: &ScreenContent) -> State {
    match key {
        Key::Interrupt => State { done: true, ..state },
        _ if state.help => State { help: false, ..state },
        _ if state.typing => type_filter(state, key),
        Key::Letter('q') => State { done: true, ..state },
        Key::Letter('?' | 'h') => State { help: true, ..state },
        Key::Letter(' ') => State { paused: !state.paused, ..state },
        Key::Letter('s') => State { order: state.order.next(), ..state },
        Key::Letter('g') => State { graph: state.graph.next(), ..state },
        Key::Letter('/') => State { typing: true, page: Page::List, ..state },
        Key::Enter if state.page == Page::List && !shown.flows.is_empty() => {
            let selected = shown.flows.get(state.place(&shown.flows)).copied();
            State { page: Page::Flow, scrolled: 0, selected, ..state }
        }
        Key::Escape | Key::Backspace if state.page == Page::Flow => {
            State { page: Page::List, ..state }
        }
        Key::Escape => State { filter: DisplayFilter::default(), ..state },
        _ => navigate(state, key, shown),
    }
}

fn type_filter(state: State, key: Key) -> State {
    let mut text = state.filter.text().to_owned();
    match key {
        Key::Enter => return State { typing: false, ..state },
        Key::Escape => return State { typing: false, filter: DisplayFilter::default(), ..state },
        Key::Backspace if text.is_empty() => return State { typing: false, ..state },
        Key::Backspace => {
            text.pop();
        }
        Key::Letter(letter) => text.push(letter),
        _ => {}
    }
    State { filter: DisplayFilter::parse(&text), ..state }
}

/// Moves the selection, or scrolls the page of a flow.
fn navigate(state: State, key: Key, shown: &ScreenContent) -> State {
    let (place, last) = match state.page {
        Page::List => (state.place(&shown.flows), shown.flows.len().saturating_sub(1)),
        Page::Flow => (state.scrolled.min(shown.hidden), shown.hidden),
    };
    let page = shown.rows.max(1);
    let to = match key {
        Key::Up | Key::Letter('k') => place.saturating_sub(1),
        Key::Down | Key::Letter('j') => place + 1,
        Key::PageUp => place.saturating_sub(page),
        Key::PageDown => place + page,
        Key::Home => 0,
        Key::End => last,
        _ => return state,
    };
    let to = to.min(last);
    match state.page {
        Page::List => State { selected: shown.flows.get(to).copied(), ..state },
        Page::Flow => State { scrolled: to, ..state },
    }
}
