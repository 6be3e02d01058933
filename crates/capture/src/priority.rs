//! Real-time priority for the thread that takes the stamps.
#![expect(unsafe_code, reason = "sched_setscheduler(2)")]

use std::io;
use std::thread;

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
