//! Assignments of probes.

use std::net::IpAddr;
use std::sync::Arc;

use super::placement::TaskPlacement;
use super::probe_registry::ProbeRegistry;
use super::shared_ca::SharedCa;
use super::sources::Sources;
use super::task_store::TaskStore;
use crate::authorizer::Authorizer;
use crate::task::{ActiveDelay, Measure, TaskRecord, Tasks};
use crate::v1::{Assignment, Duty};
use crate::{DatabaseError, Name};

/// State that the sessions of probes and collectors share.
#[derive(Clone)]
pub(super) struct Control {
    pub(super) authority: Arc<SharedCa>,
    pub(super) authorizer: Arc<Authorizer>,
    pub(super) plan: Arc<TaskStore>,
    pub(super) probes: Arc<ProbeRegistry>,
    pub(super) placement: Arc<TaskPlacement>,
    pub(super) sources: Arc<Sources>,
}

impl Control {
    /// The tasks of a probe and where it delivers them. Tasks without a collector are placed.
    pub(super) fn assignment(
        &self,
        tasks: &Tasks,
        probe: &Name,
    ) -> Result<Assignment, DatabaseError> {
        let members = Arc::clone(&self.authority.members().borrow());
        let has_a_part = |it: &TaskRecord| it.task.measure.probes().contains(&probe);
        let own = || tasks.iter().filter(|(_, it)| has_a_part(it));
        let open = || own().filter(|(_, it)| it.ended.is_none());
        self.placement.place(open().map(|(number, _)| *number), tasks, &members)?;
        let duties = open().filter_map(|(number, it)| self.duty(*number, it).transpose());
        let duties = duties.collect::<Result<_, _>>()?;
        let numbers = own().map(|(number, _)| *number);
        let destinations = self.placement.destinations(numbers, &members);
        Ok(Assignment { duties, destinations })
    }

    /// A task as sent to its probes; none if it was ended meanwhile.
    fn duty(&self, task: u64, entered: &TaskRecord) -> Result<Option<Duty>, DatabaseError> {
        let measure = &entered.task.measure;
        let secret = if measure.is_authenticated() {
            let Some(secret) = self.plan.secret(task)? else { return Ok(None) };
            secret
        } else {
            Vec::new()
        };
        // A task that was parsed can be serialised.
        let Ok(body) = serde_json::to_string(&entered.task) else { return Ok(None) };
        let address = where_reflected(measure, &self.probes);
        let address = address.map(|it| it.to_string()).unwrap_or_default();
        let (made, shard) = (entered.made.as_second(), entered.task.shard.into());
        Ok(Some(Duty { task, body, made, address, secret, shard }))
    }
}

/// Address of the reflecting probe, as the controller sees it.
fn where_reflected(measure: &Measure, probes: &ProbeRegistry) -> Option<IpAddr> {
    let Measure::ActiveDelay(ActiveDelay { from, to, .. }) = measure else { return None };
    let [from, to] = [from, to].map(|end| probes.address(&end.probe));
    // A loopback address is valid only for probes on the same machine.
    to.filter(|to| !to.is_loopback() || from.is_none_or(|from| from.is_loopback()))
}
