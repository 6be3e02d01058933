//! Interface between studies and a mesh. The caller of the study starts the mesh: a controller and probes,
//! each a process of its own.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::bail;
use wirestamp_capture::Stop;
use wirestamp_lab::results::{Delay, Interval, Second};
use wirestamp_lab::{Impairments, MeshLab, SINK_V6, TAP_A, TAP_B};
use wirestamp_metrics::Counts;

use wirestamp_report::format::approximate;

/// Interval between polls of a mesh for new results.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Max time until a mesh measures, and until results are available.
const RESULTS_TIMEOUT: Duration = Duration::from_secs(30);

/// Path and tasks of a mesh.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshPlan {
    /// Impairments of the path.
    pub path: Impairments,
    /// The tasks, as a controller reads them from a file. There are the probes `street` at the source, `roof` at
    /// the first router, and `cellar` at the sink.
    pub tasks: String,
    /// Cores of the nodes; `None` for any.
    pub confined: Option<NodeCores>,
}

/// CPU affinity of the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeCores {
    /// Core of the probe `roof`, exclusively.
    pub roof: usize,
    /// Core of all other nodes.
    pub others: usize,
}

/// Starts a mesh.
pub type StartMesh = fn(&MeshPlan) -> anyhow::Result<Box<dyn Mesh>>;

/// A running mesh. Dropping it stops the nodes.
pub trait Mesh {
    /// The lab of the mesh.
    fn lab(&self) -> &MeshLab;

    /// Results of a task between two points for the seconds that begin at a time, in nanoseconds since
    /// 1970 (UTC), or later. Only final results.
    ///
    /// # Errors
    /// When a node has ended, or the controller does not answer.
    fn seconds(&mut self, task: &str, from: i64) -> anyhow::Result<Vec<Second>>;

    /// Counts of a task at one point.
    ///
    /// # Errors
    /// As of [`Mesh::seconds`].
    fn intervals(&mut self, task: &str) -> anyhow::Result<Vec<Interval>>;

    /// The CPU time of each thread of the probe `roof`, by its number.
    ///
    /// # Errors
    /// When it has ended.
    fn processor_time(&mut self) -> anyhow::Result<BTreeMap<u32, Duration>>;

    /// Ends all nodes.
    ///
    /// # Errors
    /// When a node exits with an error.
    fn end(self: Box<Self>) -> anyhow::Result<()>;
}

/// Sum of several seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Total {
    pub(crate) counts: Counts,
    pub(crate) delay: Option<Delay>,
    /// Seconds with a delay below zero.
    pub(crate) negative: u64,
}

impl Total {
    pub(crate) fn of<'a>(seconds: impl IntoIterator<Item = &'a Second>) -> Self {
        seconds.into_iter().fold(Self::default(), |mut total, second| {
            total.counts.add(&second.counts);
            total.delay = match (total.delay, second.delay_ns) {
                (Some(a), Some(b)) => Some(a.and(b)),
                (a, b) => a.or(b),
            };
            total.negative += u64::from(second.delay_ns.is_some_and(|delay| delay.min < 0));
            total
        })
    }

    /// Min, mean and max delay in nanoseconds; NaN without a delay.
    pub(crate) fn delays_ns(&self) -> [f64; 3] {
        let of = |Delay { min, mean, max, .. }: Delay| [approximate(min), mean, approximate(max)];
        self.delay.map_or([f64::NAN; 3], of)
    }
}

/// A mesh that is reused while its plan is unchanged.
pub(crate) struct ReusedMesh {
    bring_up: StartMesh,
    kept: Option<(MeshPlan, Box<dyn Mesh>)>,
}

impl ReusedMesh {
    pub(crate) const fn new(bring_up: StartMesh) -> Self {
        Self { bring_up, kept: None }
    }

    /// The mesh of a plan. Calls `ready` on a mesh that has just started.
    pub(crate) fn with(
        &mut self,
        plan: MeshPlan,
        ready: impl FnOnce(&mut dyn Mesh) -> anyhow::Result<()>,
    ) -> anyhow::Result<&mut dyn Mesh> {
        if self.kept.as_ref().is_none_or(|(of, _)| *of != plan) {
            self.end()?;
            let mut mesh = (self.bring_up)(&plan)?;
            ready(&mut *mesh)?;
            self.kept = Some((plan, mesh));
        }
        match &mut self.kept {
            Some((_, mesh)) => Ok(&mut **mesh),
            None => bail!("there is no mesh"),
        }
    }

    /// Stops the mesh, if there is one.
    pub(crate) fn end(&mut self) -> anyhow::Result<()> {
        self.kept.take().map_or(Ok(()), |(_, mesh)| mesh.end())
    }
}

/// Calls `ask` until it returns a value, or `stop` is requested.
///
/// # Errors
/// When it returns no value within half a minute (the message names `what`), or when `ask` fails.
pub(crate) fn until<T>(
    what: &str,
    stop: &Stop,
    mut ask: impl FnMut() -> anyhow::Result<Option<T>>,
) -> anyhow::Result<Option<T>> {
    let deadline = Instant::now() + RESULTS_TIMEOUT;
    while !stop.is_requested() {
        if let Some(answer) = ask()? {
            return Ok(Some(answer));
        }
        if Instant::now() > deadline {
            bail!(
                "cannot read {what} from the mesh: timeout; `wirestamp lab mesh --keep FOLDER` shows the nodes' messages"
            );
        }
        stop.wait(POLL_INTERVAL);
    }
    Ok(None)
}

/// A passive task from tap A to tap B, for packets that pass a filter, or a share of them.
pub(crate) fn passive(filter: &str, share: f64) -> String {
    format!(
        "[[task]]\nname = \"passive\"\nmeasure = \"passive-delay\"\nfrom = \"roof/{TAP_A}\"\n\
         to = \"cellar/{TAP_B}\"\nfilter = \"{filter}\"\nshare = {share:?}\n\n"
    )
}

/// A task at tap A, such as volume or flows, with the name of its measurement.
pub(crate) fn at_tap_a(measure: &str) -> String {
    format!("[[task]]\nname = \"{measure}\"\nmeasure = \"{measure}\"\nat = \"roof/{TAP_A}\"\n\n")
}

/// An active task from a probe to the sink, with `rate` packets a second of `bytes` above IP.
pub(crate) fn active(from: &str, port: u16, rate: u32, bytes: u16) -> String {
    format!(
        "[[task]]\nname = \"active\"\nmeasure = \"active-delay\"\nfrom = \"{from}\"\nto = \"cellar\"\n\
         address = \"{SINK_V6}\"\nport = {port}\nrate = {rate}\nbytes = {bytes}\n\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(delay: Option<(u64, i64, f64)>) -> Second {
        let delay_ns = delay.map(|(count, min, mean)| Delay { count, min, mean, max: 9 });
        let counts = Counts { sent: 2, lost: 1, ..Counts::default() };
        Second { begin_ns: 0, counts, delay_ns, error_ns: None, contradicts_the_clocks: false }
    }

    #[test]
    fn seconds_add_up() {
        let seconds = [Some((1, -1, 10.0)), None, Some((3, 1, 2.0))].map(second);
        let total = Total::of(&seconds);
        assert_eq!((total.counts.sent, total.counts.lost, total.negative), (6, 3, 1));
        assert_eq!(total.delay.map(|it| it.count), Some(4));
        assert_eq!(total.delays_ns(), [-1.0, 4.0, 9.0]);
        assert!(Total::of(&[]).delays_ns().iter().all(|it| it.is_nan()));
    }
}
