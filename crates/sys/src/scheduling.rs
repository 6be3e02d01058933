//! Cores, policies and priorities of threads: sched(7).
#![expect(unsafe_code, reason = "sched_setscheduler(2), sched_getscheduler(2), sched_getparam(2)")]

use std::io;
use std::num::NonZeroU64;
use std::thread;

use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

/// Priority of [`set_realtime`]: above every ordinary thread, below the kernel's own real-time
/// threads, which have 50.
const REALTIME_PRIORITY: libc::c_int = 40;

/// Cores on which the calling thread may run, in ascending order.
///
/// # Errors
/// The machine has more cores than a `cpu_set_t` has bits (1024).
pub fn allowed_cores() -> io::Result<Vec<usize>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect())
}

/// Restricts the calling thread to one core, effective when this returns.
///
/// # Errors
/// There is no such core, or the thread may not run on it.
pub fn pin_to(core: usize) -> io::Result<()> {
    if core >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut cores = CpuSet::new();
    cores.set(core);
    Ok(sched_setaffinity(None, &cores)?)
}

/// Ends sleeps of the calling thread on time instead of up to 50 us late (`PR_SET_TIMERSLACK`,
/// prctl(2)).
pub fn disable_timer_slack() {
    // Cannot fail with this argument.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
}

/// Puts the calling thread into the scheduling class `SCHED_FIFO` (sched(7)): when a packet wakes
/// it, it runs at once, before every ordinary thread of its core.
///
/// # Errors
/// Without `CAP_SYS_NICE`, or where a control group grants no real-time run time.
pub fn set_realtime() -> io::Result<()> {
    set_scheduler(0, libc::SCHED_FIFO, REALTIME_PRIORITY)
}

/// Checks whether [`set_realtime`] would succeed, on a thread that ends at once.
///
/// # Errors
/// As [`set_realtime`].
pub fn check_realtime() -> io::Result<()> {
    thread::spawn(set_realtime).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The policies that take a priority and nothing else (sched(7)).
const POLICIES: [(&str, libc::c_int); 5] = [
    ("SCHED_OTHER", libc::SCHED_OTHER),
    ("SCHED_FIFO", libc::SCHED_FIFO),
    ("SCHED_RR", libc::SCHED_RR),
    ("SCHED_BATCH", libc::SCHED_BATCH),
    ("SCHED_IDLE", libc::SCHED_IDLE),
];

/// Policy and priority of a thread as text, such as `SCHED_FIFO 41`.
///
/// # Errors
/// There is no such thread, or its policy has other parameters.
pub fn policy(thread: Pid) -> io::Result<String> {
    let pid = thread.as_raw_nonzero().get();
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: takes a number.
    let policy = unsafe { libc::sched_getscheduler(pid) };
    // SAFETY: the parameters are writable.
    if policy == -1 || unsafe { libc::sched_getparam(pid, &raw mut parameters) } == -1 {
        return Err(io::Error::last_os_error());
    }
    let policy = policy & !libc::SCHED_RESET_ON_FORK;
    let known = POLICIES.iter().find(|(_, number)| *number == policy);
    let (name, _) = known.ok_or_else(|| io::Error::other("unknown scheduling policy"))?;
    Ok(format!("{name} {}", parameters.sched_priority))
}

/// Sets policy and priority of a thread from text as [`policy`] returns it.
///
/// # Errors
/// The text has another form, there is no such thread, or without `CAP_SYS_NICE`.
pub fn set_policy(thread: Pid, text: &str) -> io::Result<()> {
    let parsed = text.split_once(' ').and_then(|(policy, priority)| {
        let (_, policy) = POLICIES.iter().find(|(name, _)| *name == policy)?;
        Some((*policy, priority.parse().ok()?))
    });
    let (policy, priority) = parsed.ok_or(io::ErrorKind::InvalidInput)?;
    set_scheduler(thread.as_raw_nonzero().get(), policy, priority)
}

/// sched_setscheduler(2); 0 is the calling thread.
fn set_scheduler(
    thread: libc::pid_t,
    policy: libc::c_int,
    sched_priority: libc::c_int,
) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority };
    // SAFETY: the parameters are readable.
    match unsafe { libc::sched_setscheduler(thread, policy, &raw const parameters) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_is_read_as_it_was_set() {
        thread::spawn(|| {
            let own = rustix::thread::gettid();
            for text in ["SCHED_BATCH 0", "SCHED_OTHER 0"] {
                set_policy(own, text).unwrap();
                assert_eq!(policy(own).unwrap(), text);
            }
            assert!(set_policy(own, "SCHED_FIFO").is_err());
            assert!(set_policy(own, "SCHED_NONE 1").is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn core_beyond_the_set_is_refused() {
        assert!(pin_to(CpuSet::MAX_CPU).is_err());
        assert!(!allowed_cores().unwrap().is_empty());
    }
}
