//! Enrolment and renewal of certificates.

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tonic::Status;
use tonic::transport::Channel;

use super::Error;
use crate::pki::{Credentials, Request, Role, Token};
use crate::transport::{Trust, call};
use crate::v1::control_client::ControlClient;
use crate::v1::{Certificate, Enrolment, Renewal};

/// Enrols at the controller at `HOST:PORT` with a token, which also identifies the controller. The same key can be
/// signed again, in case the response was lost.
///
/// # Errors
/// When the controller cannot be reached, is not the one of the token, or rejects it.
pub async fn enrol(
    controller: &str,
    token: &Token,
    request: &Request,
) -> Result<Credentials, Error> {
    let mut client = client(controller, &Trust::Token(token))?;
    let enrolment = Enrolment { token: token.to_string(), request: request.pem()? };
    let answer = client.enrol(enrolment).await;
    credentials(request, answer.map_err(|status| refused(controller, status))?.into_inner())
}

/// Renews valid credentials with a new key.
///
/// # Errors
/// When the controller cannot be reached, or the credentials are not valid any more.
pub async fn renew(controller: &str, credentials_now: &Credentials) -> Result<Credentials, Error> {
    let request = Request::new()?;
    let mut client = client(controller, &Trust::Certificate(credentials_now))?;
    let answer = client.renew(Renewal { request: request.pem()? }).await;
    credentials(&request, answer.map_err(|status| refused(controller, status))?.into_inner())
}

fn client(controller: &str, trust: &Trust<'_>) -> Result<ControlClient<Channel>, Error> {
    Ok(ControlClient::new(call(controller, Role::Controller, trust)?))
}

fn credentials(request: &Request, answer: Certificate) -> Result<Credentials, Error> {
    let Certificate { certificate: certificate_pem, authority: trust_pem } = answer;
    let certificate = CertificateDer::from_pem_slice(certificate_pem.as_bytes());
    if !certificate.is_ok_and(|it| request.is_answered_by(&it)) {
        return Err(Error::AnotherKey);
    }
    Ok(Credentials { key_pem: request.key_pem(), certificate_pem, trust_pem })
}

fn refused(controller: &str, status: Status) -> Error {
    Error::Refused { node: format!("the controller at {controller}"), status: Box::new(status) }
}
