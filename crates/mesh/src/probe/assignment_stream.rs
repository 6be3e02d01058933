//! The stream between a probe and its controller: reports up, assignments down.

use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::{self, MissedTickBehavior};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use super::Error;
use crate::v1::control_client::ControlClient;
use crate::v1::{Assignment, Report};

/// Time between two reports, and between two looks for changed troubles, which are reported without further delay.
const INTERVAL: Duration = Duration::from_secs(10);
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Sends reports to the controller and receives assignments, until the controller ends the stream.
///
/// # Errors
/// When the controller cannot be reached or rejects the probe.
pub(super) async fn exchange(
    controller: Channel,
    name: &str,
    report: impl Fn() -> Report,
    assignments: &watch::Sender<Option<Assignment>>,
    admit: impl Fn(),
) -> Result<(), Error> {
    let refused = |status| Error::refused(name.to_owned(), status);
    let (reports, outgoing) = mpsc::channel(1);
    let incoming = ControlClient::new(controller).attend(ReceiverStream::new(outgoing)).await;
    let mut incoming = incoming.map_err(refused)?.into_inner();
    let mut checks = time::interval(CHECK_INTERVAL);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = None;
    loop {
        tokio::select! {
            assignment = incoming.message() => match assignment.map_err(refused)? {
                Some(assignment) => {
                    admit();
                    drop(assignments.send_replace(Some(assignment)));
                }
                None => return Ok(()),
            },
            now = checks.tick() => {
                let report = report();
                let troubles = report.troubles.clone();
                let is_due = last.as_ref().is_none_or(|(at, reported)| {
                    // Ticks are some milliseconds late.
                    now.duration_since(*at) + CHECK_INTERVAL / 2 >= INTERVAL || *reported != troubles
                });
                // A report that finds no room is dropped; the next one is newer.
                if is_due && reports.try_send(report).is_ok() {
                    last = Some((now, troubles));
                }
            }
        }
    }
}
