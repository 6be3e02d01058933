//! Departures that share an identity.

use super::queue::Link;

/// Departures of one identity, in the order of departure.
#[derive(Clone, Copy)]
pub(super) struct IdenticalDepartures {
    /// First one not matched.
    pub(super) open: Link,
    /// Last one matched.
    pub(super) matched: Link,
}

impl IdenticalDepartures {
    /// A single departure; not matched if `is_open`.
    pub(super) fn of(only: Link, is_open: bool) -> Self {
        let (open, matched) = if is_open { (only, Link::NONE) } else { (Link::NONE, only) };
        Self { open, matched }
    }

    /// Adds an unmatched departure after all others.
    pub(super) fn add(&mut self, last: Link) {
        if self.open == Link::NONE {
            self.open = last;
        }
    }

    /// Marks the first open departure as matched; `twin` is the next one of the identity.
    pub(super) fn set_matched(&mut self, matched: Link, twin: Link) {
        (self.matched, self.open) = (matched, twin);
    }

    /// Removes the first departure; `twin` is the next one of the identity.
    pub(super) fn leave(&mut self, first: Link, twin: Link) {
        if self.open == first {
            self.open = twin;
        }
        if self.matched == first {
            self.matched = Link::NONE;
        }
    }
}
