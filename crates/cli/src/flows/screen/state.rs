//! What the screen shows of the flows, and how keys change it.

use wirestamp_metrics::flow::FlowReport;
use wirestamp_packet::FlowKey;

use super::graph::Graph;
use super::order::Order;
use super::pick::Pick;

/// What tells a flow, or an RTP stream of one, from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FlowId {
    flow: FlowKey,
    ssrc: Option<u32>,
}

impl FlowId {
    pub(super) fn of(report: &FlowReport) -> Self {
        Self { flow: report.flow(), ssrc: report.rtp.as_ref().map(|rtp| rtp.ssrc) }
    }
}

/// What is on the screen below the heading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Page {
    /// All flows, a line each.
    #[default]
    List,
    /// All figures of the chosen one.
    Flow,
}

/// What the user has chosen so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct State {
    pub(super) page: Page,
    pub(super) help: bool,
    /// The flow under the bar; the first while none has been chosen.
    pub(super) chosen: Option<FlowId>,
    pub(super) order: Order,
    pub(super) graph: Graph,
    pub(super) pick: Pick,
    /// Whether keys are letters of the filter.
    pub(super) typing: bool,
    /// How many lines of the page of a flow are above the screen.
    pub(super) scrolled: usize,
    pub(super) paused: bool,
    pub(super) done: bool,
}

/// A key, whatever terminal it comes from.
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

/// What was on the screen when the key was struck.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// The flows of the list, in its order, those beyond the screen too.
    pub(super) flows: Vec<FlowId>,
    /// How many of them, or lines of one, fit.
    pub(super) rows: usize,
    /// How many lines of a flow do not.
    pub(super) hidden: usize,
}

impl State {
    /// Where the bar is among these flows.
    pub(super) fn place(&self, flows: &[FlowId]) -> usize {
        let place = self.chosen.and_then(|chosen| flows.iter().position(|flow| *flow == chosen));
        place.unwrap_or(0)
    }
}

/// The state after a key.
pub(super) fn update(state: State, key: Key, shown: &Shown) -> State {
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
            let chosen = shown.flows.get(state.place(&shown.flows)).copied();
            State { page: Page::Flow, scrolled: 0, chosen, ..state }
        }
        Key::Escape | Key::Backspace if state.page == Page::Flow => {
            State { page: Page::List, ..state }
        }
        Key::Escape => State { pick: Pick::default(), ..state },
        _ => go(state, key, shown),
    }
}

fn type_filter(state: State, key: Key) -> State {
    let mut text = state.pick.text().to_owned();
    match key {
        Key::Enter => return State { typing: false, ..state },
        Key::Escape => return State { typing: false, pick: Pick::default(), ..state },
        Key::Backspace if text.is_empty() => return State { typing: false, ..state },
        Key::Backspace => {
            text.pop();
        }
        Key::Letter(letter) => text.push(letter),
        _ => {}
    }
    State { pick: Pick::parse(&text), ..state }
}

/// Moves the bar, or the page of a flow.
fn go(state: State, key: Key, shown: &Shown) -> State {
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
        Page::List => State { chosen: shown.flows.get(to).copied(), ..state },
        Page::Flow => State { scrolled: to, ..state },
    }
}
