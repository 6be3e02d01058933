//! Which core a thread of the pipeline runs on.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::Error;

/// The cores of the three stages. `None` leaves a thread to the scheduler.
///
/// No other thread is tied to a core. The one of a [`ClockService`](wirestamp_clock::ClockService),
/// which reads the clocks for some microseconds every 250 ms, has the cores of the thread that
/// started it: all that the process may use, if that was before [`Capture::run`](crate::Capture)
/// pinned its caller. The softIRQ and the threads of NAPI are the kernel's; [`crate::tune`] moves
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    /// Reads the raw stamp; wants a core of its own.
    pub acquire: Option<usize>,
    /// Converts raw stamps to time.
    pub convert: Option<usize>,
    /// Identifies, filters, correlates, writes. Where the kernel takes the stamps, one thread does
    /// it all here, unless real-time priority or spinning is asked for.
    pub consume: Option<usize>,
}

impl Cores {
    /// Cores for so many `captures` at the same time, among those that this process may use.
    ///
    /// The acquisition threads get the last ones (device interrupts and most daemons sit on the
    /// first), each its own as long as that leaves one for converting; otherwise they share the
    /// last. The converters share the remaining ones, nearest first. Consumers go where the
    /// scheduler finds room. On a single core nothing is pinned.
    #[must_use]
    pub fn choose(captures: usize) -> Vec<Self> {
        assign(&allowed(), captures)
    }

    /// Whether the acquisition threads of so many `captures` at the same time may spin: with
    /// [`Cores::choose`], each has a core that it takes from no other stage, and the rest of the
    /// process is left with at least as many.
    #[must_use]
    pub fn can_spin(captures: usize) -> bool {
        suffice_to_spin(allowed().len(), captures)
    }

    /// Checks that this process may use the cores.
    ///
    /// # Errors
    /// [`Error::NoSuchCore`] names the first that it may not use, and those that it may.
    pub fn check(&self) -> Result<(), Error> {
        let allowed = allowed();
        let mut cores = [self.acquire, self.convert, self.consume].into_iter().flatten();
        match cores.find(|core| !allowed.contains(core)) {
            Some(core) => Err(Error::NoSuchCore { core, allowed }),
            None => Ok(()),
        }
    }
}

fn assign(allowed: &[usize], captures: usize) -> Vec<Cores> {
    if allowed.len() < 2 {
        return vec![Cores::default(); captures];
    }
    let acquiring = if captures < allowed.len() { captures } else { 1 };
    let (convert, acquire) = allowed.split_at(allowed.len() - acquiring);
    let pairs = acquire.iter().rev().cycle().zip(convert.iter().rev().cycle());
    pairs
        .take(captures)
        .map(|(&acquire, &convert)| Cores {
            acquire: Some(acquire),
            convert: Some(convert),
            consume: None,
        })
        .collect()
}

/// With two cores a capture, [`assign`] shares no acquisition core.
fn suffice_to_spin(cores: usize, captures: usize) -> bool {
    cores / 2 >= captures
}

/// The cores that the scheduler may run this thread on, in ascending order.
pub(crate) fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect()
}

/// Ties the calling thread to `core`, if one is given, which [`Cores::check`] has passed.
///
/// Should the core have been taken from this process since, the thread stays with the scheduler:
/// the kernel does the same to a thread whose core goes away later (cpuset(7), "Exceptions").
pub(crate) fn pin(core: Option<usize>) {
    if let Some(core) = core {
        let mut set = CpuSet::new();
        set.set(core);
        let _ = sched_setaffinity(None, &set);
    }
}

/// The cores of a list such as `0-3,8` (cpuset(7), "List format"); what is no number is skipped.
pub(crate) fn parse_cores(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse::<usize>().ok()?);
        // As many as the kernel can be built for (CONFIG_NR_CPUS), whatever the list says.
        Some(first..=last.min(8191))
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cores that each of so many captures gets of so many cores: acquiring, converting.
    fn assigned(cores: usize, captures: usize) -> Vec<(usize, usize)> {
        let allowed: Vec<_> = (0..cores).collect();
        let pair = |cores: &Cores| cores.acquire.zip(cores.convert);
        assign(&allowed, captures).iter().filter_map(pair).collect()
    }

    #[test]
    fn acquisition_threads_have_their_own_cores_while_one_is_left_over() {
        assert_eq!(assigned(2, 1), [(1, 0)]);
        assert_eq!(assigned(2, 2), [(1, 0), (1, 0)]);
        assert_eq!(assigned(3, 2), [(2, 0), (1, 0)]);
        assert_eq!(assigned(4, 1), [(3, 2)]);
        assert_eq!(assigned(4, 2), [(3, 1), (2, 0)]);
        assert_eq!(assigned(8, 1), [(7, 6)]);
        assert_eq!(assigned(8, 2), [(7, 5), (6, 4)]);
    }

    #[test]
    fn nothing_is_pinned_on_a_single_core() {
        assert_eq!(assign(&[5], 1), [Cores::default()]);
        assert_eq!(assign(&[5], 2), [Cores::default(); 2]);
    }

    #[test]
    fn threads_spin_only_on_cores_that_are_theirs_alone() {
        let enough = |cores| [1, 2].map(|captures| suffice_to_spin(cores, captures));
        assert_eq!(enough(1), [false, false]);
        assert_eq!(enough(2), [true, false]);
        assert_eq!(enough(3), [true, false]);
        assert_eq!(enough(4), [true, true]);
        assert_eq!(enough(8), [true, true]);
        for (cores, captures) in [(2, 1), (4, 2), (8, 2), (8, 4)] {
            let assigned = assigned(cores, captures);
            let pinned_to =
                |core| assigned.iter().filter(|(a, c)| *a == core || *c == core).count();
            assert!(assigned.iter().all(|&(acquire, _)| pinned_to(acquire) == 1), "{cores} cores");
        }
    }

    #[test]
    fn a_core_that_cannot_be_used_is_named_with_those_that_can() {
        let cores = Cores { convert: Some(CpuSet::MAX_CPU), ..Cores::default() };
        let error = cores.check().unwrap_err();
        assert!(error.is_usage());
        let expected = format!("core {}; choose among {:?}", CpuSet::MAX_CPU, allowed());
        assert!(error.to_string().ends_with(&expected), "{error}");
    }

    #[test]
    fn core_list_consists_of_numbers_and_ranges() {
        assert_eq!(parse_cores("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(parse_cores("7"), [7]);
        assert!(parse_cores("").is_empty());
        assert_eq!(parse_cores("x,3-y,4"), [4]);
    }
}
