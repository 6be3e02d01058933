//! Check for the privileges that a test bed needs.

use std::fs;

use thiserror::Error;

/// The capabilities that a bed and its tools need, by number (`linux/capability.h`): for namespaces
/// and mounts, interfaces and queues, packet sockets. BPF programs need `CAP_BPF` and `CAP_PERFMON`,
/// which `CAP_SYS_ADMIN` includes (capabilities(7)). Real-time priority and pinning need
/// `CAP_SYS_NICE`; both are optional, so it is not checked.
pub(crate) const NEEDED: [(u32, &str); 3] =
    [(21, "CAP_SYS_ADMIN"), (12, "CAP_NET_ADMIN"), (13, "CAP_NET_RAW")];

/// All of them, as setcap(8) writes them.
const ALL: &str = "cap_net_raw,cap_net_admin,cap_sys_admin,cap_bpf,cap_perfmon,cap_sys_nice";

/// Capabilities that this process lacks.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("not permitted: {} missing; {}", missing.join(", "), how_to_get())]
pub struct MissingPrivilege {
    /// Their names, as capabilities(7) writes them.
    pub missing: Vec<&'static str>,
}

/// Checks that this process has the capabilities that a bed needs.
///
/// # Errors
/// [`MissingPrivilege`], with one line that lists missing capabilities and how to grant them.
pub fn check() -> Result<(), MissingPrivilege> {
    check_status(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// The check on the text of a `/proc/PID/status` (proc_pid_status(5)).
fn check_status(status: &str) -> Result<(), MissingPrivilege> {
    let effective = status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let missing: Vec<_> = NEEDED
        .into_iter()
        .filter(|(number, _)| effective >> number & 1 == 0)
        .map(|(_, name)| name)
        .collect();
    if missing.is_empty() { Ok(()) } else { Err(MissingPrivilege { missing }) }
}

/// The next step for missing capabilities, with a command to copy.
pub(crate) fn how_to_get() -> String {
    let program = std::env::current_exe()
        .map_or_else(|_| "PROGRAM".into(), |path| path.display().to_string());
    format!("run it with sudo, or once: sudo setcap {ALL}+ep {program}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_missing_capability_is_named() {
        let raw_only = "Name:\tx\nCapEff:\t0000000000002000\n";
        let error = check_status(raw_only).unwrap_err();
        assert_eq!(error.missing, ["CAP_SYS_ADMIN", "CAP_NET_ADMIN"]);
        let line = error.to_string();
        assert!(line.contains("sudo setcap") && !line.contains('\n'), "{line}");
        let grants = |(_, name): (u32, &str)| line.contains(&name.to_lowercase());
        assert!(NEEDED.into_iter().all(grants), "{line}");
    }

    #[test]
    fn unreadable_status_lacks_all_capabilities() {
        assert_eq!(check_status("CapEff:\t000001ffffffffff\n"), Ok(()));
        assert_eq!(check_status("").unwrap_err().missing.len(), 3);
    }
}
