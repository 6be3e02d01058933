//! Machine-readable comments: every tool shows them, tools that cut and merge captures keep them, and they need no
//! registered number.

use serde::{Deserialize, Serialize};

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
