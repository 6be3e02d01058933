//! The ledger of a capture, stored in the file.

use serde::{Deserialize, Serialize};

use super::comment;
use crate::Ledger;

/// Content of the comment in the statistics.
#[derive(Serialize)]
pub(super) struct LedgerComment<'a> {
    pub(super) ledger: &'a Ledger,
}

/// The ledger in a comment.
pub(super) fn read(comment: &str) -> Option<Ledger> {
    #[derive(Deserialize)]
    struct LedgerComment {
        ledger: Ledger,
    }
    comment::read::<LedgerComment>(comment).map(|account| account.ledger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_survives_the_comment() {
        let ledger = Ledger { seen: 10, kernel_dropped: 3, delivered: 7, ..Ledger::default() };
        assert_eq!(read(&comment::of(&LedgerComment { ledger: &ledger })), Some(ledger));
        let older = r#"wirestamp {"ledger":{"seen":10,"delivered":10}}"#;
        assert_eq!(read(older), Some(Ledger { seen: 10, delivered: 10, ..Ledger::default() }));
        assert_eq!(read(r#"wirestamp {"method":"ring"}"#), None);
    }
}
