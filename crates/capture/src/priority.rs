//! Real-time priority for the thread that takes the stamps, and for threads of the kernel.
#![expect(unsafe_code, reason = "sched_setscheduler(2), sched_getscheduler(2), sched_getparam(2)")]

use std::io;
use std::thread;

use rustix::thread::Pid;

/// Above every ordinary thread, below the kernel's own real-time threads, which have 50.
const PRIORITY: libc::c_int = 40;

/// Puts the calling thread into the scheduling class `SCHED_FIFO` (sched(7)): when a packet wakes
/// it, it runs at once, whatever else wanted its core.
///
/// # Errors
/// Without `CAP_SYS_NICE`, or where a control group grants no real-time run time.
pub(crate) fn realtime() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: the parameters are readable; 0 is the calling thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether [`realtime`] will be granted: tried on a thread that ends at once.
pub(crate) fn realtime_is_granted() -> io::Result<()> {
    thread::spawn(realtime).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The scheduling policies (sched(7)) that take a priority and nothing else.
const POLICIES: [(&str, libc::c_int); 5] = [
    ("SCHED_OTHER", libc::SCHED_OTHER),
    ("SCHED_FIFO", libc::SCHED_FIFO),
    ("SCHED_RR", libc::SCHED_RR),
    ("SCHED_BATCH", libc::SCHED_BATCH),
    ("SCHED_IDLE", libc::SCHED_IDLE),
];

/// The policy and priority of a thread, such as `SCHED_FIFO 41`.
pub(crate) fn scheduling(thread: Pid) -> io::Result<String> {
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

/// Gives a thread a policy and priority as [`scheduling`] writes them.
pub(crate) fn schedule(thread: Pid, wanted: &str) -> io::Result<()> {
    let parsed = wanted.split_once(' ').and_then(|(policy, priority)| {
        let (_, policy) = POLICIES.iter().find(|(name, _)| *name == policy)?;
        Some((*policy, priority.parse().ok()?))
    });
    let (policy, sched_priority) = parsed.ok_or(io::ErrorKind::InvalidInput)?;
    let parameters = libc::sched_param { sched_priority };
    let pid = thread.as_raw_nonzero().get();
    // SAFETY: the parameters are readable.
    match unsafe { libc::sched_setscheduler(pid, policy, &raw const parameters) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_as_it_is_written() {
        thread::spawn(|| {
            let own = rustix::thread::gettid();
            for wanted in ["SCHED_BATCH 0", "SCHED_OTHER 0"] {
                schedule(own, wanted).unwrap();
                assert_eq!(scheduling(own).unwrap(), wanted);
            }
            assert!(schedule(own, "SCHED_FIFO").is_err());
            assert!(schedule(own, "SCHED_NONE 1").is_err());
        })
        .join()
        .unwrap();
    }
}
