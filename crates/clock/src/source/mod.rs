//! The sources of raw stamps, one to a file, and what this machine was found to have of them.

mod choice;
#[cfg(target_arch = "aarch64")]
pub(crate) mod cntvct;
mod cores;
pub(crate) mod cost;
pub(crate) mod hpet;
#[cfg(target_arch = "x86_64")]
mod hypervisor;
pub(crate) mod os;
#[cfg(target_arch = "x86_64")]
pub(crate) mod tsc;

use std::fs;
use std::sync::OnceLock;

use crate::Counter;
use choice::{Chosen, CpuCounter, Findings, HpetFound};
use cost::Cost;
use hpet::Hpet;
#[cfg(target_arch = "x86_64")]
pub(crate) use hypervisor::emulated_by;

/// Where Linux names the clock source that it keeps time by.
const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// A counter that raw stamps can be read from.
pub(crate) trait RawSource: Copy {
    /// The name used on the command line and in reports.
    const NAME: &'static str;

    /// The present value, wherever the CPU chooses to read it among the instructions around it.
    fn read(self) -> u64;

    /// The value after everything earlier in the program and before anything later.
    fn read_ordered(self) -> u64;
}

/// What is thought of one source.
#[derive(Clone, Debug)]
pub(crate) struct Verdict {
    pub(crate) name: &'static str,
    /// The counter, if it may be used, and why it is or is not; otherwise why it may not.
    pub(crate) counter: Result<(Counter, String), String>,
}

/// What is thought of every source, and the one that was chosen.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) selected: Counter,
    pub(crate) verdicts: Vec<Verdict>,
}

/// The choice, made once in a process: some milliseconds for the first caller.
pub(crate) fn selection() -> &'static Selection {
    static SELECTION: OnceLock<Selection> = OnceLock::new();
    SELECTION.get_or_init(select)
}

/// Why a source that was asked for by name cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// There is no source of that name.
    #[error("there is no source named {name}; this machine's are {known}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The names of those that can be used here.
        known: String,
    },
    /// The source cannot be used or trusted on this machine.
    #[error("the source {name} cannot be used: {reason}; name another, or none to have one chosen")]
    Unavailable {
        /// The name of the source.
        name: &'static str,
        /// Why not.
        reason: String,
    },
    /// The process stamps with another source already, whose stamps would be taken for its own.
    #[error("this process stamps with {settled} and cannot change to {asked}: start it with that")]
    Settled {
        /// The name of the source that was asked for.
        asked: &'static str,
        /// The name of the one in use.
        settled: &'static str,
    },
}

/// Makes `counter` the one that this process stamps with, for good.
pub(crate) fn settle(counter: Counter) -> Result<(), SourceError> {
    static SETTLED: OnceLock<Counter> = OnceLock::new();
    let settled = *SETTLED.get_or_init(|| counter);
    if settled == counter {
        return Ok(());
    }
    Err(SourceError::Settled { asked: counter.name(), settled: settled.name() })
}

/// The source of that name, if it may be used.
pub(crate) fn named(name: &str) -> Result<Counter, SourceError> {
    let verdicts = &selection().verdicts;
    match verdicts.iter().find(|verdict| verdict.name == name) {
        Some(Verdict { name, counter }) => match counter {
            Ok((counter, _)) => Ok(*counter),
            Err(reason) => Err(SourceError::Unavailable { name, reason: reason.clone() }),
        },
        None => {
            let usable = verdicts.iter().filter(|verdict| verdict.counter.is_ok());
            let known = usable.map(|verdict| verdict.name).collect::<Vec<_>>().join(", ");
            Err(SourceError::Unknown { name: name.to_owned(), known })
        }
    }
}

/// Other CPUs have no place where a hypervisor says its name.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn emulated_by(_source: &str) -> Option<String> {
    None
}

fn select() -> Selection {
    let (cpu, cpu_found) = cpu_counter().unzip();
    let hpet = Hpet::open();
    let found = Findings {
        cpu: cpu_found,
        clocksource: fs::read_to_string(CLOCKSOURCE).ok().map(|name| name.trim().to_owned()),
        hpet: hpet.as_ref().map_err(ToString::to_string).map(|hpet| HpetFound {
            frequency_hz: hpet.frequency_hz(),
            cost: Cost::of(*hpet, 1e9 / hpet.frequency_hz()),
        }),
        os: Cost::of(os::Os, 1.0),
    };
    let choice = choice::choose(&found);
    let mut verdicts = Vec::with_capacity(4);
    if cfg!(not(target_arch = "x86_64")) {
        let reason = "only x86-64 has a TSC".to_owned();
        verdicts.push(Verdict { name: "tsc", counter: Err(reason) });
    }
    if let Some(cpu) = cpu {
        let counter = choice.cpu.map(|reason| (cpu, reason));
        verdicts.push(Verdict { name: cpu.name(), counter });
    }
    let counter = match &hpet {
        Ok(hpet) => choice.hpet.map(|reason| (Counter::Hpet(*hpet), reason)),
        Err(error) => Err(error.to_string()),
    };
    verdicts.push(Verdict { name: Hpet::NAME, counter });
    verdicts.push(Verdict { name: os::Os::NAME, counter: Ok((Counter::Os, choice.os)) });
    let selected = match (choice.chosen, cpu, hpet) {
        (Chosen::Cpu, Some(cpu), _) => cpu,
        (Chosen::Hpet, _, Ok(hpet)) => Counter::Hpet(hpet),
        _ => Counter::Os,
    };
    Selection { selected, verdicts }
}

#[cfg(target_arch = "x86_64")]
fn cpu_counter() -> Option<(Counter, CpuCounter)> {
    let found = CpuCounter {
        invariant: tsc::is_invariant(),
        clocksources: &tsc::CLOCKSOURCES,
        hypervisor: hypervisor::vendor(),
        cores: cores::compare(tsc::Tsc),
    };
    Some((Counter::Tsc, found))
}

#[cfg(target_arch = "aarch64")]
fn cpu_counter() -> Option<(Counter, CpuCounter)> {
    let found = CpuCounter {
        invariant: true,
        clocksources: &cntvct::CLOCKSOURCES,
        hypervisor: None,
        cores: cores::compare(cntvct::Cntvct),
    };
    Some((Counter::Cntvct, found))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn cpu_counter() -> Option<(Counter, CpuCounter)> {
    None
}
