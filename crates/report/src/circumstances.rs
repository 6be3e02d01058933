//! Machine, version and command of a measurement.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use wirestamp_clock::{OutOfRange, Time, Utc};

/// The machine, the moment and the command. Serialises with these names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Circumstances {
    /// Date and time in UTC: `2026-11-21 14:05:09`.
    pub date: String,
    /// The version of this program, with the commit that it was built from if that is known.
    #[serde(default)]
    pub version: String,
    /// The release of the kernel, as `uname -r` prints it.
    pub kernel: String,
    /// The model of the processor and the number of its cores that this process may use.
    pub processor: String,
    /// Whether the processor's flags name a hypervisor: the machine is a virtual one. Unknown where it was not recorded, or
    /// the processor has no such flags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hypervisor: Option<bool>,
    /// Clock source of the kernel.
    pub clocksource: String,
    /// Frequency of the processor's counter in Hz, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter_hz: Option<f64>,
    /// Smallest usual step of the processor's counter in nanoseconds, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter_step_ns: Option<f64>,
    /// The command line, with the program's name without its path.
    pub command: String,
}

impl Circumstances {
    /// Circumstances of this process. A value that cannot be read is "unknown".
    #[must_use]
    pub fn here() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let now = Time::try_from(SystemTime::now()).unwrap_or_else(OutOfRange::into_nearest);
        Self {
            date: date(now),
            version: env!("WIRESTAMP_VERSION").to_owned(),
            kernel: read("/proc/sys/kernel/osrelease"),
            processor: processor(&cpuinfo),
            hypervisor: hypervisor(&cpuinfo),
            clocksource: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            counter_hz: None,
            counter_step_ns: None,
            command: command(),
        }
    }

    /// The processor. Names a virtual machine as such, if that was recorded: `AMD EPYC (virtual machine), 2 cores`.
    #[must_use]
    pub fn machine(&self) -> String {
        match (self.hypervisor, self.processor.rsplit_once(", ")) {
            (Some(true), Some((model, cores))) => format!("{model} (virtual machine), {cores}"),
            _ => self.processor.clone(),
        }
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).map_or_else(|_| "unknown".into(), |text| text.trim().to_owned())
}

fn processor(cpuinfo: &str) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown model", |rest| rest.trim_start_matches([' ', '\t', ':']));
    let plural = if cores == 1 { "" } else { "s" };
    format!("{model}, {cores} core{plural}")
}

/// Whether the flags of the first processor include the one that hypervisors set (CPUID leaf 1, ECX bit 31). None without
/// flags: only x86 has them under this name.
fn hypervisor(cpuinfo: &str) -> Option<bool> {
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags"))?;
    Some(flags.split_ascii_whitespace().any(|flag| flag == "hypervisor"))
}

fn command() -> String {
    let mut arguments = std::env::args_os();
    let program = arguments.next().unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default().to_os_string();
    let words = std::iter::once(program).chain(arguments);
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

/// A time as `2026-11-21 14:05:09`, by the civil calendar (the days-to-date algorithm of
/// H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", `civil_from_days`).
pub fn date(time: Time<Utc>) -> String {
    let seconds = time.as_nanos().div_euclid(1_000_000_000);
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    let year = yoe + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        let of = |seconds: i64| date(Time::from_nanos(seconds * 1_000_000_000));
        assert_eq!(of(0), "1970-01-01 00:00:00");
        assert_eq!(of(951_782_399), "2000-02-28 23:59:59");
        assert_eq!(of(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(of(1_795_269_909), "2026-11-21 14:05:09");
    }

    #[test]
    fn virtual_machine_is_known_by_the_flag_of_its_hypervisor() {
        let cpuinfo = |flags: &str| format!("model name\t: AMD EPYC\n{flags}\nvmx flags\t: vnmi\n");
        assert_eq!(hypervisor(&cpuinfo("flags\t\t: fpu hypervisor lahf_lm")), Some(true));
        assert_eq!(hypervisor(&cpuinfo("flags\t\t: fpu hypervisor_x lahf_lm")), Some(false));
        assert_eq!(hypervisor(&cpuinfo("Features\t: fp asimd")), None);
        assert!(processor(&cpuinfo("")).starts_with("AMD EPYC, "));
    }

    #[test]
    fn only_a_recorded_virtual_machine_is_named_as_such() {
        let machine = |hypervisor| {
            let processor = "AMD EPYC, 2 cores".to_owned();
            Circumstances { processor, hypervisor, ..Circumstances::default() }.machine()
        };
        assert_eq!(machine(Some(true)), "AMD EPYC (virtual machine), 2 cores");
        assert_eq!([machine(None), machine(Some(false))], ["AMD EPYC, 2 cores"; 2]);
    }
}
