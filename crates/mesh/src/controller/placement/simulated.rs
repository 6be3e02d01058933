//! Placements of a controller without connections, which may restart: for simulations of collectors and probes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::tests::{at, authority, members, name};
use super::*;
use crate::collector::{Begun, Collector};
use crate::controller::sources::export;

/// Names of the collectors, which all have valid certificates.
const COLLECTORS: [&str; 5] = ["one", "two", "three", "four", "five"];

static MEMBERS: LazyLock<Arc<ValidCertificates>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    members(&authority(folder.path(), &COLLECTORS))
});

/// The placements, with their file, of collectors with numbers from 0.
pub(crate) struct SimulatedPlacement {
    file: PathBuf,
    tasks: Arc<Tasks>,
    /// None while the controller restarts.
    placement: Option<Arc<TaskPlacement>>,
}

impl SimulatedPlacement {
    /// Running tasks, all of which are placed at the first of the connected collectors.
    pub(crate) fn new(folder: &Path, tasks: Arc<Tasks>, collectors: usize) -> Self {
        let file = folder.join("homes.sqlite");
        let placement = Some(Arc::new(TaskPlacement::open(&file, &Tasks::new()).unwrap()));
        let new = Self { file, tasks, placement };
        new.connect(0);
        new.placement().place(new.tasks.keys().copied(), &new.tasks, &MEMBERS).unwrap();
        (1..collectors).for_each(|number| new.connect(number));
        new
    }

    /// The controller is killed and starts again. No collector is connected then.
    pub(crate) fn restart(&mut self) {
        self.placement = None;
        let placement = TaskPlacement::open(&self.file, &self.tasks).unwrap();
        self.placement = Some(Arc::new(placement));
    }

    fn placement(&self) -> &TaskPlacement {
        self.placement.as_ref().unwrap()
    }

    fn connect(&self, number: usize) {
        let name = name(COLLECTORS[number]);
        self.placement().connected(&name, format!("{name}.example:4749"), at(5)).unwrap();
    }

    /// A collector connects, if it is not connected, and reports what has begun there. Returns what it is sent.
    pub(crate) fn exchange(
        &self,
        number: usize,
        begun: impl IntoIterator<Item = Begun>,
    ) -> (Tasks, TaskEpochs) {
        self.connect(number);
        let name = name(COLLECTORS[number]);
        self.placement().begun(Some(&name), begun).unwrap();
        self.placement().known_to(&self.tasks, Some(&name))
    }

    /// A collector disconnects. Its tasks move, as do those of all others that are not connected, if one is.
    pub(crate) fn disconnect(&self, number: usize) {
        self.placement().disconnected(&name(COLLECTORS[number]), at(5));
        self.placement().move_from_absent(Duration::ZERO, &self.tasks, &MEMBERS).unwrap();
    }

    /// An operator moves a task. This is refused if the collector is not connected.
    pub(crate) fn move_to(&self, task: u64, number: usize) {
        let measure = &self.tasks[&task].task.measure;
        let to = name(COLLECTORS[number]);
        match self.placement().move_to((task, measure), Some(&to), &MEMBERS) {
            Ok(_) | Err(MoveError::NotConnected(_)) => {}
            Err(why) => panic!("task {task} to {to}: {why}"),
        }
    }

    /// The epoch of a task that is sent to its probes.
    pub(crate) fn epoch(&self, task: u64) -> u64 {
        let destinations = self.placement().destinations([task].into_iter(), &MEMBERS);
        // Without epochs, all are 0.
        destinations[0].epochs.first().copied().unwrap_or(0)
    }

    /// All results, as the controller reads them from these collectors.
    pub(crate) fn export(&self, collectors: impl IntoIterator<Item = Arc<Collector>>) -> String {
        let collectors = COLLECTORS.map(name).into_iter().zip(collectors).collect();
        let placement = Arc::clone(self.placement.as_ref().unwrap());
        export(placement, Arc::clone(&MEMBERS), Arc::clone(&self.tasks), collectors)
    }

    /// The collectors of a task by epoch, the current one last.
    pub(crate) fn history(&self, task: u64) -> Vec<usize> {
        let number = |it: &Placed| {
            let collector = it.collector.as_ref().unwrap();
            COLLECTORS.iter().position(|other| *other == collector.as_ref()).unwrap()
        };
        self.placement().history(task).iter().map(number).collect()
    }
}
