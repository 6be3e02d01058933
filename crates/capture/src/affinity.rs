//! CPU cores for the threads of the pipeline.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;

use crate::Error;

/// Cores of the three stages. `None` leaves a thread to the scheduler.
///
/// No other thread is pinned. The thread of a [`ClockService`](wirestamp_clock::ClockService) reads the clocks for
/// some microseconds every 250 ms, on the cores of the thread that started it. Those are all cores of the process, if
/// the service was started before [`Capture::run`](crate::Capture) pinned its caller. [`crate::tune`] moves the
/// softIRQ and the NAPI threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cores {
    /// Reads the raw stamp; best with a core of its own.
    pub acquire: Option<usize>,
    /// Converts raw stamps to time.
    pub convert: Option<usize>,
    /// Filters, correlates, writes. Where the kernel stamps, one thread runs all stages here, unless real-time
    /// priority or spinning is requested. If it is `None` while acquisition threads are pinned, the consumer runs on
    /// the other cores: it would delay their stamps.
    pub consume: Option<usize>,
}

/// Cores on which the threads of a lane run, for the output. An empty list means all cores of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadCores {
    /// Cores of the thread that acquires.
    pub acquire: Vec<usize>,
    /// Cores of the thread that converts.
    pub convert: Vec<usize>,
    /// Cores of the thread that consumes, which all lanes share.
    pub consume: Vec<usize>,
}

impl Cores {
    /// Chooses cores for `captures` simultaneous captures, among those that this process may use.
    ///
    /// Each acquisition thread gets one of the last cores (device interrupts and most daemons run on the first), as
    /// long as one remains for converting; otherwise all share the last core. Converters share the remaining cores,
    /// nearest first. Consumers run on all cores without an acquisition thread but the first, or on the first if no
    /// other remains. On a single core nothing is pinned.
    #[must_use]
    pub fn choose(captures: usize) -> Vec<Self> {
        assign(&allowed(), captures)
    }

    /// Whether the acquisition threads of `captures` simultaneous captures may spin: with [`Cores::choose`], each has a
    /// core of its own, and at least as many cores remain for the rest of the process.
    #[must_use]
    pub fn can_spin(captures: usize) -> bool {
        suffice_to_spin(allowed().len(), captures)
    }

    /// Checks that this process may use the cores.
    ///
    /// # Errors
    /// [`Error::NoSuchCore`] reports the first core that it may not use, and those that it may.
    pub fn check(&self) -> Result<(), Error> {
        let allowed = allowed();
        let mut cores = [self.acquire, self.convert, self.consume].into_iter().flatten();
        match cores.find(|core| !allowed.contains(core)) {
            Some(core) => Err(Error::NoSuchCore { core, allowed }),
            None => Ok(()),
        }
    }
}

impl ThreadCores {
    /// Cores of the threads of `lanes`. With `one_thread`, the consumer's thread runs all stages.
    pub(crate) fn of(lanes: &[Cores], one_thread: bool) -> Vec<Self> {
        let list = |core: Option<usize>| core.into_iter().collect::<Vec<_>>();
        if one_thread {
            let all = list(lanes.first().and_then(|lane| lane.consume));
            return vec![Self { acquire: all.clone(), convert: all.clone(), consume: all }];
        }
        let consume = consumer(&allowed(), lanes);
        let of_lane = |lane: &Cores| Self {
            acquire: list(lane.acquire),
            convert: list(lane.convert),
            consume: consume.clone(),
        };
        lanes.iter().map(of_lane).collect()
    }
}

/// Cores of the consumer of `lanes`: the requested one, or those without an acquisition thread. The first core is left
/// to device interrupts where others remain. Empty if the consumer may run everywhere.
fn consumer(allowed: &[usize], lanes: &[Cores]) -> Vec<usize> {
    if let Some(core) = lanes.first().and_then(|lane| lane.consume) {
        return vec![core];
    }
    let acquires = |core| lanes.iter().any(|lane| lane.acquire == Some(core));
    if !allowed.iter().any(|&core| acquires(core)) {
        return Vec::new();
    }
    let other = |core: &&usize| !acquires(**core);
    let quiet: Vec<_> = allowed.iter().skip(1).filter(other).copied().collect();
    if quiet.is_empty() { allowed.iter().filter(other).copied().collect() } else { quiet }
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

/// With two cores per capture, [`assign`] shares no acquisition core.
fn suffice_to_spin(cores: usize, captures: usize) -> bool {
    cores / 2 >= captures
}

/// The cores that the scheduler may run this thread on, in ascending order.
pub(crate) fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect()
}

/// Pins the calling thread to `core`, if one is given. [`Cores::check`] has accepted it.
///
/// If the process may no longer use the core, the scheduler places the thread: the kernel does the same with a thread
/// whose core is removed later (cpuset(7), "Exceptions").
pub(crate) fn pin(core: Option<usize>) {
    if let Some(core) = core {
        let mut set = CpuSet::new();
        set.set(core);
        let _ = sched_setaffinity(None, &set);
    }
}

/// Keeps the calling thread on the consumer's cores until it is dropped.
pub(crate) struct ConsumerPlace(Option<CpuSet>);

impl ConsumerPlace {
    /// Moves the calling thread, the consumer of `lanes`. [`Cores::check`] has accepted them.
    pub(crate) fn take(lanes: &[Cores]) -> Self {
        let cores = consumer(&allowed(), lanes);
        let before = sched_getaffinity(None).ok().filter(|_| !cores.is_empty());
        if before.is_some() {
            let mut set = CpuSet::new();
            cores.into_iter().for_each(|core| set.set(core));
            let _ = sched_setaffinity(None, &set); // see `pin`
        }
        Self(before)
    }
}

impl Drop for ConsumerPlace {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = sched_setaffinity(None, before);
        }
    }
}

/// Parses a core list such as `0-3,8` (cpuset(7), "List format"). Invalid parts are skipped.
pub(crate) fn parse_cores(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse::<usize>().ok()?);
        // The kernel's max number of CPUs (CONFIG_NR_CPUS) limits the range.
        Some(first..=last.min(8191))
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The acquiring and the converting core of each capture.
    fn assigned(cores: usize, captures: usize) -> Vec<(usize, usize)> {
        let allowed: Vec<_> = (0..cores).collect();
        let pair = |cores: &Cores| cores.acquire.zip(cores.convert);
        assign(&allowed, captures).iter().filter_map(pair).collect()
    }

    #[test]
    fn acquisition_threads_get_own_cores() {
        assert_eq!(assigned(2, 1), [(1, 0)]);
        assert_eq!(assigned(2, 2), [(1, 0), (1, 0)]);
        assert_eq!(assigned(3, 2), [(2, 0), (1, 0)]);
        assert_eq!(assigned(4, 1), [(3, 2)]);
        assert_eq!(assigned(4, 2), [(3, 1), (2, 0)]);
        assert_eq!(assigned(8, 1), [(7, 6)]);
        assert_eq!(assigned(8, 2), [(7, 5), (6, 4)]);
    }

    #[test]
    fn consumer_avoids_acquisition_threads_and_the_first_core() {
        let cores = |cores: usize, captures| {
            let allowed: Vec<_> = (0..cores).collect();
            consumer(&allowed, &assign(&allowed, captures))
        };
        assert!(cores(1, 1).is_empty());
        assert_eq!(cores(2, 1), [0]);
        assert_eq!(cores(2, 2), [0]);
        assert_eq!(cores(3, 1), [1]);
        assert_eq!(cores(4, 1), [1, 2]);
        assert_eq!(cores(4, 3), [0]);
        let requested = Cores { acquire: Some(1), consume: Some(1), ..Cores::default() };
        assert_eq!(consumer(&[0, 1], &[requested]), [1]);
        assert!(consumer(&[0, 1], &[Cores::default()]).is_empty());
    }

    #[test]
    fn consumer_gets_its_cores_back() {
        let before = allowed();
        let Some(&last) = before.last().filter(|_| before.len() > 1) else { return };
        let place = ConsumerPlace::take(&[Cores { acquire: Some(last), ..Cores::default() }]);
        assert!(!allowed().contains(&last));
        drop(place);
        assert_eq!(allowed(), before);
    }

    #[test]
    fn one_thread_runs_on_the_consumers_core() {
        let lane = Cores { acquire: Some(1), convert: Some(0), consume: None };
        assert_eq!(ThreadCores::of(&[lane], true), [ThreadCores::default()]);
        let pinned = Cores { consume: Some(0), ..lane };
        let (acquire, convert, consume) = (vec![0], vec![0], vec![0]);
        assert_eq!(ThreadCores::of(&[pinned], true), [ThreadCores { acquire, convert, consume }]);
        assert_eq!(ThreadCores::of(&[pinned], false)[0].acquire, [1]);
    }

    #[test]
    fn nothing_is_pinned_on_a_single_core() {
        assert_eq!(assign(&[5], 1), [Cores::default()]);
        assert_eq!(assign(&[5], 2), [Cores::default(); 2]);
    }

    #[test]
    fn threads_spin_only_on_exclusive_cores() {
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
    fn unusable_core_is_reported_with_usable_ones() {
        let cores = Cores { convert: Some(CpuSet::MAX_CPU), ..Cores::default() };
        let error = cores.check().unwrap_err();
        assert!(error.is_usage());
        let expected = format!(
            "core {}: it is not in the CPU affinity of this process; choose one of {:?}",
            CpuSet::MAX_CPU,
            allowed()
        );
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
