//! Which core a thread of the pipeline runs on.

use std::io;
use std::mem;

/// The cores of the three stages. `None` leaves a thread to the scheduler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    /// Reads the raw stamp; wants a core of its own.
    pub acquire: Option<usize>,
    /// Converts raw stamps to time.
    pub convert: Option<usize>,
    /// Identifies, filters, correlates, writes.
    pub consume: Option<usize>,
}

impl Cores {
    /// A sensible choice among the cores that this process may use: acquisition alone on the last
    /// one (device interrupts and most daemons sit on the first), conversion on the one before it,
    /// consumption wherever the scheduler finds room. On a single core nothing is pinned.
    #[must_use]
    pub fn choose() -> Self {
        match allowed().as_slice() {
            [.., convert, acquire] => {
                Self { acquire: Some(*acquire), convert: Some(*convert), consume: None }
            }
            _ => Self::default(),
        }
    }

    /// Checks that this process may use the cores.
    ///
    /// # Errors
    /// Names the first that it may not use, and those that it may.
    pub fn check(&self) -> io::Result<()> {
        [self.acquire, self.convert, self.consume].into_iter().flatten().try_for_each(check)
    }
}

fn check(core: usize) -> io::Result<()> {
    let allowed = allowed();
    if allowed.contains(&core) {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("core {core} is not one of those this process may use: {allowed:?}"),
    ))
}

/// The cores that the scheduler may run this thread on, in ascending order.
#[must_use]
pub fn allowed() -> Vec<usize> {
    // SAFETY: cpu_set_t is a plain bit mask, for which all zeroes is a valid value.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: the set is writable and its size is passed.
    if unsafe { libc::sched_getaffinity(0, mem::size_of_val(&set), &raw mut set) } != 0 {
        return Vec::new();
    }
    let size = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
    // SAFETY: CPU_ISSET reads the bit of a core below CPU_SETSIZE, which the set has.
    (0..size).filter(|&core| unsafe { libc::CPU_ISSET(core, &set) }).collect()
}

/// Ties the calling thread to `core`, if one is given.
///
/// Fails when there is no such core, or this process may not use it.
pub(crate) fn pin(core: Option<usize>) -> io::Result<()> {
    let Some(core) = core else { return Ok(()) };
    check(core)?;
    // SAFETY: cpu_set_t is a plain bit mask, for which all zeroes is a valid value.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `core` was found in a set of the same type, so its bit exists.
    unsafe { libc::CPU_SET(core, &mut set) };
    // SAFETY: the set is readable and its size is passed; 0 is the calling thread.
    match unsafe { libc::sched_setaffinity(0, mem::size_of_val(&set), &raw const set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
