//! gRPC service for probes: delivery of batches.

use std::ops::RangeInclusive;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::warn;

use super::{Channel, Collector, EarlierDelivery, Opened, Refused, SpoolOrigin};
use crate::authorizer::{Authorizer, Caller};
use crate::pki::Role;
use crate::v1::collection_server::Collection;
use crate::v1::delivery::What;
use crate::v1::{Batch, Delivery, DroppedBatches, Opening, Receipt};

/// Queued receipts to a probe.
const RECEIPTS: usize = 16;

/// Valid batch numbers (databases store them as signed), and max packets in dropped batches.
const NUMBERS: RangeInclusive<u64> = 1..=i64::MAX.cast_unsigned() - 1;
const MAX_PACKETS: u64 = 1 << 40;

/// The service.
pub(crate) struct Service {
    pub(crate) collector: Arc<Collector>,
    pub(crate) authorizer: Arc<Authorizer>,
}

#[tonic::async_trait]
impl Collection for Service {
    type DeliverStream = ReceiverStream<Result<Receipt, Status>>;

    async fn deliver(
        &self,
        request: Request<Streaming<Delivery>>,
    ) -> Result<Response<Self::DeliverStream>, Status> {
        let caller = self.authorizer.caller(request.extensions(), &[Role::Probe])?;
        let mut deliveries = request.into_inner();
        let first = deliveries.message().await?.and_then(|it| it.what);
        let Some(What::Opening(opening)) = first else {
            warn!(
                "rejected deliveries of the {}: the first message is not an opening",
                caller.subject()
            );
            return Err(Status::invalid_argument("the first message must be an opening"));
        };
        let Opening { spool, task: number, point, first, instance, .. } = opening;
        let Opening { epoch, settled_until, begin, .. } = opening;
        let earlier = EarlierDelivery { epoch, settled_until, begin };
        let probe = caller.subject().name.clone();
        let origin = SpoolOrigin { spool, first, instance };
        let (receipts, answers) = mpsc::channel(RECEIPTS);
        if self.collector.is_removed(number) {
            task::spawn(async move {
                if let Err(status) = discard_all(first, deliveries, &receipts, &caller).await {
                    drop(receipts.send(Err(status)).await);
                }
            });
            return Ok(Response::new(ReceiverStream::new(answers)));
        }
        let collector = Arc::clone(&self.collector);
        let open = move || collector.open_moved(&probe, (number, point), origin, earlier);
        let opened =
            self.collector.in_turn(&open).await.inspect_err(|why| {
                warn!("rejected deliveries of {}: {why}", caller.subject().name)
            })?;
        let collector = Arc::clone(&self.collector);
        task::spawn(async move {
            let took = async {
                match opened_channel(&collector, opened, open, &receipts).await? {
                    Some(channel) => take_all(channel, deliveries, &receipts, &caller).await,
                    None => Ok(()),
                }
            };
            if let Err(status) = took.await {
                warn!(
                    "deliveries of {} to task {number} end: {}",
                    caller.subject(),
                    status.message()
                );
                // A probe that does not read it reconnects anyway.
                drop(receipts.send(Err(status)).await);
            }
        });
        Ok(Response::new(ReceiverStream::new(answers)))
    }
}

/// The channel of an opened delivery, after the other probe of a task that moved here has opened its own; none if the
/// probe ended the call before.
async fn opened_channel(
    collector: &Collector,
    mut opened: Opened,
    open: impl Fn() -> Result<Opened, Refused>,
    receipts: &mpsc::Sender<Result<Receipt, Status>>,
) -> Result<Option<Channel>, Status> {
    let (mut begun, mut placed) = (collector.begun(), collector.placements());
    loop {
        if let Opened::Channel(channel) = opened {
            return Ok(Some(channel));
        }
        // What has changed before this is seen by the next attempt.
        begun.mark_unchanged();
        placed.mark_unchanged();
        opened = collector.in_turn(&open).await?;
        if matches!(opened, Opened::Channel(_)) {
            continue;
        }
        tokio::select! {
            () = receipts.closed() => return Ok(None),
            changed = begun.changed() => if changed.is_err() { return Ok(None) },
            Ok(()) = placed.changed() => {}
        }
    }
}

/// Takes batches until the stream ends, and sends receipts.
async fn take_all(
    mut channel: Channel,
    mut deliveries: Streaming<Delivery>,
    receipts: &mpsc::Sender<Result<Receipt, Status>>,
    caller: &Caller,
) -> Result<(), Status> {
    let mut sent = None;
    loop {
        // While a point is ahead, its stream is not read: flow control stops the probe.
        let ((up_to, settled_until), is_ahead) = (channel.settled()?, channel.is_ahead()?);
        let receipt = Receipt { up_to, settled_until };
        if sent.replace(up_to) != Some(up_to) && receipts.send(Ok(receipt)).await.is_err() {
            return Ok(());
        }
        tokio::select! {
            () = receipts.closed() => return Ok(()),
            () = channel.changed() => {}
            delivery = deliveries.message(), if !is_ahead => match delivery? {
                Some(delivery) => {
                    // The certificate may have been revoked.
                    caller.check_message()?;
                    channel.in_turn(|| take(&channel, delivery)).await?;
                }
                None => return Ok(()),
            },
        }
    }
}

/// Acknowledges the batches of a removed task without storing them, so that they leave the spool. `first` is the number of
/// the first one.
async fn discard_all(
    first: u64,
    mut deliveries: Streaming<Delivery>,
    receipts: &mpsc::Sender<Result<Receipt, Status>>,
    caller: &Caller,
) -> Result<(), Status> {
    let mut up_to = first.saturating_sub(1);
    while receipts.send(Ok(Receipt { up_to, settled_until: None })).await.is_ok() {
        let delivery = tokio::select! {
            () = receipts.closed() => break,
            delivery = deliveries.message() => delivery?,
        };
        let Some(delivery) = delivery else { break };
        // The certificate may have been revoked.
        caller.check_message()?;
        up_to = up_to.max(last_number(&delivery)?);
    }
    Ok(())
}

/// Number of the last batch in a delivery.
fn last_number(delivery: &Delivery) -> Result<u64, Status> {
    let number = match &delivery.what {
        Some(What::Batch(Batch { number, .. })) => Some(*number),
        Some(What::Dropped(DroppedBatches { first, last, .. })) if first <= last => Some(*last),
        _ => None,
    };
    number.filter(|it| NUMBERS.contains(it)).ok_or_else(not_a_delivery)
}

fn not_a_delivery() -> Status {
    Status::invalid_argument("a delivery must contain a batch or dropped batches")
}

fn take(channel: &Channel, delivery: Delivery) -> Result<(), Status> {
    match delivery.what {
        Some(What::Batch(Batch { number, body })) if NUMBERS.contains(&number) => {
            channel.take(number, &body)?;
        }
        Some(What::Dropped(DroppedBatches { first, last, until, packets }))
            if first <= last && NUMBERS.contains(&last) =>
        {
            channel.give_up(&(first..=last), until, packets.min(MAX_PACKETS))?;
        }
        _ => return Err(not_a_delivery()),
    }
    Ok(())
}

impl From<Refused> for Status {
    fn from(refused: Refused) -> Self {
        let why = refused.to_string();
        match refused {
            Refused::NoSuchTask(_) => Self::not_found(why),
            Refused::NotYours { .. } => Self::permission_denied(why),
            Refused::Moved(_) => Self::failed_precondition(why),
            Refused::Superseded(_) => Self::aborted(why),
            Refused::OutOfTurn(_) => Self::out_of_range(why),
            Refused::Results(_) => Self::unavailable(why),
        }
    }
}
