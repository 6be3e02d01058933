//! Colours that are readable on light and dark terminals.

use ratatui::style::{Color, Modifier, Style};

/// The styles of the screen; without colours, bold text.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Theme {
    /// Whether there are colours (<https://no-color.org>).
    pub(in super::super) coloured: bool,
}

impl Theme {
    /// The selected line, and headings.
    pub(super) fn bar(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Streams of calls that are over.
    pub(super) fn over(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Values that users complain about.
    pub(super) fn bad(self) -> Style {
        self.colour(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Values that some users notice.
    pub(super) fn poor(self) -> Style {
        self.colour(Color::Magenta)
    }

    fn colour(self, colour: Color) -> Style {
        if self.coloured { Style::new().fg(colour) } else { Style::new() }
    }

    /// The style of a MOS. Below 3.1 nearly all users are dissatisfied, below 3.6 many are
    /// (ITU-T G.107 Annex B, table B.1).
    pub(super) fn mos(self, mos: f64) -> Style {
        match mos {
            mos if mos < 3.1 => self.bad(),
            mos if mos < 3.6 => self.poor(),
            _ => Style::new(),
        }
    }

    /// The style of a loss ratio, 0 to 1. Networks for interactive use lose less than one packet in
    /// 1000 (ITU-T Y.1541, table 1).
    pub(super) fn loss(self, share: f64) -> Style {
        match share {
            share if share >= 1e-2 => self.bad(),
            share if share >= 1e-3 => self.poor(),
            _ => Style::new(),
        }
    }
}
