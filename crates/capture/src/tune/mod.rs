//! Tunes the machine for a capture: checks the settings that reduce the accuracy of stamps, and changes them while
//! a capture runs.
//!
//! [`survey`] only reads. [`Tuned`] changes settings, and restores them on drop. Each change is first recorded on
//! disk, so that [`restore`], or the next [`Tuned::apply`], can restore the changes of a killed process.
//!
//! `settings` decides the value of each setting from plain data; only `host`, `ethtool` and `threads` access the
//! machine.

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

/// Every setting that affects the stamps of the capture `config`, in the calling thread's network namespace.
///
/// # Errors
/// The interface, core, or pair of method and stamp does not exist.
pub fn survey(config: &Config) -> Result<Vec<Setting>, Error> {
    let goal = goal(config)?;
    let target = Target::find(&config.interface)?;
    Ok(plan(&target.system, &config.interface, &goal))
}

/// Restores settings that killed captures had changed on `interface` of the calling thread's network namespace.
///
/// # Errors
/// The interface does not exist, a capture is still running, or privileges are missing.
pub fn restore(interface: &str) -> Result<Report, Error> {
    let target = Target::find(interface)?;
    let mut record = target.record(interface)?;
    let report = apply::restore_record(&target.system, &mut record, target.index);
    report.map_err(failed(interface, "restore the changed settings"))
}

impl Tuned {
    /// Restores the changes of a killed capture, and then tunes the machine for the capture `config`, in the
    /// calling thread's network namespace. Settings that the kernel refuses to change are in the [`Report`].
    ///
    /// Attach an XDP program before this call, because drivers set up their queues again for the program.
    ///
    /// # Errors
    /// As for [`survey`]; another capture has tuned the interface; or the record cannot be written, and nothing is
    /// changed.
    pub fn apply(config: &Config) -> Result<Self, Error> {
        let goal = goal(config)?;
        let interface = &config.interface;
        let target = Target::find(interface)?;
        let record = target.record(interface)?;
        let plan = |host: &dyn Host| plan(host, interface, &goal);
        Self::begin(Box::new(target.system), record, target.index, plan)
            .map_err(failed(interface, "record the changed settings"))
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
struct Target {
    system: System,
    /// Interface index.
    index: i32,
    /// Inode number of the namespace.
    namespace: u64,
}

impl Target {
    fn find(interface: &str) -> Result<Self, Error> {
        let failed = failed(interface, "read its settings");
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
            .map_err(failed(interface, "record the changed settings"))?
            .ok_or_else(|| Error::TunedByAnother(interface.to_owned()))
    }
}

fn failed(interface: &str, what: &'static str) -> impl Fn(io::Error) -> Error {
    move |cause| Error::system(what, interface, CAPABILITIES, cause)
}
