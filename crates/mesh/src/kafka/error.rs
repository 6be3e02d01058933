//! Errors of the connection to Kafka.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rskafka::client::error::{Error as ClientError, ProtocolError};
use thiserror::Error;

use crate::DatabaseError;

/// Why batches cannot pass through Kafka.
#[derive(Debug, Error)]
pub enum Error {
    /// The file of the CA cannot be used.
    #[error("cannot use the CA certificates in {}: {cause}", file.display())]
    Ca {
        /// The file.
        file: PathBuf,
        /// Cause.
        cause: String,
    },
    /// The brokers do not answer, or reject a request.
    #[error("cannot {action} {cluster}: {cause}")]
    Request {
        /// What was requested, and of what.
        action: String,
        /// The brokers.
        cluster: String,
        /// Cause, one line.
        cause: String,
    },
    /// A topic does not exist.
    #[error(
        "cannot find the topic {0}; start the collector with --kafka, which creates it, or create it yourself; if it \
         exists, allow Describe with an ACL"
    )]
    NoTopic(&'static str),
    /// A record cannot be signed.
    #[error("cannot sign a record: {0}")]
    Sign(String),
    /// The brokers could not be reached for another task just before.
    #[error("{0}")]
    JustFailed(String),
    /// The state cannot be read or written.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// One line of a text of the client. The errors of several brokers come in random order: they are sorted, so that the same
/// errors are the same text.
fn in_order(text: &str) -> String {
    let text = text.lines().collect::<Vec<_>>().join(" ");
    const ERROR: &str = "error connecting to broker ";
    match text.split_once("Multiple errors occured: ") {
        Some((_, errors)) => {
            let errors = errors.split(ERROR).map(|it| it.trim_end_matches(", "));
            let errors: BTreeSet<_> = errors.filter(|it| !it.is_empty()).collect();
            errors.into_iter().collect::<Vec<_>>().join("; ")
        }
        None => text,
    }
}

/// One line with the cause of an error of the client, and what to do about the frequent ones.
pub(super) fn cause(error: &ClientError) -> String {
    let ClientError::ServerError { protocol_error, error_message, .. } = error else {
        return in_order(&error.to_string());
    };
    let hint = match protocol_error {
        ProtocolError::TopicAuthorizationFailed | ProtocolError::ClusterAuthorizationFailed => {
            "; allow it with an ACL (docs/scale-out.md)"
        }
        ProtocolError::NotEnoughReplicas | ProtocolError::NotEnoughReplicasAfterAppend => {
            "; too few brokers are up"
        }
        ProtocolError::MessageTooLarge => "; raise max.message.bytes of the topic to 1 MB or more",
        _ => "",
    };
    let message = error_message.as_deref().map(|it| format!(" ({it})")).unwrap_or_default();
    format!("{protocol_error}{message}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_several_brokers_are_the_same_text_in_any_order() {
        let a = "error connecting to broker \"a\": no route, at all";
        let b = "error connecting to broker \"b\": refused";
        let text =
            |errors| in_order(&format!("All retries failed: Multiple errors occured: {errors}"));
        let expected = "\"a\": no route, at all; \"b\": refused";
        assert_eq!(text(format!("{a}, {b}")), expected);
        assert_eq!(text(format!("{b}, {a}")), expected);
        assert_eq!(in_order("one\nerror"), "one error");
    }
}
