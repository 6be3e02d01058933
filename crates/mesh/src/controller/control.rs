//! What probes and collectors call the controller for.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::ConnectInfo;
use axum::http::Extensions;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::task;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::{info, warn};

use super::credentials::now;
use super::homes::Homes;
use super::members::Shared;
use super::{Attendance, Plan, Sources, clocks, collect};
use crate::gate::{Caller, Gate};
use crate::pki::{self, Issued, Role};
use crate::task::{ActiveDelay, Entered, Measure, Tasks};
use crate::transport::Peer;
use crate::v1::control_server::Control as Service;
use crate::v1::{Assignment, Certificate, Charge, Duty, Enrolment, Presence, Renewal, Report};
use crate::{DatabaseError, Name};

/// What waits for a probe or a collector to read it.
const WAITING: usize = 4;

#[derive(Clone)]
pub(super) struct Control {
    pub(super) authority: Arc<Shared>,
    pub(super) gate: Arc<Gate>,
    pub(super) plan: Arc<Plan>,
    pub(super) attendance: Arc<Attendance>,
    pub(super) homes: Arc<Homes>,
    pub(super) sources: Arc<Sources>,
}

#[tonic::async_trait]
impl Service for Control {
    type AttendStream = ReceiverStream<Result<Assignment, Status>>;
    type CollectStream = ReceiverStream<Result<Charge, Status>>;

    async fn enrol(&self, request: Request<Enrolment>) -> Result<Response<Certificate>, Status> {
        let address = address(request.extensions());
        let Enrolment { token, request } = request.into_inner();
        let token = token.parse();
        let token = token.map_err(|why: pki::NotAToken| {
            warn!("did not let in {}: {why}", shown(address));
            Status::invalid_argument(why.to_string())
        })?;
        let issued = self.authority.lock().enrol(&token, &request, now());
        let issued = issued.map_err(|why| {
            warn!("did not let in {}: {why}", shown(address));
            refusal(&why)
        })?;
        self.authority.look().map_err(|why| refusal(&why))?;
        info!("let in the {} at {}", issued.subject, shown(address));
        Ok(Response::new(certificate(issued)))
    }

    async fn renew(&self, request: Request<Renewal>) -> Result<Response<Certificate>, Status> {
        let caller = self.gate.caller(request.extensions(), &Role::ALL)?;
        let Renewal { request } = request.into_inner();
        let (subject, serial) = (caller.subject(), caller.serial()?);
        let issued = self.authority.lock().renew(subject, serial, &request, now());
        let issued = issued.map_err(|why| {
            warn!("did not renew the certificate of the {subject}: {why}");
            refusal(&why)
        })?;
        self.authority.look().map_err(|why| refusal(&why))?;
        info!("renewed the certificate of the {subject}");
        Ok(Response::new(certificate(issued)))
    }

    async fn attend(
        &self,
        request: Request<Streaming<Report>>,
    ) -> Result<Response<Self::AttendStream>, Status> {
        let caller = self.gate.caller(request.extensions(), &[Role::Probe])?;
        let address = known(request.extensions())?;
        let (assignments, answers) = mpsc::channel(WAITING);
        let visit = Visit { caller, control: self.clone(), came: Timestamp::now() };
        task::spawn(visit.accompany(address, request.into_inner(), assignments));
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn collect(
        &self,
        request: Request<Streaming<Presence>>,
    ) -> Result<Response<Self::CollectStream>, Status> {
        let caller = self.gate.caller(request.extensions(), &[Role::Collector])?;
        let address = known(request.extensions())?;
        let (charges, answers) = mpsc::channel(WAITING);
        let visit = collect::Visit { caller, control: self.clone() };
        task::spawn(visit.accompany(address, request.into_inner(), charges));
        Ok(Response::new(ReceiverStream::new(answers)))
    }
}

/// A probe that attends.
struct Visit {
    caller: Caller,
    control: Control,
    came: Timestamp,
}

impl Visit {
    async fn accompany(
        self,
        address: SocketAddr,
        reports: Streaming<Report>,
        assignments: mpsc::Sender<Result<Assignment, Status>>,
    ) {
        let subject = self.caller.subject().clone();
        self.control.attendance.comes(&subject.name, address, self.came);
        info!("the {subject} attends from {address}");
        let ended = self.exchange(reports, &assignments).await;
        self.control.attendance.goes(&subject.name, self.came, Timestamp::now());
        match ended {
            Ok(()) => info!("the {subject} is gone"),
            Err(status) => {
                info!("the {subject} is gone: {}", status.message());
                // Who does not listen any more has to come again anyway.
                drop(assignments.send(Err(status)).await);
            }
        }
    }

    /// Tells the probe what it has to measure whenever that changes, and hears how it does.
    async fn exchange(
        &self,
        mut reports: Streaming<Report>,
        assignments: &mpsc::Sender<Result<Assignment, Status>>,
    ) -> Result<(), Status> {
        let probe = &self.caller.subject().name;
        let Control { authority, plan, attendance, homes, .. } = &self.control;
        let (mut tasks, mut settled) = (plan.subscribe(), homes.subscribe());
        let (mut members, mut told) = (authority.members(), None);
        let mut warned = BTreeSet::new();
        loop {
            let tasks_now = Arc::clone(&tasks.borrow_and_update());
            settled.mark_unchanged();
            members.mark_unchanged();
            let assignment = task::block_in_place(|| self.control.assignment(&tasks_now, probe))
                .map_err(|error| Status::unavailable(error.to_string()))?;
            // It may have been revoked since.
            self.caller.check()?;
            if told.as_ref() != Some(&assignment) {
                told = Some(assignment.clone());
                if assignments.send(Ok(assignment)).await.is_err() {
                    return Ok(());
                }
            }
            tokio::select! {
                () = assignments.closed() => return Ok(()),
                changed = tasks.changed() => if changed.is_err() { return Ok(()) },
                changed = settled.changed() => if changed.is_err() { return Ok(()) },
                changed = members.changed() => if changed.is_err() { return Ok(()) },
                report = reports.message() => match report? {
                    Some(report) => {
                        self.caller.check()?;
                        let health = report.into();
                        clocks::warn_of(probe, &health, &tasks.borrow(), &mut warned);
                        attendance.says(probe, self.came, health, Timestamp::now());
                    }
                    None => return Ok(()),
                },
            }
        }
    }
}

impl Control {
    /// What a probe has to measure, and where it delivers that. Each task has a home from then on.
    fn assignment(&self, tasks: &Tasks, probe: &Name) -> Result<Assignment, DatabaseError> {
        let members = Arc::clone(&self.authority.members().borrow());
        let has_a_part = |it: &Entered| it.task.measure.probes().contains(&probe);
        let own = || tasks.iter().filter(|(_, it)| has_a_part(it));
        let open = || own().filter(|(_, it)| it.ended.is_none());
        open().try_for_each(|(number, _)| self.homes.settle(*number, tasks, &members))?;
        let duties = open().filter_map(|(number, it)| self.duty(*number, it).transpose());
        let duties = duties.collect::<Result<_, _>>()?;
        let numbers = own().map(|(number, _)| *number);
        let destinations = self.homes.destinations(numbers, &members);
        Ok(Assignment { duties, destinations })
    }

    /// What its probes are told of a task; nothing if it has been ended since it was looked for.
    fn duty(&self, task: u64, entered: &Entered) -> Result<Option<Duty>, DatabaseError> {
        let measure = &entered.task.measure;
        let secret = if measure.is_authenticated() {
            let Some(secret) = self.plan.secret(task)? else { return Ok(None) };
            secret
        } else {
            Vec::new()
        };
        // A task that was read can be written.
        let Ok(body) = serde_json::to_string(&entered.task) else { return Ok(None) };
        let address = where_reflected(measure, &self.attendance);
        let address = address.map(|it| it.to_string()).unwrap_or_default();
        Ok(Some(Duty { task, body, made: entered.made.as_second(), address, secret }))
    }
}

/// Where the probe that reflects can be reached, as far as that can be seen from here.
fn where_reflected(measure: &Measure, attendance: &Attendance) -> Option<IpAddr> {
    let Measure::ActiveDelay(ActiveDelay { from, to, .. }) = measure else { return None };
    let [from, to] = [from, to].map(|end| attendance.address(&end.probe));
    // One on this machine is elsewhere for others.
    to.filter(|to| !to.is_loopback() || from.is_none_or(|from| from.is_loopback()))
}

fn certificate(issued: Issued) -> Certificate {
    Certificate { certificate: issued.certificate_pem, authority: issued.trust_pem }
}

fn refusal(why: &pki::Error) -> Status {
    use pki::Error::{Certificate, EndedToken, NotGood, UnknownToken, UsedToken};
    let text = why.to_string();
    match why {
        Certificate(_) => Status::invalid_argument(text),
        UnknownToken | UsedToken { .. } | EndedToken { .. } | NotGood(_) => {
            Status::unauthenticated(text)
        }
        _ => Status::unavailable(text),
    }
}

fn address(call: &Extensions) -> Option<SocketAddr> {
    call.get::<ConnectInfo<Peer>>().map(|ConnectInfo(peer)| peer.address)
}

/// The address of a caller.
fn known(call: &Extensions) -> Result<SocketAddr, Status> {
    address(call).ok_or_else(|| Status::internal("the caller has no address"))
}

fn shown(address: Option<SocketAddr>) -> String {
    address.map_or_else(|| "an unknown address".to_owned(), |it| it.to_string())
}
