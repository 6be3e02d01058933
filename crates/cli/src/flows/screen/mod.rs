//! The terminal screen of `wirestamp flows`.
//!
//! [`view()`] draws a [`State`] and [`Data`]; [`update`] returns the state after a key. Only [`terminal`]
//! accesses the terminal.

mod data;
mod filter;
mod graph;
mod history;
mod order;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
mod view;

use std::time::{Duration, Instant};

use wirestamp_capture::Stop;

pub(super) use self::data::Data;
use self::graph::Graph;
use self::state::{ScreenContent, State, update};
use self::terminal::{Screen, ScreenEvent, wants_colour};
use self::view::{Theme, view};

/// Refresh interval of the flows.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Interval for checking the stop.
const TICK: Duration = Duration::from_millis(100);

/// Shows the flows until the user quits or the stop is requested. `refresh` updates the data every second.
pub(super) fn show(
    mut data: Data,
    mut refresh: impl FnMut(&mut Data),
    stop: &Stop,
) -> anyhow::Result<()> {
    let mut screen = Screen::open()?;
    let theme = Theme { coloured: wants_colour() };
    // A file has no rates over time.
    let graph = if data.live { Graph::Rate } else { Graph::Mos };
    let (mut state, mut shown) = (State { graph, ..State::default() }, ScreenContent::default());
    let begin = Instant::now();
    let (mut next_refresh, mut changed) = (begin, true);
    while !state.done && !stop.is_requested() {
        if Instant::now() >= next_refresh {
            next_refresh = Instant::now() + REFRESH_INTERVAL;
            if !state.paused {
                refresh(&mut data);
                if data.live {
                    data.history.record(&data.reports, begin.elapsed());
                }
                changed = true;
            }
        }
        if changed {
            screen.draw(|frame| shown = view(frame, &state, &data, theme))?;
        }
        match screen.next_event(TICK)? {
            ScreenEvent::Key(key) => {
                state = update(state, key, &shown);
                changed = true;
            }
            event => changed = event == ScreenEvent::Changed,
        }
    }
    Ok(())
}
