//! A mesh for studies.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use tempfile::TempDir;
use wirestamp_lab::results::{Interval, Second};
use wirestamp_lab::{CONTROLLER_V4, MeshLab};
use wirestamp_studies::mesh::{Mesh, MeshPlan};
use wirestamp_studies::tester::processor_time;

use super::api::Api;
use super::nodes::{Files, Nodes, NodesConfig, PORT, Place};
use crate::mesh::node::runtime;

/// A running mesh. Fields are dropped in order: the nodes before their test bed.
struct Running {
    nodes: Nodes,
    api: Api,
    lab: MeshLab,
    _folder: TempDir,
}

/// Starts a test bed with a controller and three probes.
pub(in crate::mesh) fn bring_up(plan: &MeshPlan) -> anyhow::Result<Box<dyn Mesh>> {
    let folder = tempfile::Builder::new().prefix("wirestamp-mesh-").tempdir();
    let folder = folder.context("cannot create a folder")?;
    let lab = MeshLab::new(&plan.path)?;
    let others = |host| Place { host, core: plan.confined.map(|it| it.others) };
    let roof = Place { host: lab.router(), core: plan.confined.map(|it| it.roof) };
    let config = NodesConfig {
        controller: others(&lab.controller),
        collectors: 0,
        move_after: None,
        broker: None,
        page: None,
        tasks: &plan.tasks,
        probes: &[("street", others(lab.source())), ("roof", roof), ("cellar", others(lab.sink()))],
    };
    let (nodes, viewer) = Nodes::start(&Files(folder.path()), config)?;
    // Threads stay in the namespace in which they are started.
    let runtime = lab.controller.run(runtime).context("cannot enter the lab")??;
    let api = Api::new(runtime, (CONTROLLER_V4, PORT).into(), &viewer)?;
    Ok(Box::new(Running { nodes, api, lab, _folder: folder }))
}

impl Mesh for Running {
    fn lab(&self) -> &MeshLab {
        &self.lab
    }

    fn seconds(&mut self, task: &str, from: i64) -> anyhow::Result<Vec<Second>> {
        self.nodes.check()?;
        self.api.seconds(task, from)
    }

    fn intervals(&mut self, task: &str) -> anyhow::Result<Vec<Interval>> {
        self.nodes.check()?;
        self.api.intervals(task)
    }

    fn processor_time(&mut self) -> anyhow::Result<BTreeMap<u32, Duration>> {
        processor_time(self.nodes.process("roof").context("there is no probe `roof`")?)
    }

    fn end(self: Box<Self>) -> anyhow::Result<()> {
        self.nodes.end()
    }
}
