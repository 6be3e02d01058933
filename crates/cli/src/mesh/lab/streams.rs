//! The tasks of the lab, and the stream that each of them measures.

use std::net::SocketAddr;
use std::time::Duration;

use wirestamp_clock::Span;
use wirestamp_lab::{Impairments, SINK_V4, TAP_A, TAP_B};
use wirestamp_traffic::{Pattern, PatternError, Stream, StreamPlan};

/// UDP destination ports of the call, and of the first stream of the load.
const CALL_PORT: u16 = 5004;
const LOAD_PORT: u16 = 5008;

/// Frame size of the bursts. Their rate is a quarter above that of the bottleneck.
const BURST_FRAME_BYTES: u16 = 1000;
const EXCESS: u64 = 4;

/// Frame size of a steady load: small, so that a usual machine can send many.
const STEADY_FRAME_BYTES: u16 = 128;

/// Steady packets are sent together once in this time: a sender cannot sleep for less.
const STEADY_INTERVALS_PER_S: u32 = 1000;

/// Time with a full queue in each burst, and the pause after it.
const FULL_TIME: Span = Span::from_millis(500);
const PAUSE: Span = Span::from_millis(1500);

/// A task, and the stream that it measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TaskStream {
    pub(super) name: String,
    /// UDP destination port.
    pub(super) port: u16,
    pattern: Pattern,
    start: Span,
}

/// The load beside the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// Bursts that fill the bottleneck.
    Bursts,
    /// A steady number of packets, divided among tasks.
    Steady {
        packets_per_s: u32,
        /// Number of tasks, at least 1.
        tasks: u16,
    },
}

impl TaskStream {
    pub(super) fn destination(&self) -> SocketAddr {
        (SINK_V4, self.port).into()
    }
}

/// A call, and the load, which begins later.
pub(super) fn tasks(path: &Impairments, load: Load) -> Result<Vec<TaskStream>, PatternError> {
    let call = TaskStream {
        name: "call".to_owned(),
        port: CALL_PORT,
        pattern: Pattern::voip(),
        start: Span::ZERO,
    };
    let (count, pattern) = match load {
        Load::Bursts => (1, bursts(path)?),
        Load::Steady { packets_per_s, tasks } => (tasks, steady(packets_per_s, tasks)?),
    };
    let load = (1..=count).zip(LOAD_PORT..).map(|(number, port)| TaskStream {
        name: if count == 1 { "load".to_owned() } else { format!("load-{number}") },
        port,
        pattern: pattern.clone(),
        start: PAUSE,
    });
    Ok([call].into_iter().chain(load).collect())
}

/// The task file of the controller. The load is first, so that each collector gets one of its tasks.
pub(super) fn task_file(tasks: &[TaskStream]) -> String {
    let task = |TaskStream { name, port, .. }: &TaskStream| {
        format!(
            "[[task]]\nname = \"{name}\"\nmeasure = \"passive-delay\"\n\
             from = \"roof/{TAP_A}\"\nto = \"cellar/{TAP_B}\"\n\
             filter = \"udp and dst port {port}\"\n\n"
        )
    };
    tasks.iter().rev().map(task).collect()
}

/// The streams of the tasks, endless without a duration.
pub(super) fn streams(tasks: &[TaskStream], lasting: Option<Duration>) -> Vec<Stream> {
    let stream = |(id, task): (u16, &TaskStream)| {
        let TaskStream { pattern, start, .. } = task.clone();
        let packets = lasting.map_or(u64::MAX, |lasting| {
            let lasting = i64::try_from(lasting.as_nanos()).unwrap_or(i64::MAX);
            pattern.packets_in(Span::from_nanos(lasting) - start)
        });
        Stream::new(id, StreamPlan { pattern, start, packets }, task.destination())
    };
    (1..).zip(tasks).map(stream).collect()
}

/// Bursts that fill the queue, keep it full, and then let it run empty.
fn bursts(path: &Impairments) -> Result<Pattern, PatternError> {
    let bits = u64::from(BURST_FRAME_BYTES) * 8;
    let frame = span(bits, path.rate_bits_per_s);
    let spacing = span(bits, path.rate_bits_per_s + path.rate_bits_per_s / EXCESS);
    let filling = span(u64::from(path.queue_bytes) * 8, path.rate_bits_per_s / EXCESS);
    let bursting = filling + FULL_TIME;
    let packets = bursting.as_nanos() / spacing.as_nanos().max(1) + 1;
    let packets = u32::try_from(packets).unwrap_or(u32::MAX);
    Pattern::new("load", BURST_FRAME_BYTES, bursting + frame + PAUSE)?.with_burst(packets, spacing)
}

/// One of `tasks` equal streams that have this number of packets a second together.
fn steady(packets_per_s: u32, tasks: u16) -> Result<Pattern, PatternError> {
    let tasks = u32::from(tasks.max(1));
    let burst = packets_per_s.div_ceil(STEADY_INTERVALS_PER_S.saturating_mul(tasks)).max(1);
    let nanos = u64::from(burst) * u64::from(tasks) * 1_000_000_000;
    let interval = nanos / u64::from(packets_per_s.max(1));
    let interval = Span::from_nanos(i64::try_from(interval).unwrap_or(i64::MAX));
    Pattern::new("load", STEADY_FRAME_BYTES, interval)?.with_burst(burst, Span::ZERO)
}

/// The delay of the full queue.
pub(super) fn full_queue(path: &Impairments) -> Span {
    span(u64::from(path.queue_bytes) * 8, path.rate_bits_per_s)
}

/// Transmission time of bits at a rate.
fn span(bits: u64, bits_per_s: u64) -> Span {
    let nanos = u128::from(bits) * 1_000_000_000 / u128::from(bits_per_s.max(1));
    Span::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use wirestamp_mesh::task::read_file;

    use super::*;

    #[test]
    fn task_file_is_valid() {
        let path = Impairments::bottleneck(10_000_000, 50_000);
        for load in [Load::Bursts, Load::Steady { packets_per_s: 1, tasks: 16 }] {
            let tasks = tasks(&path, load).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("tasks.toml");
            std::fs::write(&file, task_file(&tasks)).unwrap();
            assert_eq!(read_file(&file).unwrap().len(), tasks.len());
        }
    }

    #[test]
    fn load_keeps_the_queue_full_for_half_a_second() {
        let path = Impairments::bottleneck(10_000_000, 50_000);
        assert_eq!(full_queue(&path), Span::from_millis(40));
        let load = bursts(&path).unwrap();
        // 160 ms until it is full, and 500 ms more.
        let packets = load.packets_in(Span::from_secs(1));
        assert_eq!(packets, 660_000 / 640 + 1);
        let brought = i64::try_from(packets).unwrap() * 1000;
        let carried = 660 * 10_000 / 8;
        assert!(brought - carried > 2 * 50_000, "{brought} {carried}");
        assert!(load.interval() > Span::from_millis(660 + 1500));
    }

    #[test]
    fn load_can_fill_any_path() {
        for rate in [1_000_000, 1_000_000_000] {
            for queue in [1514, 1 << 20, u32::MAX] {
                bursts(&Impairments::bottleneck(rate, queue)).unwrap();
            }
        }
    }

    #[test]
    fn steady_load_has_the_requested_rate() {
        let path = Impairments::bottleneck(10_000_000, 50_000);
        for (packets_per_s, count) in [(1, 1), (999, 1), (50_000, 1), (50_000, 3), (1_000_000, 16)]
        {
            let load = Load::Steady { packets_per_s, tasks: count };
            let streams =
                streams(&tasks(&path, load).unwrap(), Some(Duration::from_millis(101_500)));
            let sent: u64 = streams.iter().skip(1).map(|it| it.plan.packets).sum();
            let expected = u64::from(packets_per_s) * 100;
            let difference = sent.abs_diff(expected);
            assert!(difference <= expected / 1000 + 16, "{packets_per_s}, {count}: {sent}");
        }
    }
}
