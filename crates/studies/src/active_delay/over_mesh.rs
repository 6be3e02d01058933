//! One run with a mesh: an active task, and a passive task that measures the same packets.

use wirestamp_capture::Stop;

use super::bed::above_ip;
use super::measured::Measured;
use super::setting::Setting;
use crate::mesh::{self, MeshPlan, ReusedMesh, Total, until};
use crate::passive_delay::Bottleneck;
use wirestamp_lab::results::Second;

/// Port of the reflector: a probe keeps no privilege for STAMP's own port.
const PORT: u16 = 8620;

const SECOND: i64 = 1_000_000_000;
/// Excluded time: in the second of the first delay, and perhaps in the next, not all taps capture yet.
const BEGINNING: i64 = 2 * SECOND;

/// Runs a setting once, or until `stop` is requested.
///
/// # Errors
/// When the mesh is not available, or a node ends.
pub(super) fn run(
    setting: Setting,
    kept: &mut ReusedMesh,
    stop: &Stop,
) -> anyhow::Result<Measured> {
    let plan = MeshPlan {
        path: Bottleneck::of_ethernet(setting.frame).impairments(setting.frame),
        tasks: mesh::active("street", PORT, setting.rate, above_ip(setting.frame))
            + &mesh::passive(&format!("udp dst port {PORT}"), 1.0),
        confined: None,
    };
    // The test begins when the mesh starts, so each run needs a new mesh.
    kept.end()?;
    let mesh = kept.with(plan, |_| Ok(()))?;
    let lasting = i64::try_from(setting.packets / u64::from(setting.rate.max(1))).unwrap_or(1);
    let same = until("enough seconds of both tasks", stop, || {
        let (active, passive) = (mesh.seconds("active", 0)?, mesh.seconds("passive", 0)?);
        Ok(same_packets(&active, &passive, lasting.max(3) * SECOND))
    })?;
    Ok(same
        .map_or_else(Measured::default, |[active, passive]| Measured::of_tasks(&active, &passive)))
}

/// Results of both tasks for the same packets: the seconds with complete results of both, in nanoseconds.
///
/// A packet belongs to the second in which it leaves. At tap A, this may be the next second. If that happens at
/// an edge of the interval, the interval begins a second later or ends a second earlier.
fn same_packets(active: &[Second], passive: &[Second], lasting: i64) -> Option<[Total; 2]> {
    let first = |seconds: &[Second]| {
        Some(seconds.iter().find(|second| second.delay_ns.is_some())?.begin_ns)
    };
    let begin = first(active)?.max(first(passive)?) + BEGINNING;
    let end = begin + lasting;
    let is_behind = |seconds: &[Second]| seconds.iter().any(|second| second.begin_ns >= end);
    if !is_behind(active) || !is_behind(passive) {
        return None;
    }
    let edges = [(0, 0), (0, SECOND), (SECOND, 0), (SECOND, SECOND)];
    let within = |(later, earlier): (i64, i64)| {
        let stretch = begin + later..end - earlier;
        [active, passive].map(|seconds| {
            Total::of(seconds.iter().filter(|second| stretch.contains(&second.begin_ns)))
        })
    };
    edges.into_iter().map(within).min_by_key(|[active, passive]| {
        let (active, passive) = (active.counts, passive.counts);
        active.sent.abs_diff(passive.sent) + active.matched.abs_diff(passive.matched)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wirestamp_lab::results::Delay;
    use wirestamp_lab::results::Second;
    use wirestamp_metrics::Counts;

    /// Seconds from `from` on, with the given number of packets that arrive in each.
    fn seconds<const N: usize>(from: i64, packets: [u64; N]) -> Vec<Second> {
        let second = |(at, sent): (i64, u64)| Second {
            begin_ns: at * SECOND,
            counts: Counts { sent, matched: sent, ..Counts::default() },
            delay_ns: Some(Delay { count: sent, min: 1, mean: 2.0, max: 3 }),
            error_ns: Some(0),
            contradicts_the_clocks: false,
        };
        (from..).zip(packets).map(second).collect()
    }

    fn sent(active: &[Second], passive: &[Second]) -> Option<[u64; 2]> {
        let same = same_packets(active, passive, 3 * SECOND)?;
        Some(same.map(|total| total.counts.sent))
    }

    #[test]
    fn only_seconds_of_which_both_know_all_are_compared() {
        let passive = seconds(9, [2, 10, 10, 10, 10, 10, 10]);
        // The reflector started late, and the last second is not final.
        let active = seconds(10, [7, 9, 10, 10, 10, 10]);
        assert_eq!(sent(&active, &passive), Some([30, 30]));
        assert_eq!(sent(&active[..5], &passive), None);
        assert_eq!(sent(&[], &passive), None);
    }

    #[test]
    fn a_packet_that_is_in_the_next_second_at_the_tap_is_no_difference_and_one_that_is_gone_is_one()
    {
        let active = seconds(10, [10; 6]);
        for passive in [[10, 9, 11, 10, 10, 10], [10, 10, 10, 10, 9, 11], [10, 10, 10, 9, 11, 10]] {
            let [active, passive] = sent(&active, &seconds(10, passive)).unwrap();
            assert_eq!(active, passive);
        }
        let [active, passive] = sent(&active, &seconds(10, [10, 10, 10, 9, 10, 10])).unwrap();
        assert_eq!(active - passive, 1);
    }
}
