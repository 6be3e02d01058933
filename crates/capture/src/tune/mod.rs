//! The machine as a capture wants it: what keeps stamps from being exact on this host, and how to
//! change it for as long as a capture runs.
//!
//! [`survey`] only looks. [`Tuned`] changes what can be changed, and puts it back when it goes. A
//! record of each change is on disk before it is made, so that [`restore`], or the next
//! [`Tuned::apply`], can put back what a killed process could not.
//!
//! What each setting should be is decided in `settings`, from facts alone; only `host`, `ethtool`
//! and `threads` touch the machine.

mod apply;
mod ethtool;
#[cfg(test)]
mod fake;
mod goal;
mod host;
mod machine;
mod place;
mod record;
mod setting;
mod settings;
mod softirq;
mod threads;

use std::io;
use std::path::Path;

use ethtool::Ethtool;
use goal::Goal;
use host::{Host, System};
use machine::Machine;
use record::Record;

#[cfg(fuzzing)]
pub(crate) use record::read_any;

pub use apply::{Change, Refusal, Report, Tuned};
pub use place::{Attribute, Knob, Place};
pub use setting::Setting;

use crate::{Config, Error, affinity, pair};

const CAPABILITIES: &str = "cap_net_admin,cap_sys_admin,cap_sys_nice";

/// Every setting that the stamps of the capture `config` depend on, in the calling thread's network
/// namespace.
///
/// # Errors
/// An interface, core, or pair of method and stamp that does not exist.
pub fn survey(config: &Config) -> Result<Vec<Setting>, Error> {
    let goal = goal(config)?;
    let here = Here::find(&config.interface)?;
    Ok(plan(&here.system, &config.interface, &goal))
}

/// Puts back what captures that were killed had changed on `interface` of the calling thread's
/// network namespace.
///
/// # Errors
/// An interface that does not exist, a capture that still runs, or no leave to look.
pub fn restore(interface: &str) -> Result<Report, Error> {
    let here = Here::find(interface)?;
    let mut record = here.record(interface)?;
    let report = apply::put_back(&here.system, &mut record, here.index);
    report.map_err(failed(interface, "put back what was changed"))
}

impl Tuned {
    /// Puts back what a killed capture had changed, and then changes what can be changed for the
    /// capture `config`, in the calling thread's network namespace. What the kernel refuses to
    /// change stays as it was and is in the [`Report`].
    ///
    /// An XDP program has to be attached before, because drivers set their queues up anew for it.
    ///
    /// # Errors
    /// As for [`survey`]; another capture that has tuned the interface; or a record that cannot be
    /// written, in which case nothing stays changed.
    pub fn apply(config: &Config) -> Result<Self, Error> {
        let goal = goal(config)?;
        let interface = &config.interface;
        let here = Here::find(interface)?;
        let record = here.record(interface)?;
        let plan = |host: &dyn Host| plan(host, interface, &goal);
        Self::begin(Box::new(here.system), record, here.index, plan)
            .map_err(failed(interface, "keep a record of what is tuned"))
    }
}

fn goal(config: &Config) -> Result<Goal, Error> {
    config.lanes.iter().try_for_each(affinity::Cores::check)?;
    Ok(Goal::of(config, pair(config.method, config.stamp)?))
}

fn plan(host: &dyn Host, interface: &str, goal: &Goal) -> Vec<Setting> {
    settings::plan(goal, &Machine::read(host, interface, affinity::allowed()))
}

/// An interface of the calling thread's network namespace.
struct Here {
    system: System,
    /// The interface's number.
    index: i32,
    /// The namespace's.
    namespace: u64,
}

impl Here {
    fn find(interface: &str) -> Result<Self, Error> {
        let failed = failed(interface, "ask the kernel for its settings");
        let ethtool = Ethtool::open(interface).map_err(&failed)?;
        let namespace = ethtool.namespace().map_err(&failed)?;
        let system = System::of(interface, ethtool);
        let index = system
            .read(&Place::of_interface(interface, "ifindex"))
            .ok()
            .and_then(|index| index.parse().ok())
            .ok_or_else(|| Error::NoSuchInterface(interface.to_owned()))?;
        Ok(Self { system, index, namespace })
    }

    fn record(&self, interface: &str) -> Result<Record, Error> {
        let name = format!("{}-{interface}", self.namespace);
        Record::open(Path::new(record::FOLDER), &name)
            .map_err(failed(interface, "keep a record of what is tuned"))?
            .ok_or_else(|| Error::TunedByAnother(interface.to_owned()))
    }
}

fn failed(interface: &str, what: &'static str) -> impl Fn(io::Error) -> Error {
    move |cause| Error::system(what, interface, CAPABILITIES, cause)
}
