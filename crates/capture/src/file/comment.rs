//! Machine-readable comments: every tool shows them, tools that cut and merge captures keep them, and they need no
//! registered number.

use serde::{Deserialize, Serialize};

use crate::Ledger;

const PREFIX: &str = "wirestamp ";

/// The comment with `content`.
pub(super) fn of(content: &impl Serialize) -> String {
    let mut comment = Vec::new();
    append(&mut comment, content);
    String::from_utf8(comment).expect("JSON is UTF-8")
}

/// Appends the comment with `content`.
pub(super) fn append(into: &mut Vec<u8>, content: &impl Serialize) {
    into.extend_from_slice(PREFIX.as_bytes());
    serde_json::to_writer(into, content).expect("plain strings and numbers are JSON");
}

/// Content of a comment, if it is one of wirestamp's and of this type.
pub(super) fn read<'a, T: Deserialize<'a>>(comment: &'a str) -> Option<T> {
    serde_json::from_str(comment.strip_prefix(PREFIX)?).ok()
}

/// Content of the comment in the statistics.
#[derive(Serialize)]
pub(super) struct LedgerComment<'a> {
    pub(super) ledger: &'a Ledger,
}

/// The ledger in a comment.
pub(super) fn read_ledger(comment: &str) -> Option<Ledger> {
    #[derive(Deserialize)]
    struct LedgerComment {
        ledger: Ledger,
    }
    read::<LedgerComment>(comment).map(|account| account.ledger)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_survives_the_comment() {
        let ledger = Ledger { seen: 10, kernel_dropped: 3, delivered: 7, ..Ledger::default() };
        assert_eq!(read_ledger(&of(&LedgerComment { ledger: &ledger })), Some(ledger));
        let older = r#"wirestamp {"ledger":{"seen":10,"delivered":10}}"#;
        assert_eq!(
            read_ledger(older),
            Some(Ledger { seen: 10, delivered: 10, ..Ledger::default() })
        );
        assert_eq!(read_ledger(r#"wirestamp {"method":"ring"}"#), None);
    }
}
