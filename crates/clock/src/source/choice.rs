//! Choice of a source of raw stamps, from the detected hardware.
//!
//! As in Fedotova and Siemens, section 5: the CPU's own counter if it can be trusted, otherwise the cheaper one of
//! the HPET and the kernel's clock. If both cost nearly the same, the one with the lower deviation.

use super::cores::{CoreComparison, Offset};
use super::cost::Cost;

/// File in which Linux names its current clock source.
pub(super) const CLOCKSOURCE: &str =
    "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Mean costs that differ by no more than this share of the lower one count as equal (Fedotova and Siemens, section
/// 5).
const SIMILAR: f64 = 0.25;

/// The detected sources of the machine.
#[derive(Clone, Debug)]
pub(crate) struct DetectedSources {
    /// The CPU's counter, if it has one.
    pub(crate) cpu: Option<CpuCounter>,
    /// The clock source by which the kernel keeps time.
    pub(crate) clocksource: Option<String>,
    pub(crate) hpet: Result<DetectedHpet, String>,
    pub(crate) os: Cost,
}

/// The detected counter of the CPU.
#[derive(Clone, Debug)]
pub(crate) struct CpuCounter {
    /// True if the CPU declares that it runs at one rate in all power states.
    pub(crate) invariant: bool,
    /// The kernel's clock sources that use this counter.
    pub(crate) clocksources: &'static [&'static str],
    /// The hypervisor, if there is one and it is visible.
    pub(crate) hypervisor: Option<String>,
    pub(crate) cores: CoreComparison,
}

/// A detected and usable HPET.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DetectedHpet {
    pub(crate) frequency_hz: f64,
    pub(crate) cost: Cost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelectedSource {
    Cpu,
    Hpet,
    Os,
}

/// The selected source, and the reasons for and against each source.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) chosen: SelectedSource,
    pub(crate) cpu: Result<String, String>,
    pub(crate) hpet: Result<String, String>,
    pub(crate) os: String,
}

/// Selects a source.
pub(crate) fn choose(found: &DetectedSources) -> Choice {
    let cpu = found.cpu.as_ref().map_or_else(
        || Err("this CPU has no counter that is known here".to_owned()),
        |cpu| check_cpu(cpu, found.clocksource.as_deref()),
    );
    let (chosen, why) = if cpu.is_ok() {
        (
            SelectedSource::Cpu,
            "the CPU's counter can be trusted and is read without leaving it".to_owned(),
        )
    } else {
        hpet_or_os(found.hpet.as_ref().ok().map(|hpet| hpet.cost), found.os)
    };
    let verdict = |source| if source == chosen { "chosen" } else { "not chosen" };
    let hpet = found.hpet.as_ref().map_err(String::clone).map(|hpet| {
        let megahertz = hpet.frequency_hz / 1e6;
        format!("64-bit at {megahertz:.3} MHz; {}: {why}", verdict(SelectedSource::Hpet))
    });
    let os = format!(
        "CLOCK_MONOTONIC_RAW is there on every Linux; {}: {why}",
        verdict(SelectedSource::Os)
    );
    Choice { chosen, cpu, hpet, os }
}

/// Reason to trust the CPU's counter, or not to: three checks must pass.
///
/// The kernel compares the counters of all cores at boot, and compares them with another clock at run time. It stops
/// using incorrect counters, so its current clock source is the best available evidence. The comparison made here is a
/// second check, on the cores in use.
fn check_cpu(cpu: &CpuCounter, clocksource: Option<&str>) -> Result<String, String> {
    let guest = cpu.hypervisor.as_ref();
    let guest = guest.map_or_else(String::new, |name| format!("; under a hypervisor ({name})"));
    let why_not = |reason: String| Err(format!("{reason}{guest}"));
    if !cpu.invariant {
        return why_not("the CPU does not say that its counter is invariant".to_owned());
    }
    let kernel = match clocksource {
        Some(name) if cpu.clocksources.contains(&name) => name,
        Some(name) => {
            return why_not(format!("the kernel keeps time by {name} and does not trust it"));
        }
        None => {
            return why_not(format!("{CLOCKSOURCE} cannot be read, so nothing vouches for it"));
        }
    };
    let cores = match &cpu.cores {
        CoreComparison::Agree { compared, unanswered: 0, within } => {
            format!("{compared} cores agree within {within} ticks")
        }
        CoreComparison::Agree { compared, unanswered, within } => format!(
            "{compared} cores agree within {within} ticks ({unanswered} did not answer in time)"
        ),
        CoreComparison::Untested(reason) => format!("the cores were not compared ({reason})"),
        CoreComparison::Differ { core, offset: Offset { low, high } } if low <= high => {
            return why_not(format!("core {core} is {low} to {high} ticks ahead of the first"));
        }
        CoreComparison::Differ { core, .. } => {
            return why_not(format!("core {core} does not run evenly with the first"));
        }
    };
    Ok(format!("invariant; the kernel keeps time by it ({kernel}); {cores}{guest}"))
}

/// The HPET or the kernel's clock, with the reason.
fn hpet_or_os(hpet: Option<Cost>, os: Cost) -> (SelectedSource, String) {
    let Some(hpet) = hpet else {
        return (SelectedSource::Os, "no other source can be used".to_owned());
    };
    let difference = (hpet.mean_ns - os.mean_ns).abs();
    if difference > SIMILAR * hpet.mean_ns.min(os.mean_ns) {
        let chosen =
            if hpet.mean_ns < os.mean_ns { SelectedSource::Hpet } else { SelectedSource::Os };
        let (hpet, os) = (hpet.mean_ns, os.mean_ns);
        return (chosen, format!("a read of the HPET takes {hpet:.0} ns, of the OS {os:.0} ns"));
    }
    let chosen =
        if hpet.deviation_ns < os.deviation_ns { SelectedSource::Hpet } else { SelectedSource::Os };
    let (hpet, os) = (hpet.deviation_ns, os.deviation_ns);
    let why = format!(
        "reads of the HPET and the OS cost the same within 25 %, and deviate by {hpet:.0} ns and \
         {os:.0} ns"
    );
    (chosen, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn cost(mean_ns: f64, deviation_ns: f64) -> Cost {
        Cost { mean_ns, deviation_ns }
    }

    /// A healthy machine with a usable HPET; the costs are those of the paper's Table 1.
    fn healthy() -> DetectedSources {
        DetectedSources {
            cpu: Some(CpuCounter {
                invariant: true,
                clocksources: &["tsc", "kvm-clock"],
                hypervisor: None,
                cores: CoreComparison::Agree { compared: 2, unanswered: 0, within: 90 },
            }),
            clocksource: Some("tsc".to_owned()),
            hpet: Ok(DetectedHpet { frequency_hz: 14.318e6, cost: cost(598.72, 76.015) }),
            os: cost(102.20, 0.5253),
        }
    }

    /// Selects after a change to the CPU's counter; returns why that is not trusted.
    fn distrusted(change: impl FnOnce(&mut CpuCounter)) -> String {
        let mut found = healthy();
        change(found.cpu.as_mut().unwrap());
        let choice = choose(&found);
        assert_eq!(choice.chosen, SelectedSource::Os);
        choice.cpu.unwrap_err()
    }

    #[test]
    fn counter_that_passes_all_checks_is_chosen() {
        let choice = choose(&healthy());
        assert_eq!(choice.chosen, SelectedSource::Cpu);
        assert!(choice.cpu.unwrap().contains("2 cores agree within 90 ticks"));
        assert!(choice.hpet.unwrap().contains("not chosen"));
        assert!(choice.os.contains("not chosen"));
    }

    #[test]
    fn counter_without_invariance_is_not_trusted() {
        assert!(distrusted(|cpu| cpu.invariant = false).contains("invariant"));
    }

    #[test]
    fn counter_unused_by_the_kernel_is_not_trusted() {
        let mut found = healthy();
        found.clocksource = Some("hpet".to_owned());
        assert!(choose(&found).cpu.unwrap_err().contains("keeps time by hpet"));
        found.clocksource = None;
        assert!(choose(&found).cpu.is_err());
        found.clocksource = Some("kvm-clock".to_owned());
        assert_eq!(choose(&found).chosen, SelectedSource::Cpu);
    }

    #[test]
    fn counter_that_differs_between_cores_is_not_trusted() {
        let ahead = CoreComparison::Differ { core: 1, offset: Offset { low: 900, high: 1_000 } };
        assert!(distrusted(|cpu| cpu.cores = ahead).contains("core 1 is 900 to 1000 ticks ahead"));
        let uneven = CoreComparison::Differ { core: 3, offset: Offset { low: 7, high: -7 } };
        assert!(distrusted(|cpu| cpu.cores = uneven).contains("core 3 does not run evenly"));
    }

    #[test]
    fn failed_comparison_leaves_the_other_checks() {
        let mut found = healthy();
        found.cpu.as_mut().unwrap().cores = CoreComparison::Untested("no time".to_owned());
        let choice = choose(&found);
        assert_eq!(choice.chosen, SelectedSource::Cpu);
        assert!(choice.cpu.unwrap().contains("not compared (no time)"));
    }

    #[test]
    fn hypervisor_is_always_named() {
        let guest = |cpu: &mut CpuCounter| cpu.hypervisor = Some("KVM".to_owned());
        let mut found = healthy();
        found.cpu.as_mut().map(guest).unwrap();
        assert!(choose(&found).cpu.unwrap().contains("under a hypervisor (KVM)"));
        let reason = distrusted(|cpu| {
            guest(cpu);
            cpu.invariant = false;
        });
        assert!(reason.contains("under a hypervisor (KVM)"));
    }

    #[test]
    fn kernel_clock_is_the_last_resort() {
        let mut found = healthy();
        found.cpu = None;
        found.hpet = Err("there is no /dev/hpet".to_owned());
        let choice = choose(&found);
        assert_eq!(choice.chosen, SelectedSource::Os);
        assert_eq!(choice.hpet.unwrap_err(), "there is no /dev/hpet");
        assert!(choice.os.contains("; chosen: no other source"));
    }

    #[test]
    fn different_means_decide_alone() {
        // Table 1 of the paper.
        assert_eq!(
            hpet_or_os(Some(cost(598.72, 76.015)), cost(102.20, 0.5253)).0,
            SelectedSource::Os
        );
        assert_eq!(
            hpet_or_os(Some(cost(500.0, 400.0)), cost(1_000.0, 1.0)).0,
            SelectedSource::Hpet
        );
    }

    #[test]
    fn similar_means_are_decided_by_deviation() {
        // Table 2 of the paper.
        assert_eq!(
            hpet_or_os(Some(cost(1_063.3, 207.9)), cost(1_117.4, 374.3)).0,
            SelectedSource::Hpet
        );
        assert_eq!(hpet_or_os(Some(cost(1_000.0, 9.0)), cost(1_250.0, 8.0)).0, SelectedSource::Os);
        assert_eq!(
            hpet_or_os(Some(cost(1_000.0, 9.0)), cost(1_251.0, 8.0)).0,
            SelectedSource::Hpet
        );
        assert_eq!(hpet_or_os(Some(cost(1_000.0, 9.0)), cost(1_000.0, 9.0)).0, SelectedSource::Os);
    }
}
