//! The terminal: keys from it, and the screen to it.

use std::env;
use std::time::Duration;

use anyhow::Context;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::{DefaultTerminal, Frame};

use super::state::Key;

/// The terminal in screen mode; restored on drop, also after a panic.
pub(super) struct Screen(DefaultTerminal);

/// An event of the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScreenEvent {
    Key(Key),
    /// A new size, or any other event.
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

    /// Waits for an event, at most for `timeout`.
    pub(super) fn next_event(&self, timeout: Duration) -> anyhow::Result<ScreenEvent> {
        let failed = "cannot read from the terminal";
        if !event::poll(timeout).context(failed)? {
            return Ok(ScreenEvent::Nothing);
        }
        Ok(match event::read().context(failed)? {
            Event::Key(key) => key_of(key).map_or(ScreenEvent::Nothing, ScreenEvent::Key),
            _ => ScreenEvent::Changed,
        })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// Whether to use colours (<https://no-color.org>).
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
    fn ctrl_c_interrupts_and_releases_are_ignored() {
        let key = |code, modifiers| key_of(KeyEvent::new(code, modifiers));
        assert_eq!(key(KeyCode::Char('c'), KeyModifiers::CONTROL), Some(Key::Interrupt));
        assert_eq!(key(KeyCode::Char('s'), KeyModifiers::CONTROL), None);
        assert_eq!(key(KeyCode::Char('S'), KeyModifiers::SHIFT), Some(Key::Letter('S')));
        let mut released = KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE);
        released.kind = KeyEventKind::Release;
        assert_eq!(key_of(released), None);
    }
}
