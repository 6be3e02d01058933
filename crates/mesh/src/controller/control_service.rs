//! Calls from probes and collectors.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::ConnectInfo;
use axum::http::Extensions;
use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio::{task, time};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};
use tracing::{info, warn};

use super::control::Control;
use super::credentials::now;
use super::{collector_session, probe_session};
use crate::pki::{self, Issued, Role};
use crate::transport::Peer;
use crate::v1::control_server::Control as Service;
use crate::v1::{Assignment, Certificate, Charge, Enrolment, Presence, Renewal, Report};

/// Time until an enrolment is rejected. With the max number of concurrent requests of a connection without a certificate, and of
/// such connections, it slows callers that wait for the answer.
const REJECTION_DELAY: Duration = Duration::from_secs(1);

/// Queued messages to a probe or collector.
const WAITING: usize = 4;

#[tonic::async_trait]
impl Service for Control {
    type AttendStream = ReceiverStream<Result<Assignment, Status>>;
    type CollectStream = ReceiverStream<Result<Charge, Status>>;

    async fn enrol(&self, request: Request<Enrolment>) -> Result<Response<Certificate>, Status> {
        let address = address(request.extensions());
        let Enrolment { token, request } = request.into_inner();
        let issued = match token.parse() {
            Ok(token) => self.authority.lock().enrol(&token, &request, now()),
            Err(why @ pki::NotAToken) => Err(why.into()),
        };
        let issued = match issued {
            Ok(issued) => issued,
            Err(why) => {
                warn!("rejected an enrolment from {}: {why}", shown(address));
                time::sleep(REJECTION_DELAY).await;
                return Err(refusal(&why));
            }
        };
        self.authority.refresh().map_err(|why| refusal(&why))?;
        info!("enrolled the {} at {}", issued.subject, shown(address));
        Ok(Response::new(certificate(issued)))
    }

    async fn renew(&self, request: Request<Renewal>) -> Result<Response<Certificate>, Status> {
        let caller = self.authorizer.caller(request.extensions(), &Role::ALL)?;
        let Renewal { request } = request.into_inner();
        let (subject, serial) = (caller.subject(), caller.serial()?);
        let issued = self.authority.lock().renew(subject, serial, &request, now());
        let issued = issued.map_err(|why| {
            warn!("cannot renew the certificate of the {subject}: {why}");
            refusal(&why)
        })?;
        self.authority.refresh().map_err(|why| refusal(&why))?;
        info!("renewed the certificate of the {subject}");
        Ok(Response::new(certificate(issued)))
    }

    async fn attend(
        &self,
        request: Request<Streaming<Report>>,
    ) -> Result<Response<Self::AttendStream>, Status> {
        let caller = self.authorizer.caller(request.extensions(), &[Role::Probe])?;
        let address = known(request.extensions())?;
        let (assignments, answers) = mpsc::channel(WAITING);
        let session =
            probe_session::ProbeSession { caller, control: self.clone(), came: Timestamp::now() };
        task::spawn(session.accompany(address, request.into_inner(), assignments));
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn collect(
        &self,
        request: Request<Streaming<Presence>>,
    ) -> Result<Response<Self::CollectStream>, Status> {
        let caller = self.authorizer.caller(request.extensions(), &[Role::Collector])?;
        let address = known(request.extensions())?;
        let (charges, answers) = mpsc::channel(WAITING);
        let session = collector_session::CollectorSession { caller, control: self.clone() };
        task::spawn(session.accompany(address, request.into_inner(), charges));
        Ok(Response::new(ReceiverStream::new(answers)))
    }
}

fn certificate(issued: Issued) -> Certificate {
    Certificate { certificate: issued.certificate_pem, authority: issued.trust_pem }
}

fn refusal(why: &pki::Error) -> Status {
    use pki::Error::{
        Certificate, ExpiredToken, InvalidCertificate, NotAToken, UnknownToken, UsedToken,
    };
    let text = why.to_string();
    match why {
        Certificate(_) | NotAToken(_) => Status::invalid_argument(text),
        UnknownToken | UsedToken { .. } | ExpiredToken { .. } | InvalidCertificate(_) => {
            Status::unauthenticated(text)
        }
        _ => Status::unavailable(text),
    }
}

fn address(call: &Extensions) -> Option<SocketAddr> {
    call.get::<ConnectInfo<Peer>>().map(|ConnectInfo(peer)| peer.address)
}

/// The caller's address.
fn known(call: &Extensions) -> Result<SocketAddr, Status> {
    address(call).ok_or_else(|| Status::internal("the caller has no address"))
}

fn shown(address: Option<SocketAddr>) -> String {
    address.map_or_else(|| "an unknown address".to_owned(), |it| it.to_string())
}
