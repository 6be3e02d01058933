//! The terminal screen of `wirestamp flows`.
//!
//! [`view()`] draws a [`State`] and [`Data`], [`update`] makes the state that follows a key; neither knows
//! of a terminal, which is in [`terminal`] alone.

mod data;
mod graph;
mod history;
mod order;
mod pick;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
mod view;

use std::time::{Duration, Instant};

use wirestamp_capture::Stop;

pub(super) use self::data::Data;
use self::graph::Graph;
use self::state::{Shown, State, update};
use self::terminal::{News, Screen, wants_colour};
use self::view::{Theme, view};

/// How often the flows are looked at: as often as figures can be read.
const LOOK: Duration = Duration::from_secs(1);

/// How long it may take until a stop that comes from elsewhere is seen.
const TICK: Duration = Duration::from_millis(100);

/// Shows the flows until the user has seen enough or the stop is requested. Once a second `look` brings
/// the data up to date.
pub(super) fn show(
    mut data: Data,
    mut look: impl FnMut(&mut Data),
    stop: &Stop,
) -> anyhow::Result<()> {
    let mut screen = Screen::open()?;
    let theme = Theme { coloured: wants_colour() };
    // A file tells no rates over time.
    let graph = if data.live { Graph::Rate } else { Graph::Opinion };
    let (mut state, mut shown) = (State { graph, ..State::default() }, Shown::default());
    let begin = Instant::now();
    let (mut next_look, mut changed) = (begin, true);
    while !state.done && !stop.is_requested() {
        if Instant::now() >= next_look {
            next_look = Instant::now() + LOOK;
            if !state.paused {
                look(&mut data);
                if data.live {
                    data.history.look(&data.reports, begin.elapsed());
                }
                changed = true;
            }
        }
        if changed {
            screen.draw(|frame| shown = view(frame, &state, &data, theme))?;
        }
        match screen.news(TICK)? {
            News::Key(key) => {
                state = update(state, key, &shown);
                changed = true;
            }
            news => changed = news == News::Changed,
        }
    }
    Ok(())
}
