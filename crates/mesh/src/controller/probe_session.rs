//! Session of a probe.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task;
use tonic::{Status, Streaming};
use tracing::{info, warn};

use super::clocks;
use super::control::Control;
use super::health::{ProbeHealth, Trouble};
use crate::authorizer::Caller;
use crate::task::{Tasks, first_shard};
use crate::v1::{Assignment, Report};

/// A connected probe.
pub(super) struct ProbeSession {
    pub(super) caller: Caller,
    pub(super) control: Control,
    pub(super) came: Timestamp,
}

impl ProbeSession {
    pub(super) async fn accompany(
        self,
        address: SocketAddr,
        mut reports: Streaming<Report>,
        assignments: mpsc::Sender<Result<Assignment, Status>>,
    ) {
        let subject = self.caller.subject().clone();
        // Probes begin with a report.
        let Ok(Some(first)) = reports.message().await else { return };
        let (caller, now) = ((address, first.instance), Timestamp::now());
        let connected = self.control.probes.connected(&subject.name, caller, self.came, now);
        if let Err(other) = connected {
            warn!(
                "refused the {subject} at {address}: a probe with this certificate is connected from {other}"
            );
            let why = format!(
                "a probe with the certificate of {} is connected from {other}; enrol each probe with its own token",
                subject.name
            );
            drop(assignments.send(Err(Status::already_exists(why))).await);
            return;
        }
        info!("the {subject} connected from {address}");
        let ended = self.exchange(first, reports, &assignments).await;
        self.control.probes.disconnected(&subject.name, self.came, Timestamp::now());
        match ended {
            Ok(()) => info!("the {subject} disconnected"),
            Err(status) => {
                info!("the {subject} disconnected: {}", status.message());
                // A probe that does not read it connects again anyway.
                drop(assignments.send(Err(status)).await);
            }
        }
    }

    /// Sends the assignment whenever it changes, and receives reports.
    async fn exchange(
        &self,
        first: Report,
        mut reports: Streaming<Report>,
        assignments: &mpsc::Sender<Result<Assignment, Status>>,
    ) -> Result<(), Status> {
        let probe = &self.caller.subject().name;
        let Control { authority, plan, probes, placement, .. } = &self.control;
        let (mut tasks, mut placed) = (plan.subscribe(), placement.subscribe());
        let (mut members, mut last) = (authority.members(), None);
        let mut warned = BTreeSet::new();
        let mut take = |report: Report, tasks: &Tasks| {
            let mut health: ProbeHealth = report.into();
            // People see tasks, not shards.
            for Trouble { task, why } in std::mem::take(&mut health.troubles) {
                let trouble = Trouble { task: first_shard(task, tasks), why };
                if trouble.task == task || !health.troubles.contains(&trouble) {
                    health.troubles.push(trouble);
                }
            }
            clocks::warn_of(probe, &health, tasks, &mut warned);
            probes.report(probe, self.came, health, Timestamp::now())
        };
        take(first, &tasks.borrow());
        loop {
            let tasks_now = Arc::clone(&tasks.borrow_and_update());
            placed.mark_unchanged();
            members.mark_unchanged();
            let assignment = task::block_in_place(|| self.control.assignment(&tasks_now, probe))
                .map_err(|error| Status::unavailable(error.to_string()))?;
            // The certificate may have been revoked.
            self.caller.check()?;
            if last.as_ref() != Some(&assignment) {
                last = Some(assignment.clone());
                if assignments.send(Ok(assignment)).await.is_err() {
                    return Ok(());
                }
            }
            tokio::select! {
                () = assignments.closed() => return Ok(()),
                changed = tasks.changed() => if changed.is_err() { return Ok(()) },
                changed = placed.changed() => if changed.is_err() { return Ok(()) },
                changed = members.changed() => if changed.is_err() { return Ok(()) },
                report = reports.message() => match report? {
                    Some(report) => {
                        self.caller.check()?;
                        if !take(report, &tasks.borrow()) {
                            let why = "another connection with this certificate replaced this one";
                            return Err(Status::already_exists(why));
                        }
                    }
                    None => return Ok(()),
                },
            }
        }
    }
}
