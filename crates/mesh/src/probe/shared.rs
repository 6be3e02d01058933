//! Resources that captures and test ends share.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, SyncSender};
use std::time::SystemTime;

use tokio::sync::watch;
use wirestamp_active::SocketError;
use wirestamp_clock::{ClockService, Time};
use wirestamp_packet::LinkType;
use wirestamp_sys::netns::{Netns, NetnsError};

use super::ChannelName;
use super::delay_observer::absence;
use super::machine::Machine;
use super::tap::{Batches, Closed, Command, Tap};

/// Why an interface is not captured, or a point is not observed.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error(transparent)]
    Capture(#[from] wirestamp_capture::Error),
    #[error(transparent)]
    Namespace(#[from] NetnsError),
    #[error("cannot enter the namespace {0}: {1}; start the probe with --namespaces")]
    Enter(String, io::Error),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// Resources that all captures and test ends share.
pub(super) struct Shared {
    pub(super) clock: Arc<ClockService>,
    pub(super) machine: Machine,
    pub(super) batches: SyncSender<Batches>,
    pub(super) closed: Closed,
    /// Notified when a capture or test end stops on its own.
    pub(super) ended: watch::Sender<()>,
}

impl Shared {
    /// Reports that these points were not observed until now, so that the other points of their tasks need not wait.
    pub(super) fn report_absence(&self, names: impl Iterator<Item = ChannelName>) {
        let now = Time::try_from(SystemTime::now()).unwrap_or(Time::from_nanos(0));
        let (mut machine, mut made) = (self.machine.clone(), Batches::new());
        let mut closed = self.closed.lock();
        for name in names {
            let reported_until = closed.entry(name).or_insert(now);
            if *reported_until < now {
                made.push((name, absence(*reported_until, now, machine.clock())));
                *reported_until = now;
            }
        }
        drop(closed);
        if !made.is_empty() {
            // The receiver lives as long as the probe.
            drop(self.batches.send(made));
        }
    }

    /// The machine.
    pub(super) fn machine(&self) -> Machine {
        self.machine.clone()
    }

    /// A tap that obeys `commands`, for frames that begin in this way.
    pub(super) fn tap(&self, link: LinkType, commands: mpsc::Receiver<Command>) -> Tap {
        Tap::new(
            link,
            commands,
            self.batches.clone(),
            self.machine.clone(),
            Arc::clone(&self.closed),
        )
    }

    /// Notifies that a capture or test end has stopped on its own.
    pub(super) fn ended(&self) -> watch::Sender<()> {
        self.ended.clone()
    }
}

/// Runs `act` in a network namespace, or in the probe's own.
pub(super) fn within<T: Send>(
    namespace: Option<&str>,
    act: impl FnOnce() -> T + Send,
) -> Result<T, StartError> {
    let Some(name) = namespace else { return Ok(act()) };
    let entered = Netns::open(name)?.run(act);
    entered.map_err(|cause| StartError::Enter(name.to_owned(), cause))
}
