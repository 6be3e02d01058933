//! Session of a collector that runs as a separate process.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use axum::http::uri::Authority;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task::block_in_place;
use tonic::{Status, Streaming};
use tracing::info;

use super::control::Control;
use super::placement::Reported;
use super::shared_ca::ValidCertificates;
use crate::authorizer::Caller;
use crate::collector::{Begun, Handover, TaskEpoch, TaskEpochs};
use crate::task::{TaskRecord, Tasks};
use crate::v1::{self, Charge, Presence, Task};

/// Longest address: a host name (RFC 1035 section 2.3.4) and a port.
const MAX_ADDRESS_LENGTH: usize = 261;

/// A connected collector.
pub(super) struct CollectorSession {
    pub(super) caller: Caller,
    pub(super) control: Control,
}

impl CollectorSession {
    pub(super) async fn accompany(
        self,
        from: SocketAddr,
        presences: Streaming<Presence>,
        charges: mpsc::Sender<Result<Charge, Status>>,
    ) {
        let (subject, came) = (self.caller.subject(), Timestamp::now());
        let ended = self.exchange((from, came), presences, &charges).await;
        self.control.placement.disconnected(&subject.name, came);
        match ended {
            Ok(()) => info!("the {subject} disconnected"),
            Err(status) => {
                info!("the {subject} disconnected: {}", status.message());
                // A collector that does not read it connects again anyway.
                drop(charges.send(Err(status)).await);
            }
        }
    }

    /// Sends tasks and valid certificates whenever they change, and receives notifications of new results.
    async fn exchange(
        &self,
        (from, came): (SocketAddr, Timestamp),
        mut presences: Streaming<Presence>,
        charges: &mpsc::Sender<Result<Charge, Status>>,
    ) -> Result<(), Status> {
        let Control { authority, plan, placement, sources, .. } = &self.control;
        let (subject, mut members) = (self.caller.subject(), authority.members());
        let Some(presence) = presences.message().await? else {
            return Ok(());
        };
        let address = reached(&presence.address, from)?;
        info!("the {subject} connected; its address is {address}");
        block_in_place(|| placement.connected(&subject.name, address, came))
            .map_err(|error| Status::unavailable(error.to_string()))?;
        placement.reported(&subject.name, came, Reported::of(&presence));
        self.store_begun(&presence.begun)?;
        let (mut tasks, mut placed, mut last) = (plan.subscribe(), placement.subscribe(), None);
        // A removal also changes the tasks.
        let removed = plan.removed();
        loop {
            // The certificate may have been revoked.
            self.caller.check()?;
            placed.mark_unchanged();
            let known = placement.known_to(&tasks.borrow_and_update(), Some(&subject.name));
            let removed = placement.removed_of(&removed.borrow(), &subject.name);
            let charge = charge(&known, removed, &members.borrow_and_update());
            if last.as_ref() != Some(&charge) {
                last = Some(charge.clone());
                if charges.send(Ok(charge)).await.is_err() {
                    return Ok(());
                }
            }
            tokio::select! {
                () = charges.closed() => return Ok(()),
                changed = tasks.changed() => if changed.is_err() { return Ok(()) },
                changed = placed.changed() => if changed.is_err() { return Ok(()) },
                changed = members.changed() => if changed.is_err() { return Ok(()) },
                presence = presences.message() => match presence? {
                    Some(presence) => {
                        placement.reported(&subject.name, came, Reported::of(&presence));
                        self.store_begun(&presence.begun)?;
                        sources.notify();
                    }
                    None => return Ok(()),
                },
            }
        }
    }
}

impl CollectorSession {
    /// Stores where the results of tasks begin that moved to the collector.
    fn store_begun(&self, begun: &[v1::Begun]) -> Result<(), Status> {
        let begun = begun.iter().map(|it| {
            let v1::Begun { task, epoch, start, spool, behind } = *it;
            Begun { task, epoch, start, spool, behind }
        });
        let name = &self.caller.subject().name;
        block_in_place(|| self.control.placement.begun(Some(name), begun))
            .map_err(|error| Status::unavailable(error.to_string()))
    }
}

fn charge(
    (tasks, epochs): &(Tasks, TaskEpochs),
    removed: Vec<u64>,
    members: &ValidCertificates,
) -> Charge {
    let mut handovers = BTreeMap::<u64, Vec<v1::Handover>>::new();
    for (task, Handover { epoch, start, spool, behind }) in &epochs.handovers {
        let (epoch, start, spool, behind) = (*epoch, *start, *spool, *behind);
        handovers.entry(*task).or_default().push(v1::Handover { epoch, start, spool, behind });
    }
    let mut task = |(number, entered): (&u64, &TaskRecord)| {
        // A task that was parsed can be serialised.
        let body = serde_json::to_string(&entered.task).ok()?;
        let ended = entered.ended.map(Timestamp::as_second);
        let TaskEpoch { epoch, is_former: former } =
            epochs.placed.get(number).copied().unwrap_or_default();
        let handovers = handovers.remove(number).unwrap_or_default();
        let (number, made, shard) = (*number, entered.made.as_second(), entered.task.shard.into());
        Some(Task { number, body, made, ended, epoch, former, handovers, shard })
    };
    Charge { tasks: tasks.iter().filter_map(&mut task).collect(), good: members.good(), removed }
}

/// The address at which a collector can be reached, from its own statement and its connection.
fn reached(address: &str, from: SocketAddr) -> Result<String, Status> {
    let ip = from.ip().to_canonical();
    let address = match address.strip_prefix(':').map(str::parse) {
        // At a loopback address, other machines would connect to themselves.
        Some(Ok(_)) if ip.is_loopback() => {
            let why = "cannot use the collector's address: it listens at any address of the controller's machine; give \
                       the address for probes with --reach";
            return Err(Status::invalid_argument(why));
        }
        Some(Ok(port)) => SocketAddr::new(ip, port).to_string(),
        _ => address.to_owned(),
    };
    if address.parse().is_ok_and(|it: SocketAddr| it.ip().is_unspecified()) {
        let why = format!(
            "cannot use the collector's address {address}: it is not specific; give the address for probes with --reach"
        );
        return Err(Status::invalid_argument(why));
    }
    let is_here = address.parse().is_ok_and(|it: SocketAddr| it.ip().is_loopback());
    if (is_here || address.starts_with("localhost:")) && !ip.is_loopback() {
        let why = format!(
            "cannot use the collector's address {address}: only its own machine can reach it; give the address \
             for probes with --listen or --reach"
        );
        return Err(Status::invalid_argument(why));
    }
    let is_port = |it: Authority| it.port_u16().is_some_and(|port| port > 0);
    if address.len() <= MAX_ADDRESS_LENGTH && address.parse().is_ok_and(is_port) {
        Ok(address)
    } else {
        Err(Status::invalid_argument(format!(
            "cannot use the collector's address {address:?}: expected HOST:PORT"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_stated_or_that_of_the_connection() {
        let from = "[::ffff:192.0.2.7]:50000".parse().unwrap();
        let reached = |address| reached(address, from).map_err(|it| it.message().to_owned());
        assert_eq!(reached(":4749"), Ok("192.0.2.7:4749".to_owned()));
        for text in ["collect.example.org:4749", "[2001:db8::1]:80"] {
            assert_eq!(reached(text), Ok(text.to_owned()));
        }
        for text in ["", ":", ":x", ":0", "host", "host:", "a b:1", "2001:db8::1", "host:99999"] {
            assert!(reached(text).unwrap_err().contains("expected HOST:PORT"), "{text}");
        }
        for text in ["127.0.0.1:4749", "[::1]:4749", "localhost:4749", "0.0.0.0:4749", "[::]:4749"]
        {
            assert!(reached(text).unwrap_err().contains("--reach"), "{text}");
        }
        let here = super::reached("127.0.0.1:4749", "127.0.0.1:50000".parse().unwrap());
        assert_eq!(here.unwrap(), "127.0.0.1:4749");
        let why = super::reached(":4749", "[::1]:50000".parse().unwrap()).unwrap_err();
        assert!(why.message().contains("--reach"), "{why}");
    }
}
