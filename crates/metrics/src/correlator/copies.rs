//! The departures that cannot be told apart.

use super::queue::Link;
use super::table::Value;

/// The departures of one identity, in the order of departure.
#[derive(Clone, Copy)]
pub(super) struct Copies {
    /// The first that may still be matched.
    pub(super) open: Link,
    /// The last that was matched.
    pub(super) matched: Link,
    /// The last of all.
    pub(super) last: Link,
}

impl Value for Copies {
    const FREE: Self = Self { open: Link::NONE, matched: Link::NONE, last: Link::NONE };

    fn is_free(&self) -> bool {
        self.last == Link::NONE
    }
}

impl Copies {
    /// Only this one, not matched if `is_open`.
    pub(super) fn of(only: Link, is_open: bool) -> Self {
        let mut copies = Self::FREE;
        copies.add(only, is_open);
        copies
    }

    /// Adds the last, and returns the one before it.
    pub(super) fn add(&mut self, last: Link, is_open: bool) -> Link {
        if !is_open {
            // What was passed over then is passed over for good.
            (self.open, self.matched) = (Link::NONE, last);
        } else if self.open == Link::NONE {
            self.open = last;
        }
        std::mem::replace(&mut self.last, last)
    }

    /// The first that was open has been matched, and `twin` is the next.
    pub(super) fn set_matched(&mut self, matched: Link, twin: Link) {
        (self.matched, self.open) = (matched, twin);
    }

    /// The first leaves, and `twin` is the next; returns whether none is left.
    pub(super) fn leave(&mut self, first: Link, twin: Link) -> bool {
        if self.open == first {
            self.open = twin;
        }
        if self.matched == first {
            self.matched = Link::NONE;
        }
        self.last == first
    }
}
