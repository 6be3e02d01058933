//! The probe attends to its controller.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use super::Error;
use crate::v1::control_client::ControlClient;
use crate::v1::{Assignment, Report};

/// How often it says how it does.
const INTERVAL: Duration = Duration::from_secs(10);

/// Tells the controller how the probe does, and hears what it has to measure, until the controller ends that.
///
/// # Errors
/// When the controller is not there, or does not take the probe for one of its own.
pub(super) async fn attend(
    controller: Channel,
    name: &str,
    report: impl Fn() -> Report,
    assignments: &watch::Sender<Option<Assignment>>,
) -> Result<(), Error> {
    let refused = |status| Error::refused(name.to_owned(), status);
    let (reports, outgoing) = mpsc::channel(1);
    let heard = ControlClient::new(controller).attend(ReceiverStream::new(outgoing)).await;
    let mut heard = heard.map_err(refused)?.into_inner();
    let mut interval = time::interval(INTERVAL);
    loop {
        tokio::select! {
            assignment = heard.message() => match assignment.map_err(refused)? {
                Some(assignment) => drop(assignments.send_replace(Some(assignment))),
                None => return Ok(()),
            },
            _ = interval.tick() => {
                // One that finds no room is not news any more.
                drop(reports.try_send(report()));
            }
        }
    }
}
