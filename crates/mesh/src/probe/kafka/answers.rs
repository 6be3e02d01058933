//! Reads the answers of collectors.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use prost::Message;
use tokio::sync::watch;
use tracing::warn;

use crate::kafka::v1::{Answer, Answers};
use crate::kafka::{ANSWERS, Cluster, Error, Fetched, Settings, Start, Verifier};
use crate::member::{Logged, Pause};
use crate::pki::{Credentials, Role};

/// Who may acknowledge batches.
const COLLECTORS: [Role; 2] = [Role::Collector, Role::Controller];

/// Why answers cannot be read; none if they can.
pub(super) type ReadingTrouble = Arc<Mutex<Option<String>>>;

/// Reads all answers, forever.
pub(super) async fn follow(
    settings: Settings,
    credentials: watch::Receiver<Credentials>,
    trouble: ReadingTrouble,
    logged: Logged,
    receive: impl Fn(Answer),
) {
    let (mut pause, mut offset) = (Pause::sharing(&logged), None);
    loop {
        let to = (&trouble, &logged, &receive);
        let read = read(&settings, credentials.clone(), &mut offset, to).await;
        *trouble.lock() = read.as_ref().err().map(ToString::to_string);
        pause.after(read).await;
    }
}

async fn read(
    settings: &Settings,
    credentials: watch::Receiver<Credentials>,
    offset: &mut Option<i64>,
    (trouble, logged, receive): (&ReadingTrouble, &Logged, &impl Fn(Answer)),
) -> Result<(), Error> {
    // A topic can be full of them.
    let log_ignored = |offset: i64, why: &str| {
        if logged.is_new(why, Instant::now()) {
            warn!("ignored record {offset} of {ANSWERS}: {why}; the next ones are not logged");
        }
    };
    let cluster = Cluster::connect(settings).await?;
    let mut verifier = Verifier::new(credentials)?;
    cluster.partitions(ANSWERS).await?.ok_or(Error::NoTopic(ANSWERS))?;
    let partition = cluster.partition(ANSWERS, 0).await?;
    loop {
        let from = match *offset {
            Some(offset) => offset,
            // Earlier answers belong to earlier sessions.
            None => partition.offset(Start::Latest).await?,
        };
        *offset = Some(from);
        let fetched = partition.read(from).await?;
        *trouble.lock() = None;
        let (rows, next) = match fetched {
            Fetched::Rows(rows, next) => (rows, next),
            Fetched::Unreadable(why) => {
                log_ignored(from, &why);
                (Vec::new(), from.saturating_add(1))
            }
            Fetched::Discontinued => {
                warn!(
                    "the topic {ANSWERS} does not continue at offset {from}; reading it from its beginning"
                );
                *offset = Some(partition.offset(Start::Earliest).await?);
                continue;
            }
        };
        for row in rows {
            let verified = verifier.verify(ANSWERS, &row.value, &COLLECTORS, Instant::now());
            let decoded = verified.map_err(|why| why.to_string()).and_then(|(_, _, body)| {
                Answers::decode(body.as_slice()).map_err(|why| why.to_string())
            });
            match decoded {
                Ok(answers) => answers.answers.into_iter().for_each(receive),
                Err(why) => log_ignored(row.offset, &why),
            }
        }
        *offset = Some(next);
    }
}
