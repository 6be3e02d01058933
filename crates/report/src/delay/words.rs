//! Verdict on a flow, in sentences.

use wirestamp_metrics::{Quality, SequenceMetrics, Summary};

use crate::format::{approximate, count, duration, nanos, percent, plural};

/// Limits of ITU-T Y.1541 (12/2011) table 1 for a network of class 0, for voice and video between people:
/// a mean delay of 100 ms,
const MOST_DELAY_NS: f64 = 100e6;
/// a variation, as the 99.9th percentile above the min delay, of 50 ms,
const MOST_VARIATION_NS: i64 = 50_000_000;
/// and a loss of one packet in a thousand.
const SENT_FOR_A_LOSS: u64 = 1000;

/// Verdict on a flow, and the limits it exceeds, in sentences. With `relative`, the one-way delay
/// is not known.
#[must_use]
pub fn verdict(quality: &Quality, relative: bool) -> String {
    let counts = quality.counts();
    let Some(delay) = quality.delay().summary() else {
        return match (counts.sent, counts.received) {
            (0, 0) => "No packet was observed.".to_owned(),
            (0, received) => {
                format!("{} observed at B only.", plural(received, "packet was", "packets were"))
            }
            (sent, _) => format!("Of {}, none arrived.", plural(sent, "packet", "packets")),
        };
    };
    let harm =
        [(counts.lost, "lost"), (counts.reordered, "reordered"), (counts.duplicated, "duplicated")];
    let harm: Vec<_> = harm
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| format!("{} {what}", count(number)))
        .collect();
    let harm = if harm.is_empty() { "none was harmed".into() } else { harm.join(", ") };
    let variation = delay.above_minimum();
    let took = if relative {
        format!("The delay was above its least by {} on average", duration(variation.mean))
    } else {
        format!("The delay was {} on average", duration(delay.mean))
    };
    format!(
        "{} sent, {harm}. {took}; 99.9\u{202f}% were at most {} above the least. {}",
        plural(counts.sent, "packet", "packets"),
        nanos(variation.p999),
        hurts(quality, &delay, relative)
    )
}

/// Limits of class 0 of ITU-T Y.1541 that are exceeded.
fn hurts(quality: &Quality, delay: &Summary, relative: bool) -> String {
    let counts = quality.counts();
    let mut harm = Vec::new();
    if counts.lost.saturating_mul(SENT_FOR_A_LOSS) > counts.sent {
        harm.push(format!("loss, {}", percent(counts.lost, counts.sent)));
    }
    if delay.above_minimum().p999 > MOST_VARIATION_NS {
        harm.push("delay variation".to_owned());
    }
    if !relative && delay.mean > MOST_DELAY_NS {
        harm.push("delay".to_owned());
    }
    match harm[..] {
        [] => {
            "That is good enough for voice and video between people (ITU-T Y.1541, class 0).".into()
        }
        _ => format!(
            "What hurts voice and video between people (ITU-T Y.1541, class 0): {}.",
            harm.join("; ")
        ),
    }
}

/// Packet order of a flow: pairs of name and statement. With `sampled`, there are
/// other packets between the observed ones.
pub(super) fn course(
    quality: &Quality,
    course: &SequenceMetrics,
    sampled: bool,
) -> Vec<(String, String)> {
    let neighbours =
        if sampled { "Gaps between packets chosen" } else { "Gaps between neighbours" };
    let volume = if sampled { "Throughput of the sample" } else { "Throughput" };
    let pair = |what: &str, text: String| (what.to_owned(), text);
    vec![
        pair("Losses", losses(course)),
        pair("Reordering", reordering(quality, course)),
        pair("Copies", copies(quality)),
        pair(neighbours, gaps(course)),
        pair(volume, throughput(quality)),
    ]
}

fn losses(course: &SequenceMetrics) -> String {
    let losses = course.loss_pattern();
    if losses.lost == 0 {
        return "None.".into();
    }
    let burst =
        losses.burst_ratio().map_or_else(String::new, |it| format!("; burst ratio {it:.2}"));
    format!(
        "{} in {}, the longest of {}{burst}.",
        count(losses.lost),
        plural(losses.periods, "run", "runs"),
        plural(losses.period_lengths().max, "packet", "packets"),
    )
}

fn reordering(quality: &Quality, course: &SequenceMetrics) -> String {
    let found = &course.reordering;
    let reordered = quality.counts().reordered;
    let Some(late) = found.late_times.summary() else {
        return match reordered {
            0 => "None.".into(),
            n => format!("{}, too late to say by how much.", plural(n, "packet", "packets")),
        };
    };
    let resent = match found.n_reordered(3) {
        0 => "TCP would have taken none for lost".to_owned(),
        n => format!("TCP would have taken {} for lost", count(n)),
    };
    format!(
        "{}, late by {} (median) and {} at most, behind up to {}; {resent}.",
        plural(reordered, "packet", "packets"),
        nanos(late.p50),
        nanos(late.max),
        plural(found.extents.max, "packet", "packets"),
    )
}

fn copies(quality: &Quality) -> String {
    match quality.counts().duplicated {
        0 => "None.".into(),
        n => format!("{} beyond the first of each packet.", count(n)),
    }
}

fn gaps(course: &SequenceMetrics) -> String {
    let train = &course.train;
    let (Some(a), Some(b)) = (train.at_a.summary(), train.at_b.summary()) else {
        return "No two packets arrived one directly after the other.".into();
    };
    let gap = |at: &str, gaps: Summary| {
        let [p50, p99] = [gaps.p50, gaps.p99].map(approximate).map(duration);
        format!("{p50} (median) and {p99} (99\u{202f}%) at {at}")
    };
    format!("{}; {}.", gap("A", a), gap("B", b))
}

fn throughput(quality: &Quality) -> String {
    let rate = |bits: Option<f64>| {
        bits.map_or_else(
            || "unknown".into(),
            |bits| match bits {
                1e9.. => format!("{:.3} Gbit/s", bits / 1e9),
                1e6.. => format!("{:.3} Mbit/s", bits / 1e6),
                _ => format!("{:.3} kbit/s", bits / 1e3),
            },
        )
    };
    format!("{} at A, {} at B.", rate(quality.sent_rate()), rate(quality.throughput()))
}
