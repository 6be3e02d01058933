//! Comments that are for us among those that are for people: every tool shows them, those that cut
//! and merge captures keep them, and they take no number of a registry.

use serde::{Deserialize, Serialize};

const MARK: &str = "wirestamp ";

/// The comment that says `what`.
pub(super) fn of(what: &impl Serialize) -> String {
    let mut comment = Vec::new();
    append(&mut comment, what);
    String::from_utf8(comment).expect("JSON is UTF-8")
}

/// Appends the comment that says `what`.
pub(super) fn append(into: &mut Vec<u8>, what: &impl Serialize) {
    into.extend_from_slice(MARK.as_bytes());
    serde_json::to_writer(into, what).expect("plain strings and numbers are JSON");
}

/// What a comment says, if it is one of ours that says such a thing.
pub(super) fn read<'a, T: Deserialize<'a>>(comment: &'a str) -> Option<T> {
    serde_json::from_str(comment.strip_prefix(MARK)?).ok()
}
