//! The account of a capture's packets, kept in the file.

use serde::{Deserialize, Serialize};

use super::comment;
use crate::Ledger;

/// What the comment in the statistics says.
#[derive(Serialize)]
pub(super) struct Account<'a> {
    pub(super) ledger: &'a Ledger,
}

/// The ledger that a comment gives back.
pub(super) fn read(comment: &str) -> Option<Ledger> {
    #[derive(Deserialize)]
    struct Account {
        ledger: Ledger,
    }
    comment::read::<Account>(comment).map(|account| account.ledger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_gives_back_what_was_put_in_and_an_older_one_what_it_has() {
        let ledger = Ledger { seen: 10, kernel_dropped: 3, delivered: 7, ..Ledger::default() };
        assert_eq!(read(&comment::of(&Account { ledger: &ledger })), Some(ledger));
        let older = r#"wirestamp {"ledger":{"seen":10,"delivered":10}}"#;
        assert_eq!(read(older), Some(Ledger { seen: 10, delivered: 10, ..Ledger::default() }));
        assert_eq!(read(r#"wirestamp {"method":"ring"}"#), None);
    }
}
