//! Selection of the counter of this process, and the assessments of all sources.

use std::fs;
use std::sync::OnceLock;

#[cfg(target_arch = "aarch64")]
use super::cntvct;
use super::cost::Cost;
use super::hpet::Hpet;
use super::raw::RawSource;
use super::{choice, cores, os};
#[cfg(target_arch = "x86_64")]
use super::{hypervisor, tsc};
use crate::counter::Counter;
use choice::{CLOCKSOURCE, CpuCounter, DetectedHpet, DetectedSources, SelectedSource};

/// Assessment of one source.
#[derive(Clone, Debug)]
pub(crate) struct SourceAssessment {
    pub(crate) name: &'static str,
    /// The usable counter with the reason for or against its choice; otherwise the reason against its use.
    pub(crate) counter: Result<(Counter, String), String>,
}

/// Assessments of all sources, and the selected one.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) selected: Counter,
    pub(crate) assessments: Vec<SourceAssessment>,
}

/// The selection, made once per process: some milliseconds for the first caller.
pub(crate) fn selection() -> &'static Selection {
    static SELECTION: OnceLock<Selection> = OnceLock::new();
    SELECTION.get_or_init(select)
}

/// Error of a source that was requested by name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// No source has this name.
    #[error(
        "cannot use the source {name}: it does not exist; the sources of this machine are {known}"
    )]
    Unknown {
        /// The requested name.
        name: String,
        /// Names of the usable sources.
        known: String,
    },
    /// The source is not usable or not trusted on this machine.
    #[error("cannot use the source {name}: {reason}; choose another, or none for automatic choice")]
    Unavailable {
        /// Name of the source.
        name: &'static str,
        /// The reason.
        reason: String,
    },
    /// The process stamps with another source already, and stamps of two sources must not be mixed.
    #[error(
        "cannot change the source to {requested}: this process stamps with {in_use}; restart it with {requested}"
    )]
    Settled {
        /// Name of the requested source.
        requested: &'static str,
        /// Name of the source in use.
        in_use: &'static str,
    },
}

/// Makes `counter` the only counter of this process.
pub(crate) fn fix_process_counter(counter: Counter) -> Result<(), SourceError> {
    static PROCESS_COUNTER: OnceLock<Counter> = OnceLock::new();
    let in_use = *PROCESS_COUNTER.get_or_init(|| counter);
    if in_use == counter {
        return Ok(());
    }
    Err(SourceError::Settled { requested: counter.name(), in_use: in_use.name() })
}

impl Counter {
    /// The best trusted counter of this machine; [`crate::survey()`] gives the reasons. The first call in a process
    /// tests the sources, which takes some milliseconds.
    #[must_use]
    pub fn select() -> Self {
        selection().selected
    }

    /// The counter with this name, if it is usable here: `tsc`, `cntvct`, `hpet` or `os`.
    ///
    /// # Errors
    ///
    /// [`crate::SourceError`] if there is no such source, or it is not usable or not trusted on this machine.
    pub fn named(name: &str) -> Result<Self, SourceError> {
        let assessments = &selection().assessments;
        match assessments.iter().find(|assessment| assessment.name == name) {
            Some(SourceAssessment { name, counter }) => match counter {
                Ok((counter, _)) => Ok(*counter),
                Err(reason) => Err(SourceError::Unavailable { name, reason: reason.clone() }),
            },
            None => {
                let usable = assessments.iter().filter(|assessment| assessment.counter.is_ok());
                let known = usable.map(|assessment| assessment.name).collect::<Vec<_>>().join(", ");
                Err(SourceError::Unknown { name: name.to_owned(), known })
            }
        }
    }
}

fn select() -> Selection {
    let (cpu, cpu_detected) = cpu_counter().unzip();
    let hpet = Hpet::open();
    let detected = DetectedSources {
        cpu: cpu_detected,
        clocksource: fs::read_to_string(CLOCKSOURCE).ok().map(|name| name.trim().to_owned()),
        hpet: hpet.as_ref().map_err(ToString::to_string).map(|hpet| DetectedHpet {
            frequency_hz: hpet.frequency_hz(),
            cost: Cost::of(*hpet, 1e9 / hpet.frequency_hz()),
        }),
        os: Cost::of(os::Os, 1.0),
    };
    let choice = choice::choose(&detected);
    let mut assessments = Vec::with_capacity(4);
    if cfg!(not(target_arch = "x86_64")) {
        let reason = "only x86-64 has a TSC".to_owned();
        assessments.push(SourceAssessment { name: "tsc", counter: Err(reason) });
    }
    if let Some(cpu) = cpu {
        let counter = choice.cpu.map(|reason| (cpu, reason));
        assessments.push(SourceAssessment { name: cpu.name(), counter });
    }
    let counter = match &hpet {
        Ok(hpet) => choice.hpet.map(|reason| (Counter::Hpet(*hpet), reason)),
        Err(error) => Err(error.to_string()),
    };
    assessments.push(SourceAssessment { name: Hpet::NAME, counter });
    assessments
        .push(SourceAssessment { name: os::Os::NAME, counter: Ok((Counter::Os, choice.os)) });
    let selected = match (choice.chosen, cpu, hpet) {
        (SelectedSource::Cpu, Some(cpu), _) => cpu,
        (SelectedSource::Hpet, _, Ok(hpet)) => Counter::Hpet(hpet),
        _ => Counter::Os,
    };
    Selection { selected, assessments }
}

#[cfg(target_arch = "x86_64")]
fn cpu_counter() -> Option<(Counter, CpuCounter)> {
    let detected = CpuCounter {
        invariant: tsc::is_invariant(),
        clocksources: &tsc::CLOCKSOURCES,
        hypervisor: hypervisor::vendor(),
        cores: cores::compare(tsc::Tsc),
    };
    Some((Counter::Tsc, detected))
}

#[cfg(target_arch = "aarch64")]
fn cpu_counter() -> Option<(Counter, CpuCounter)> {
    let detected = CpuCounter {
        invariant: true,
        clocksources: &cntvct::CLOCKSOURCES,
        hypervisor: None,
        cores: cores::compare(cntvct::Cntvct),
    };
    Some((Counter::Cntvct, detected))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn cpu_counter() -> Option<(Counter, CpuCounter)> {
    None
}
