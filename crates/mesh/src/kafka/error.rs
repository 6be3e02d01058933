//! Errors of the connection to Kafka.

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
        "cannot find the topic {0}; start the collector with --kafka, which creates it, or create it yourself"
    )]
    NoTopic(&'static str),
    /// A record cannot be signed.
    #[error("cannot sign a record: {0}")]
    Sign(String),
    /// The state cannot be read or written.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// One line with the cause of an error of the client, and what to do about the frequent ones.
pub(super) fn cause(error: &ClientError) -> String {
    let ClientError::ServerError { protocol_error, error_message, .. } = error else {
        let text = error.to_string();
        return text.lines().collect::<Vec<_>>().join(" ");
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
