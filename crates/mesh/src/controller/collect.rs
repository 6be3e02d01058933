//! A collector that is a process of its own attends to the controller.

use std::net::SocketAddr;

use axum::http::uri::Authority;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task::block_in_place;
use tonic::{Status, Streaming};
use tracing::info;

use super::control::Control;
use super::members::Members;
use crate::gate::Caller;
use crate::task::{Entered, Tasks};
use crate::v1::{Charge, Presence, Task};

/// The longest address: that of a host (RFC 1035 section 2.3.4), and a port.
const LONGEST: usize = 261;

/// A collector that attends.
pub(super) struct Visit {
    pub(super) caller: Caller,
    pub(super) control: Control,
}

impl Visit {
    pub(super) async fn accompany(
        self,
        from: SocketAddr,
        presences: Streaming<Presence>,
        charges: mpsc::Sender<Result<Charge, Status>>,
    ) {
        let (subject, came) = (self.caller.subject(), Timestamp::now());
        let ended = self.exchange((from, came), presences, &charges).await;
        self.control.homes.goes(&subject.name, came);
        match ended {
            Ok(()) => info!("the {subject} is gone"),
            Err(status) => {
                info!("the {subject} is gone: {}", status.message());
                // Who does not listen any more has to come again anyway.
                drop(charges.send(Err(status)).await);
            }
        }
    }

    /// Tells the collector what it has to know whenever that changes, and hears when it has new results.
    async fn exchange(
        &self,
        (from, came): (SocketAddr, Timestamp),
        mut presences: Streaming<Presence>,
        charges: &mpsc::Sender<Result<Charge, Status>>,
    ) -> Result<(), Status> {
        let Control { authority, plan, homes, sources, .. } = &self.control;
        let (subject, mut members) = (self.caller.subject(), authority.members());
        let Some(Presence { address, .. }) = presences.message().await? else { return Ok(()) };
        let address = reached(&address, from)?;
        info!("the {subject} attends, and is reached at {address}");
        block_in_place(|| homes.comes(&subject.name, address, came))
            .map_err(|error| Status::unavailable(error.to_string()))?;
        let (mut tasks, mut settled, mut told) = (plan.subscribe(), homes.subscribe(), None);
        loop {
            // It may have been revoked since.
            self.caller.check()?;
            let of_it = homes.tasks_of(&tasks.borrow_and_update(), Some(&subject.name));
            let charge = charge(&of_it, &members.borrow_and_update());
            if told.as_ref() != Some(&charge) {
                told = Some(charge.clone());
                if charges.send(Ok(charge)).await.is_err() {
                    return Ok(());
                }
            }
            tokio::select! {
                () = charges.closed() => return Ok(()),
                changed = tasks.changed() => if changed.is_err() { return Ok(()) },
                changed = settled.changed() => if changed.is_err() { return Ok(()) },
                changed = members.changed() => if changed.is_err() { return Ok(()) },
                presence = presences.message() => match presence? {
                    Some(_) => sources.have_news(),
                    None => return Ok(()),
                },
            }
        }
    }
}

fn charge(tasks: &Tasks, members: &Members) -> Charge {
    let task = |(number, entered): (&u64, &Entered)| {
        // A task that was read can be written.
        let body = serde_json::to_string(&entered.task).ok()?;
        let ended = entered.ended.map(Timestamp::as_second);
        Some(Task { number: *number, body, made: entered.made.as_second(), ended })
    };
    Charge { tasks: tasks.iter().filter_map(task).collect(), good: members.good() }
}

/// Where a collector is reached that says so, and calls from somewhere.
fn reached(address: &str, from: SocketAddr) -> Result<String, Status> {
    let ip = from.ip().to_canonical();
    let address = match address.strip_prefix(':').map(str::parse) {
        // Probes elsewhere would look for it on their own machines.
        Some(Ok(_)) if ip.is_loopback() => {
            let why = "it listens at any address and calls from the controller's machine: say with \
                       --reach where probes find it";
            return Err(Status::invalid_argument(why));
        }
        Some(Ok(port)) => SocketAddr::new(ip, port).to_string(),
        _ => address.to_owned(),
    };
    if address.parse().is_ok_and(|it: SocketAddr| it.ip().is_unspecified()) {
        let why = format!("nobody reaches {address}: say with --reach where probes find it");
        return Err(Status::invalid_argument(why));
    }
    let is_here = address.parse().is_ok_and(|it: SocketAddr| it.ip().is_loopback());
    if (is_here || address.starts_with("localhost:")) && !ip.is_loopback() {
        let why = format!(
            "{address} is reached from its own machine only: say with --listen or --reach where \
             probes find it"
        );
        return Err(Status::invalid_argument(why));
    }
    let is_port = |it: Authority| it.port_u16().is_some_and(|port| port > 0);
    if address.len() <= LONGEST && address.parse().is_ok_and(is_port) {
        Ok(address)
    } else {
        Err(Status::invalid_argument(format!("{address:?} is no address: expected HOST:PORT")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_where_it_says_or_calls_from() {
        let from = "[::ffff:192.0.2.7]:50000".parse().unwrap();
        let reached = |address| reached(address, from).map_err(|it| it.message().to_owned());
        assert_eq!(reached(":4749"), Ok("192.0.2.7:4749".to_owned()));
        for text in ["collect.example.org:4749", "[2001:db8::1]:80"] {
            assert_eq!(reached(text), Ok(text.to_owned()));
        }
        for text in ["", ":", ":x", ":0", "host", "host:", "a b:1", "2001:db8::1", "host:99999"] {
            assert!(reached(text).unwrap_err().contains("is no address"), "{text}");
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
