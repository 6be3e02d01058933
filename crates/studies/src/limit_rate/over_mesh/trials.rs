//! Trials with a mesh's probe: frames at a rate for some time, and how many of them its tasks have counted.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use wirestamp_capture::Stop;
use wirestamp_clock::{ClockService, Counter};

use crate::experiment::{Cell, Design, Factor, Study};
use crate::limit_rate::saturation::search;
use crate::limit_rate::setting::Setting;
use crate::limit_rate::sweeps;
use crate::limit_rate::trials::Trial;
use crate::mesh::{self, Mesh, MeshPlan, NodeCores, ReusedMesh, until};
use crate::tester::{CAPTURE_CORE, SENDING_CORE, WIDE};

/// Target rate of a probe without loss: five times the 70,000 packets a second of the report's Pentium 4
/// (section 2.1.3).
pub(super) const AIM: u64 = 5 * 70_000;

/// Tasks of a probe, and the use of its core.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Setup {
    pub(super) name: &'static str,
    pub(super) words: &'static str,
    tasks: Tasks,
    /// Whether the kernel receives frames on the probe's core; otherwise on the load's core.
    pub(super) takes_frames: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Tasks {
    count: u8,
    /// The share of packets of which passive delay is measured.
    share: f64,
}

/// Share of sampled packets.
const SAMPLED: f64 = 0.1;

const fn setup(name: &'static str, words: &'static str, count: u8, takes_frames: bool) -> Setup {
    Setup { name, words, tasks: Tasks { count, share: SAMPLED }, takes_frames }
}

impl Setup {
    /// Number of tasks.
    pub(super) const fn tasks(self) -> u8 {
        self.tasks.count
    }
}

/// All of them.
pub(super) const SETUPS: [Setup; 7] = [
    setup("1", "one task", 1, true),
    setup("4", "four tasks", 4, true),
    setup("5", "five tasks", 5, true),
    setup("1-beside", "one task, frames received on the other core", 1, false),
    setup("4-beside", "four tasks, frames received on the other core", 4, false),
    Setup {
        tasks: Tasks { count: 4, share: 1.0 },
        ..setup(
            "4-unsampled",
            "four tasks, every packet, frames received on the other core",
            4,
            false,
        )
    },
    setup("5-beside", "five tasks, frames received on the other core", 5, false),
];

/// The packets of the active task: where to, how many a second, and how long above IP.
const ACTIVE: (u16, u32, u16) = (6001, 100, 308);

/// Time without new counts after which a task has reported everything. Counting tasks report every second.
const QUIET: Duration = Duration::from_secs(3);

/// A probe is idle if it uses less than this share of its core for [`REST`].
const LITTLE: f64 = 0.2;
const REST: Duration = Duration::from_millis(200);
/// Duration of measuring the CPU load without frames.
const IDLE: Duration = Duration::from_secs(1);
/// Max time until the probe is idle after the last frame.
const CATCHES_UP: Duration = Duration::from_secs(20);

/// Duration of a run without its trials, and of a trial without sending.
const AROUND: Duration = Duration::from_secs(6);
const AROUND_TRIAL: Duration = Duration::from_millis(1_500);

/// Extent of the study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MeshLimitRateScale {
    repetitions: u32,
    lasts: Duration,
    /// Number of set-ups to test, from the first.
    setups: usize,
    /// Resolution of a search, as a share of the rate.
    resolution: f64,
    /// Max number of trials, including the trial at the target rate.
    trials: u32,
}

impl MeshLimitRateScale {
    /// Scale of a run of a quarter of an hour.
    pub(super) const FULL: Self = Self {
        repetitions: 5,
        lasts: Duration::from_secs(2),
        setups: SETUPS.len(),
        resolution: 1.0 / 16.0,
        trials: 9,
    };
    /// Takes half a minute.
    pub(super) const QUICK: Self = Self {
        repetitions: 1,
        lasts: Duration::from_millis(200),
        setups: 2,
        resolution: 1.0 / 2.0,
        trials: 5,
    };
}

/// The study.
pub(super) struct Trials {
    size: MeshLimitRateScale,
    clock: ClockService,
    kept: ReusedMesh,
}

impl Trials {
    /// # Errors
    /// When the counter cannot be calibrated, or a second core is missing.
    pub(super) fn new(size: MeshLimitRateScale, bring_up: mesh::StartMesh) -> anyhow::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        ensure!(cores > CAPTURE_CORE, "a sender and a probe need two cores; there is one");
        let clock =
            ClockService::start(Counter::select()).context("cannot calibrate the counter")?;
        Ok(Self { size, clock, kept: ReusedMesh::new(bring_up) })
    }

    /// Ends the mesh that is there.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        self.kept.end()
    }
}

impl MeshLimitRateScale {
    /// Factors of the study.
    pub(super) fn design(self) -> Design {
        let setups = SETUPS.iter().take(self.setups).map(|setup| setup.name);
        Design {
            name: "limit-rate-mesh".to_owned(),
            factors: vec![Factor::new("tasks", setups)],
            repetitions: self.repetitions,
            constants: vec![("seconds".to_owned(), self.lasts.as_secs_f64().to_string())],
        }
    }
}

impl Study for Trials {
    type Sample = Trial;

    fn design(&self) -> Design {
        self.size.design()
    }

    fn lasts(&self, _: &Cell) -> Duration {
        AROUND + (self.size.lasts + AROUND_TRIAL) * self.size.trials
    }

    /// The first trial is at the target rate; the trials of a search follow.
    fn run(&mut self, cell: &Cell, stop: &Stop) -> anyhow::Result<Vec<Trial>> {
        let setup = cell.0.first().and_then(|level| SETUPS.get(*level));
        let Setup { tasks, takes_frames, .. } = setup.context("a cell of another design")?;
        let Self { size, clock, kept, .. } = self;
        let mesh = kept.with(tasks.plan(), |mesh| tasks.await_first(mesh, stop))?;
        let taken_by = takes_frames.then_some(CAPTURE_CORE);
        let mut bench = Bench { mesh, clock, tasks: *tasks, taken_by, idle: 0.0 };
        bench.idle = bench.idles()?;
        let usual = Setting { lasts: size.lasts, ..sweeps::LimitRateScale { quick: false }.base() };
        let mut trial = |rate| bench.trial(Setting { rate, ..usual }, stop);
        let first = trial(Some(AIM))?;
        let searched = search(size.resolution, trial)?;
        Ok([vec![first], searched].concat())
    }
}

impl Tasks {
    fn plan(self) -> MeshPlan {
        let (port, rate, bytes) = ACTIVE;
        let mut tasks = mesh::at_tap_a("volume");
        if self.count > 1 {
            tasks += &mesh::at_tap_a("traffic");
            tasks += &mesh::passive("udp", self.share);
            tasks += &mesh::active("roof", port, rate, bytes);
        }
        if self.count > 4 {
            tasks += &mesh::at_tap_a("flows");
        }
        let confined = Some(NodeCores { roof: CAPTURE_CORE, others: SENDING_CORE });
        MeshPlan { path: WIDE, tasks, confined }
    }

    /// The tasks that count packets.
    const fn counting(self) -> &'static [&'static str] {
        if self.count > 1 { &["volume", "traffic"] } else { &["volume"] }
    }

    /// Waits until all counting tasks have captured for some time.
    fn await_first(self, mesh: &mut dyn Mesh, stop: &Stop) -> anyhow::Result<()> {
        let looks = || {
            for task in self.counting() {
                if mesh.intervals(task)?.iter().all(|it| it.watched_ns == 0) {
                    return Ok(None);
                }
            }
            Ok(Some(()))
        };
        until("first counts", stop, looks).map(drop)
    }
}

/// Packets that all tasks have counted, and that the capture has lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct PacketCounts {
    packets: u64,
    missed: u64,
}

/// A mesh with frames that are sent to its probe.
struct Bench<'a> {
    mesh: &'a mut dyn Mesh,
    clock: &'a ClockService,
    tasks: Tasks,
    /// The core that receives frames, if it is not the load's core.
    taken_by: Option<usize>,
    /// The share of a core that the probe takes when no frames come.
    idle: f64,
}

impl Bench<'_> {
    fn trial(&mut self, setting: Setting, stop: &Stop) -> anyhow::Result<Trial> {
        let before = self.counted()?;
        let (used, begun) = (self.mesh.processor_time()?, Instant::now());
        let roof = self.mesh.lab().router().clone();
        let sent = setting.load()?.arrive_in(&roof, self.taken_by, self.clock, stop.flag())?;
        // A probe that lags behind still has packets to count.
        let used = self.at_rest(&used, stop)?;
        let cpu = used.saturating_sub(begun.elapsed().mul_f64(self.idle));
        let arrived = sent.sent.saturating_sub(sent.dropped);
        let PacketCounts { packets, missed } = self.rest(before, arrived, stop)?;
        Ok(Trial {
            asked: setting.rate,
            sent: sent.sent,
            elapsed_ns: sent.elapsed.as_nanos(),
            interface_dropped: sent.dropped,
            kernel_dropped: missed,
            captured: packets,
            cpu_ns: u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX),
        })
    }

    /// Counts since the mesh was started.
    fn counted(&mut self) -> anyhow::Result<PacketCounts> {
        let mut all = Vec::new();
        for task in self.tasks.counting() {
            let intervals = self.mesh.intervals(task)?;
            let packets = intervals.iter().map(|it| it.packets).sum::<u64>();
            all.push((packets, intervals.iter().map(|it| it.missed).sum::<u64>()));
        }
        let packets = all.iter().map(|(packets, _)| *packets).min().unwrap_or(0);
        let missed = all.iter().map(|(_, missed)| *missed).max().unwrap_or(0);
        Ok(PacketCounts { packets, missed })
    }

    /// Waits until `arrived` frames are accounted for, or no more are. Returns the counts since `before`.
    fn rest(
        &mut self,
        before: PacketCounts,
        arrived: u64,
        stop: &Stop,
    ) -> anyhow::Result<PacketCounts> {
        let (mut last, mut since) = (PacketCounts::default(), Instant::now());
        while last.packets + last.missed < arrived && since.elapsed() < QUIET {
            stop.wait(mesh::POLL_INTERVAL);
            let now = self.counted()?;
            let now = PacketCounts {
                packets: now.packets - before.packets,
                missed: now.missed - before.missed,
            };
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
        Ok(last)
    }

    /// Waits until the probe is idle. Returns its CPU time since `before`.
    fn at_rest(&mut self, before: &Times, stop: &Stop) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let mut used = used(before, &self.mesh.processor_time()?);
        while begun.elapsed() < CATCHES_UP {
            stop.wait(REST);
            let now = self::used(before, &self.mesh.processor_time()?);
            let lately = now.saturating_sub(std::mem::replace(&mut used, now));
            if lately < REST.mul_f64(LITTLE) {
                break;
            }
        }
        Ok(used)
    }

    /// The share of a core that the probe takes when no frames come.
    fn idles(&mut self) -> anyhow::Result<f64> {
        let (before, begun) = (self.mesh.processor_time()?, Instant::now());
        thread::sleep(IDLE);
        let used = used(&before, &self.mesh.processor_time()?);
        Ok(used.as_secs_f64() / begun.elapsed().as_secs_f64())
    }
}

/// The CPU time of threads, by their numbers.
type Times = BTreeMap<u32, Duration>;

/// CPU time of threads between two readings. Excludes threads that have ended, whose time is unknown.
fn used(before: &Times, now: &Times) -> Duration {
    let of_thread = |(number, time): (&u32, &Duration)| {
        time.saturating_sub(before.get(number).copied().unwrap_or_default())
    };
    now.iter().map(of_thread).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_tasks_has_as_many() {
        let tasks = |setup: Setup| setup.tasks.plan().tasks;
        assert_eq!(SETUPS.map(|it| tasks(it).matches("[[task]]").count()), [1, 4, 5, 1, 4, 4, 5]);
        assert!(tasks(SETUPS[4]).contains("share = 0.1"));
        assert!(tasks(SETUPS[5]).contains("share = 1.0"));
    }

    #[test]
    fn started_and_ended_threads_are_summed() {
        let times = |all: &[(u32, u64)]| -> Times {
            all.iter().map(|(number, ms)| (*number, Duration::from_millis(*ms))).collect()
        };
        let taken = used(&times(&[(1, 10), (2, 50)]), &times(&[(1, 15), (3, 7)]));
        assert_eq!(taken, Duration::from_millis(12));
    }
}
