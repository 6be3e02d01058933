//! Tasks and certificates from the controller. They are kept in a file, so that the collector continues after a restart
//! even if the controller is not reachable.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::RwLock;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::atomic_file;
use crate::authorizer::CertificateList;
use crate::collector::{Handover, TaskEpoch, TaskEpochs};
use crate::pki::{self, Serial};
use crate::task::{Removed, TaskRecord, Tasks};
use crate::v1::{self, Charge, Good, Task};

/// Tasks whose batches are accepted, and valid certificates.
pub(super) struct MeshState {
    file: PathBuf,
    tasks: watch::Sender<Arc<Tasks>>,
    removed: watch::Sender<Arc<Removed>>,
    epochs: watch::Sender<Arc<TaskEpochs>>,
    /// Expiry of each valid certificate.
    good: RwLock<HashMap<Serial, Timestamp>>,
}

impl MeshState {
    /// Reads the file; without a file there are no tasks.
    pub(super) fn open(file: PathBuf) -> Self {
        let charge = atomic_file::read(&file).unwrap_or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                warn!("cannot read {}: {error}; waiting for the controller", file.display());
            }
            Charge::default()
        });
        let (tasks, removed) = (watch::Sender::default(), watch::Sender::default());
        let epochs = watch::Sender::default();
        let mesh_state = Self { file, tasks, removed, epochs, good: RwLock::default() };
        mesh_state.take(&charge);
        mesh_state
    }

    /// The tasks and their changes.
    pub(super) fn tasks(&self) -> watch::Receiver<Arc<Tasks>> {
        self.tasks.subscribe()
    }

    /// The removed tasks and their changes.
    pub(super) fn removed(&self) -> watch::Receiver<Arc<Removed>> {
        self.removed.subscribe()
    }

    /// The placements of tasks that have moved, and their changes.
    pub(super) fn epochs(&self) -> watch::Receiver<Arc<TaskEpochs>> {
        self.epochs.subscribe()
    }

    /// Replaces tasks and certificates.
    pub(super) fn replace(&self, charge: &Charge) {
        self.take(charge);
        if let Err(error) = atomic_file::write(&self.file, charge) {
            warn!("cannot save tasks and certificates in {}: {error}", self.file.display());
        }
    }

    fn take(&self, charge: &Charge) {
        let good = charge.good.iter().filter_map(good).collect();
        *self.good.write() = good;
        let removed: Removed = charge.removed.iter().copied().collect();
        self.removed.send_if_modified(|before| {
            let is_other = **before != removed;
            *before = Arc::new(removed);
            is_other
        });
        // Before the tasks, so that no batch of a new task is taken in an earlier epoch.
        let epochs = epochs(charge);
        self.epochs.send_if_modified(|before| {
            let is_other = **before != epochs;
            *before = Arc::new(epochs);
            is_other
        });
        let tasks: Tasks = charge.tasks.iter().filter_map(task).collect();
        self.tasks.send_if_modified(|before| {
            let is_other = **before != tasks;
            if is_other {
                let open = tasks.values().filter(|it| it.ended.is_none()).count();
                info!("accepting batches of {} tasks, {open} of them current", tasks.len());
                *before = Arc::new(tasks);
            }
            is_other
        });
    }
}

impl CertificateList for MeshState {
    fn has(&self, serial: Serial, now: Timestamp) -> pki::Result<bool> {
        let good = self.good.read();
        Ok(good.get(&serial).is_some_and(|until| now < *until))
    }
}

fn good(good: &Good) -> Option<(Serial, Timestamp)> {
    Some((Serial::of(&good.serial)?, Timestamp::from_second(good.until).ok()?))
}

/// Placements of the tasks that have moved.
fn epochs(charge: &Charge) -> TaskEpochs {
    let place = |it: &Task| {
        let place = TaskEpoch { epoch: it.epoch, is_former: it.former };
        (place != TaskEpoch::default()).then_some((it.number, place))
    };
    let handover = |it: &v1::Handover| {
        let v1::Handover { epoch, start, spool, behind } = *it;
        Handover { epoch, start, spool, behind }
    };
    let handovers = charge.tasks.iter();
    let handovers = handovers.flat_map(|task| task.handovers.iter().map(|it| (task.number, it)));
    TaskEpochs {
        placed: charge.tasks.iter().filter_map(place).collect(),
        handovers: handovers.map(|(task, it)| (task, handover(it))).collect(),
    }
}

fn task(task: &Task) -> Option<(u64, TaskRecord)> {
    let second = |second| Timestamp::from_second(second).map_err(|why| why.to_string());
    let read = || {
        let mut of_it: crate::task::Task =
            serde_json::from_str(&task.body).map_err(|why| why.to_string())?;
        of_it.set_shard(task.shard)?;
        let ended = task.ended.map(second).transpose()?;
        Ok::<_, String>(TaskRecord { task: of_it, made: second(task.made)?, ended })
    };
    let read = read().inspect_err(|why| {
        warn!("cannot read task {}: {why}; its batches are rejected", task.number);
    });
    Some((task.number, read.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = r#"{"name":"v","measure":"flows","at":"a/eth0"}"#;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn tasks_and_certificates_survive_restart() {
        let folder = tempfile::tempdir().unwrap();
        let open = || MeshState::open(folder.path().join("charge"));
        let task = |number, body: &str, ended| Task {
            number,
            body: body.to_owned(),
            made: 1000,
            ended,
            epoch: number / 2,
            ..Task::default()
        };
        let serials = [1, 2].map(|byte| Serial::of(&[0x40 | byte; 16]).unwrap());
        let good = |nth: usize, until| Good { serial: serials[nth].bytes().to_vec(), until };
        let nonsense = Good { serial: vec![7], until: 9 };
        let is_good =
            |mesh_state: &MeshState, now| serials.map(|it| mesh_state.has(it, at(now)).unwrap());
        open().replace(&Charge {
            tasks: vec![task(1, BODY, None), task(2, BODY, Some(2000)), task(3, "{", None)],
            good: vec![good(0, 50), nonsense],
            removed: vec![7],
        });
        let mesh_state = open();
        assert_eq!(**mesh_state.removed().borrow(), Removed::from([7]));
        let tasks = mesh_state.tasks().borrow().clone();
        let ended: Vec<_> = tasks.iter().map(|(number, it)| (*number, it.ended)).collect();
        assert_eq!(ended, [(1, None), (2, Some(at(2000)))]);
        let placed = mesh_state.epochs().borrow().placed.clone();
        let moved = TaskEpoch { epoch: 1, is_former: false };
        assert_eq!(placed, [(2, moved), (3, moved)].into());
        assert_eq!([49, 50].map(|now| is_good(&mesh_state, now)), [[true, false], [false, false]]);
        mesh_state.replace(&Charge { good: vec![good(1, 60)], ..Charge::default() });
        assert_eq!(is_good(&mesh_state, 49), [false, true]);
        assert!(open().tasks().borrow().is_empty());
    }

    #[test]
    fn corrupt_file_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("charge");
        std::fs::write(&file, [0xff; 9]).unwrap();
        assert!(MeshState::open(file).tasks().borrow().is_empty());
    }
}
