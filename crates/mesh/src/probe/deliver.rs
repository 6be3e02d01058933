//! Delivery of spooled batches to the collector.

use std::collections::VecDeque;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tracing::warn;

use super::{ChannelName, Error, SharedSpool};
use crate::spool::Held;
use crate::v1::collection_client::CollectionClient;
use crate::v1::delivery::What;
use crate::v1::{Batch, Delivery, DroppedBatches, Opening, Receipt};

/// Batches queued in front of the connection, and bytes read from the spool at a time.
const QUEUED_BATCHES: usize = 4;
const READ_BYTES: u64 = 1 << 20;

/// Trouble of a probe whose collector has batches that it never delivered.
pub(super) const RESTORED: &str = "the collector has batches that are not in the folder of this probe: the folder was \
                                   restored or copied; only what was observed since the probe started is delivered";

/// Delivers the batches of a channel, also later ones, until the collector ends the stream. `epoch` is that of the
/// placement of the task.
///
/// # Errors
/// When the collector cannot be reached or rejects the stream; the caller then connects again.
pub async fn deliver(
    collector: Channel,
    spool: &SharedSpool,
    name: ChannelName,
    epoch: u64,
) -> Result<(), Error> {
    let refused = |status| Error::refused(format!("the collector of task {}", name.task), status);
    let (deliveries, outgoing) = mpsc::channel(QUEUED_BATCHES);
    let ChannelName { task, point } = name;
    let opening =
        |spool: &SharedSpool| Ok::<_, Error>((spool.opening(name)?, spool.known_times(name)?));
    let ((stream, first), (settled_until, begin)) = spool.in_turn(opening).await?;
    // The queue has room for the first message.
    drop(
        deliveries
            .send(delivery(What::Opening(Opening {
                spool: stream,
                task,
                point,
                first,
                instance: spool.instance,
                epoch: Some(epoch),
                settled_until,
                begin,
            })))
            .await,
    );
    let receipts = CollectionClient::new(collector).deliver(ReceiverStream::new(outgoing)).await;
    let mut receipts = receipts.map_err(refused)?.into_inner();
    let (mut sent, mut waiting) = (None, VecDeque::new());
    let mut grown = spool.subscribe(name);
    loop {
        if let Some(sent) = sent
            && waiting.is_empty()
        {
            waiting = spool.in_turn(|spool| spool.read(name, sent, READ_BYTES)).await?.into();
        }
        tokio::select! {
            receipt = receipts.message() => {
                let Some(receipt) = receipt.map_err(refused)? else { return Ok(()) };
                let Receipt { up_to, settled_until } = receipt;
                if !spool.acknowledge_in_turn(name, up_to, settled_until).await? {
                    warn!("task {}: {RESTORED}", name.task);
                    return Ok(());
                }
                // Delivery begins after the last batch that the collector has.
                sent.get_or_insert(up_to);
            }
            room = deliveries.reserve(), if !waiting.is_empty() && !deliveries.is_closed() => {
                // If the stream was closed, the collector reports why.
                if let (Ok(room), Some(held)) = (room, waiting.pop_front()) {
                    sent = Some(last(&held));
                    room.send(delivery(what(held)));
                }
            }
            // The sender of `grown` is part of the spool.
            _ = grown.changed(), if sent.is_some() && waiting.is_empty() => {}
        }
    }
}

fn last(held: &Held) -> u64 {
    match held {
        Held::Batch(number, _) => *number,
        Held::Dropped(dropped) => *dropped.sequences.end(),
    }
}

fn what(held: Held) -> What {
    match held {
        Held::Batch(number, batch) => What::Batch(Batch { number, body: batch.body }),
        Held::Dropped(dropped) => What::Dropped(DroppedBatches {
            first: *dropped.sequences.start(),
            last: *dropped.sequences.end(),
            until: *dropped.times.end(),
            packets: dropped.items,
        }),
    }
}

fn delivery(what: What) -> Delivery {
    Delivery { what: Some(what) }
}
