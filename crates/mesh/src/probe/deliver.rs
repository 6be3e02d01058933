//! What is held goes to the collector.

use std::collections::VecDeque;

use tokio::sync::mpsc;
use tokio::task::block_in_place;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use super::{ChannelName, Error, Stock};
use crate::spool::Held;
use crate::v1::collection_client::CollectionClient;
use crate::v1::delivery::What;
use crate::v1::{Batch, Delivery, GivenUp, Opening, Receipt};

/// Batches that are on their way beside what the network has taken, and bytes that are read at once.
const ON_THE_WAY: usize = 4;
const READ: u64 = 1 << 20;

/// Delivers what is held of a channel, and whatever is added to it, until the collector ends that.
///
/// # Errors
/// When the collector is not there, or does not take it: then it has to be called again.
pub async fn deliver(collector: Channel, stock: &Stock, name: ChannelName) -> Result<(), Error> {
    let refused = |status| Error::refused(format!("the collector, of task {}", name.task), status);
    let (deliveries, outgoing) = mpsc::channel(ON_THE_WAY);
    let ChannelName { task, point } = name;
    let (spool, first) = block_in_place(|| stock.opening(name))?;
    // There is room for the first.
    drop(deliveries.send(delivery(What::Opening(Opening { spool, task, point, first }))).await);
    let receipts = CollectionClient::new(collector).deliver(ReceiverStream::new(outgoing)).await;
    let mut receipts = receipts.map_err(refused)?.into_inner();
    let (mut sent, mut waiting) = (None, VecDeque::new());
    let mut grown = stock.subscribe();
    loop {
        if let Some(sent) = sent
            && waiting.is_empty()
        {
            waiting = block_in_place(|| stock.read(name, sent, READ))?.into();
        }
        tokio::select! {
            receipt = receipts.message() => {
                let Some(Receipt { up_to }) = receipt.map_err(refused)? else { return Ok(()) };
                block_in_place(|| stock.acknowledge(name, up_to))?;
                // Behind what the collector has, it begins.
                sent.get_or_insert(up_to);
            }
            room = deliveries.reserve(), if !waiting.is_empty() && !deliveries.is_closed() => {
                // Without room, the collector says why.
                if let (Ok(room), Some(held)) = (room, waiting.pop_front()) {
                    sent = Some(last(&held));
                    room.send(delivery(what(held)));
                }
            }
            // What would tell of it is part of the stock.
            _ = grown.changed(), if sent.is_some() && waiting.is_empty() => {}
        }
    }
}

fn last(held: &Held) -> u64 {
    match held {
        Held::Batch(number, _) => *number,
        Held::GivenUp(given_up) => *given_up.sequences.end(),
    }
}

fn what(held: Held) -> What {
    match held {
        Held::Batch(number, batch) => What::Batch(Batch { number, body: batch.body }),
        Held::GivenUp(given_up) => What::GivenUp(GivenUp {
            first: *given_up.sequences.start(),
            last: *given_up.sequences.end(),
            until: *given_up.times.end(),
            packets: given_up.items,
        }),
    }
}

fn delivery(what: What) -> Delivery {
    Delivery { what: Some(what) }
}
