//! The departures that cannot be told apart.

use super::queue::Link;

/// The departures of one identity, in the order of departure.
#[derive(Clone, Copy)]
pub(super) struct Copies {
    /// The first that may still be matched.
    pub(super) open: Link,
    /// The last that was matched.
    pub(super) matched: Link,
}

impl Copies {
    /// Only this one, not matched if `is_open`.
    pub(super) fn of(only: Link, is_open: bool) -> Self {
        let (open, matched) = if is_open { (only, Link::NONE) } else { (Link::NONE, only) };
        Self { open, matched }
    }

    /// Adds one behind all others, not matched.
    pub(super) fn add(&mut self, last: Link) {
        if self.open == Link::NONE {
            self.open = last;
        }
    }

    /// The first that was open has been matched, and `twin` is the next.
    pub(super) fn set_matched(&mut self, matched: Link, twin: Link) {
        (self.matched, self.open) = (matched, twin);
    }

    /// The first leaves, and `twin` is the next.
    pub(super) fn leave(&mut self, first: Link, twin: Link) {
        if self.open == first {
            self.open = twin;
        }
        if self.matched == first {
            self.matched = Link::NONE;
        }
    }
}
