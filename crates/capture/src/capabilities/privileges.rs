//! Privileges of this process: capabilities(7).

use std::{env, fs};

/// Values of linux/capability.h.
mod number {
    pub(super) const NET_ADMIN: u32 = 12;
    pub(super) const NET_RAW: u32 = 13;
    pub(super) const SYS_ADMIN: u32 = 21;
    pub(super) const PERFMON: u32 = 38;
    pub(super) const BPF: u32 = 39;
}

/// The capabilities that methods require.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Privileges {
    /// `CAP_NET_RAW`: packet sockets.
    pub net_raw: bool,
    /// `CAP_NET_ADMIN`: attaching XDP programs, and enabling the network card's stamps.
    pub net_admin: bool,
    /// `CAP_BPF`, or `CAP_SYS_ADMIN`, which includes it: loading programs.
    pub bpf: bool,
    /// `CAP_PERFMON`, or `CAP_SYS_ADMIN`, which includes it: programs with pointers.
    pub perfmon: bool,
    /// `CAP_SYS_ADMIN`: programs that call a function of a module.
    pub sys_admin: bool,
}

impl Privileges {
    /// Effective capabilities of the calling thread; all of them if they cannot be read, because later errors will
    /// report what is missing.
    pub(crate) fn of_this_thread() -> Self {
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        Self::of(effective(&status).unwrap_or(u64::MAX))
    }

    /// Whether all of these are effective, in the syntax of setcap(8).
    pub(super) fn include(self, capabilities: &str) -> bool {
        capabilities.split(',').all(|name| match name {
            "cap_net_raw" => self.net_raw,
            "cap_net_admin" => self.net_admin,
            "cap_bpf" => self.bpf,
            "cap_perfmon" => self.perfmon,
            _ => self.sys_admin,
        })
    }

    fn of(effective: u64) -> Self {
        let has = |number: u32| effective >> number & 1 == 1;
        let all = has(number::SYS_ADMIN);
        Self {
            net_raw: has(number::NET_RAW),
            net_admin: has(number::NET_ADMIN),
            bpf: all || has(number::BPF),
            perfmon: all || has(number::PERFMON),
            sys_admin: all,
        }
    }
}

/// The next step for a user without these capabilities (in the syntax of setcap(8)), with a command line.
#[must_use]
pub fn how_to_get(capabilities: &str) -> String {
    let program =
        env::current_exe().map_or_else(|_| "PROGRAM".into(), |path| path.display().to_string());
    format!("run it with sudo, or grant it once with `setcap {capabilities}+ep {program}`")
}

/// Effective set of a `/proc/PID/status` (proc_pid_status(5)).
fn effective(status: &str) -> Option<u64> {
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(mask.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effective_set_is_parsed() {
        assert_eq!(effective("CapPrm:\t00\nCapEff:\t0000000000003000\n"), Some(0x3000));
        assert_eq!(effective("Name:\tx\n"), None);
        let both = Privileges::of(0x3000);
        assert!(both.net_raw && both.net_admin && !both.bpf && !both.perfmon);
    }

    #[test]
    fn sys_admin_includes_only_bpf_capabilities() {
        let all = Privileges::of(1 << number::SYS_ADMIN);
        assert!(all.bpf && all.perfmon && all.sys_admin && !all.net_raw && !all.net_admin);
    }
}
