//! The terminal: keys from it, and the screen to it.

use std::env;
use std::time::Duration;

use anyhow::Context;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Frame};

use super::state::Key;

/// A terminal in our hands; however this ends, also by a panic, its user gets it back as it was.
pub(super) struct Screen(DefaultTerminal);

/// What happened at the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum News {
    Key(Key),
    /// It has another size now, or something else happened that we have no name for.
    Changed,
    Nothing,
}

impl Screen {
    pub(super) fn open() -> anyhow::Result<Self> {
        ratatui::try_init()
            .map(Self)
            .context("cannot draw on the terminal; --no-screen prints text")
    }

    pub(super) fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> anyhow::Result<()> {
        self.0.draw(draw).map(drop).context("cannot draw on the terminal")
    }

    /// Waits so long for something to happen.
    pub(super) fn news(&self, patience: Duration) -> anyhow::Result<News> {
        let failed = "cannot read from the terminal";
        if !event::poll(patience).context(failed)? {
            return Ok(News::Nothing);
        }
        Ok(match event::read().context(failed)? {
            Event::Key(key) => key_of(key).map_or(News::Nothing, News::Key),
            _ => News::Changed,
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Whether colours are wanted (<https://no-color.org>).
pub(super) fn wants_colour() -> bool {
    env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

fn key_of(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let control = event.modifiers.contains(KeyModifiers::CONTROL);
    Some(match event.code {
        KeyCode::Char('c') if control => Key::Interrupt,
        KeyCode::Char(_) if control => return None,
        KeyCode::Char(letter) => Key::Letter(letter),
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrl_c_is_no_letter_and_released_keys_are_none() {
        let key = |code, modifiers| key_of(KeyEvent::new(code, modifiers));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Interrupt));
        assert_eq!(key(KeyCode::Char('s'), KeyModifiers::CONTROL), None);
        assert_eq!(key(KeyCode::Char('S'), KeyModifiers::SHIFT), Some(Key::Letter('S')));
        let mut released = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        released.kind = KeyEventKind::Release;
        assert_eq!(key_of(released), None);
    }
}
