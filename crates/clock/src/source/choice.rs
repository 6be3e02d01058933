//! The choice of a source, from what was found on the machine.
//!
//! As in Fedotova and Siemens, section 5: the CPU's own counter if it can be trusted, otherwise the
//! HPET or the kernel's clock, whichever is read more cheaply; where the two cost nearly the same,
//! whichever is read more evenly.

use super::CLOCKSOURCE;
use super::cores::{Cores, Offset};
use super::cost::Cost;

/// Mean costs that differ by no more than this share of the lower one count as the same (Fedotova
/// and Siemens, section 5).
const SIMILAR: f64 = 0.25;

/// What was found on the machine.
#[derive(Clone, Debug)]
pub(crate) struct Findings {
    /// What the CPU says of its counter, if it has one.
    pub(crate) cpu: Option<CpuCounter>,
    /// The clock source by which the kernel keeps time.
    pub(crate) clocksource: Option<String>,
    pub(crate) hpet: Result<HpetFound, String>,
    pub(crate) os: Cost,
}

/// The CPU's counter as it was found.
#[derive(Clone, Debug)]
pub(crate) struct CpuCounter {
    /// Whether it runs at one rate in all power states, by the CPU's own word.
    pub(crate) invariant: bool,
    /// The kernel's clock sources that stand on this counter.
    pub(crate) clocksources: &'static [&'static str],
    /// The hypervisor, if there is one and it does not hide.
    pub(crate) hypervisor: Option<String>,
    pub(crate) cores: Cores,
}

/// A usable HPET as it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HpetFound {
    pub(crate) frequency_hz: f64,
    pub(crate) cost: Cost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    Cpu,
    Hpet,
    Os,
}

/// What was chosen, and of each source why it may be used and is or is not, or why it may not.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) chosen: Chosen,
    pub(crate) cpu: Result<String, String>,
    pub(crate) hpet: Result<String, String>,
    pub(crate) os: String,
}

/// Chooses.
pub(crate) fn choose(found: &Findings) -> Choice {
    let cpu = found.cpu.as_ref().map_or_else(
        || Err("this CPU has no counter that is known here".to_owned()),
        |cpu| judge_cpu(cpu, found.clocksource.as_deref()),
    );
    let (chosen, why) = if cpu.is_ok() {
        (Chosen::Cpu, "the CPU's counter can be trusted and is read without leaving it".to_owned())
    } else {
        hpet_or_os(found.hpet.as_ref().ok().map(|hpet| hpet.cost), found.os)
    };
    let verdict = |source| if source == chosen { "chosen" } else { "not chosen" };
    let hpet = found.hpet.as_ref().map_err(String::clone).map(|hpet| {
        let megahertz = hpet.frequency_hz / 1e6;
        format!("64-bit at {megahertz:.3} MHz; {}: {why}", verdict(Chosen::Hpet))
    });
    let os = format!("CLOCK_MONOTONIC_RAW is there on every Linux; {}: {why}", verdict(Chosen::Os));
    Choice { chosen, cpu, hpet, os }
}

/// Why the CPU's counter may be used, or why not: three witnesses have to vouch for it.
///
/// The kernel compares the counters of all cores at boot and watches them against another clock
/// while it runs, and drops them when they misbehave, so its current clock source is the best
/// public verdict; the comparison made here is a second opinion, from the cores in use.
fn judge_cpu(cpu: &CpuCounter, clocksource: Option<&str>) -> Result<String, String> {
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
        Cores::Agree { compared, unanswered: 0, within } => {
            format!("{compared} cores agree within {within} ticks")
        }
        Cores::Agree { compared, unanswered, within } => format!(
            "{compared} cores agree within {within} ticks ({unanswered} did not answer in time)"
        ),
        Cores::Untested(reason) => format!("the cores were not compared ({reason})"),
        Cores::Differ { core, offset: Offset { low, high } } if low <= high => {
            return why_not(format!("core {core} is {low} to {high} ticks ahead of the first"));
        }
        Cores::Differ { core, .. } => {
            return why_not(format!("core {core} does not run evenly with the first"));
        }
    };
    Ok(format!("invariant; the kernel keeps time by it ({kernel}); {cores}{guest}"))
}

/// The HPET or the kernel's clock, and why.
fn hpet_or_os(hpet: Option<Cost>, os: Cost) -> (Chosen, String) {
    let Some(hpet) = hpet else {
        return (Chosen::Os, "no other source can be used".to_owned());
    };
    let difference = (hpet.mean_ns - os.mean_ns).abs();
    if difference > SIMILAR * hpet.mean_ns.min(os.mean_ns) {
        let chosen = if hpet.mean_ns < os.mean_ns { Chosen::Hpet } else { Chosen::Os };
        let (hpet, os) = (hpet.mean_ns, os.mean_ns);
        return (chosen, format!("a read of the HPET takes {hpet:.0} ns, of the OS {os:.0} ns"));
    }
    let chosen = if hpet.deviation_ns < os.deviation_ns { Chosen::Hpet } else { Chosen::Os };
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

    /// A healthy machine with a usable HPET, the costs being those of the paper's Table 1.
    fn healthy() -> Findings {
        Findings {
            cpu: Some(CpuCounter {
                invariant: true,
                clocksources: &["tsc", "kvm-clock"],
                hypervisor: None,
                cores: Cores::Agree { compared: 2, unanswered: 0, within: 90 },
            }),
            clocksource: Some("tsc".to_owned()),
            hpet: Ok(HpetFound { frequency_hz: 14.318e6, cost: cost(598.72, 76.015) }),
            os: cost(102.20, 0.5253),
        }
    }

    /// Chooses after a change to the CPU's counter, and tells why that is not trusted.
    fn distrusted(change: impl FnOnce(&mut CpuCounter)) -> String {
        let mut found = healthy();
        change(found.cpu.as_mut().unwrap());
        let choice = choose(&found);
        assert_eq!(choice.chosen, Chosen::Os);
        choice.cpu.unwrap_err()
    }

    #[test]
    fn a_counter_that_all_witnesses_vouch_for_is_chosen() {
        let choice = choose(&healthy());
        assert_eq!(choice.chosen, Chosen::Cpu);
        assert!(choice.cpu.unwrap().contains("2 cores agree within 90 ticks"));
        assert!(choice.hpet.unwrap().contains("not chosen"));
        assert!(choice.os.contains("not chosen"));
    }

    #[test]
    fn a_counter_that_is_not_invariant_is_not_trusted() {
        assert!(distrusted(|cpu| cpu.invariant = false).contains("invariant"));
    }

    #[test]
    fn a_counter_that_the_kernel_does_not_use_is_not_trusted() {
        let mut found = healthy();
        found.clocksource = Some("hpet".to_owned());
        assert!(choose(&found).cpu.unwrap_err().contains("keeps time by hpet"));
        found.clocksource = None;
        assert!(choose(&found).cpu.is_err());
        found.clocksource = Some("kvm-clock".to_owned());
        assert_eq!(choose(&found).chosen, Chosen::Cpu);
    }

    #[test]
    fn a_counter_that_differs_between_cores_is_not_trusted() {
        let ahead = Cores::Differ { core: 1, offset: Offset { low: 900, high: 1_000 } };
        assert!(distrusted(|cpu| cpu.cores = ahead).contains("core 1 is 900 to 1000 ticks ahead"));
        let uneven = Cores::Differ { core: 3, offset: Offset { low: 7, high: -7 } };
        assert!(distrusted(|cpu| cpu.cores = uneven).contains("core 3 does not run evenly"));
    }

    #[test]
    fn a_comparison_that_could_not_be_made_leaves_it_to_the_other_witnesses() {
        let mut found = healthy();
        found.cpu.as_mut().unwrap().cores = Cores::Untested("no time".to_owned());
        let choice = choose(&found);
        assert_eq!(choice.chosen, Chosen::Cpu);
        assert!(choice.cpu.unwrap().contains("not compared (no time)"));
    }

    #[test]
    fn a_hypervisor_is_named_whether_the_counter_is_trusted_or_not() {
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
    fn without_a_counter_and_an_hpet_the_kernels_clock_is_left() {
        let mut found = healthy();
        found.cpu = None;
        found.hpet = Err("there is no /dev/hpet".to_owned());
        let choice = choose(&found);
        assert_eq!(choice.chosen, Chosen::Os);
        assert_eq!(choice.hpet.unwrap_err(), "there is no /dev/hpet");
        assert!(choice.os.contains("; chosen: no other source"));
    }

    #[test]
    fn means_far_apart_decide_by_themselves() {
        // Table 1 of the paper.
        assert_eq!(hpet_or_os(Some(cost(598.72, 76.015)), cost(102.20, 0.5253)).0, Chosen::Os);
        assert_eq!(hpet_or_os(Some(cost(500.0, 400.0)), cost(1_000.0, 1.0)).0, Chosen::Hpet);
    }

    #[test]
    fn similar_means_decide_by_the_deviation() {
        // Table 2 of the paper.
        assert_eq!(hpet_or_os(Some(cost(1_063.3, 207.9)), cost(1_117.4, 374.3)).0, Chosen::Hpet);
        assert_eq!(hpet_or_os(Some(cost(1_000.0, 9.0)), cost(1_250.0, 8.0)).0, Chosen::Os);
        assert_eq!(hpet_or_os(Some(cost(1_000.0, 9.0)), cost(1_251.0, 8.0)).0, Chosen::Hpet);
        assert_eq!(hpet_or_os(Some(cost(1_000.0, 9.0)), cost(1_000.0, 9.0)).0, Chosen::Os);
    }
}
