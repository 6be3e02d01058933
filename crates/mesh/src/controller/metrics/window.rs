//! Metrics of the newest window of a task that measures delay.

use wirestamp_metrics::Counts;
use wirestamp_results::{Families, Labels};

use super::values::{float, truth};
use crate::collector::{Measured, Spread};

/// A count and the metrics that show it.
pub(super) struct Count {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) of: fn(&Counts) -> u64,
}

pub(super) const COUNTS: [Count; 10] = [
    Count { name: "sent", help: "Packets seen at the first point", of: |it| it.sent },
    Count {
        name: "received",
        help: "Packets seen at the second point, including duplicates",
        of: |it| it.received,
    },
    Count { name: "matched", help: "Packets seen at both points", of: |it| it.matched },
    Count {
        name: "lost",
        help: "Packets seen at the first point and not at the second within the timeout (RFC 7680)",
        of: |it| it.lost,
    },
    Count {
        name: "duplicated",
        help: "Duplicates at the second point (RFC 5560)",
        of: |it| it.duplicated,
    },
    Count {
        name: "reordered",
        help: "Packets that arrived after a later packet of their flow (RFC 4737)",
        of: |it| it.reordered,
    },
    Count {
        name: "unexpected",
        help: "Packets seen at the second point only",
        of: |it| it.unexpected,
    },
    Count {
        name: "identical",
        help: "Packets at the first point that are identical to an earlier one",
        of: |it| it.identical,
    },
    Count {
        name: "given_up_sent",
        help: "Packets at the first point whose outcome is undetermined",
        of: |it| it.undetermined_sent,
    },
    Count {
        name: "given_up_received",
        help: "Packets at the second point whose origin is undetermined",
        of: |it| it.undetermined_received,
    },
];

/// The newest window of a task, one second long.
pub(super) fn show_window(measured: &Measured, labels: &Labels, families: &mut Families) {
    let Measured { counts, delay_ns, above_minimum_ns, variation_ns, .. } = measured;
    families.seconds(
        "wirestamp_task_window_timestamp_seconds",
        "Begin of the window of the newest results (UTC).",
        labels,
        measured.begin_ns,
    );
    for Count { name, help, of } in &COUNTS {
        let name = format!("wirestamp_task_window_{name}_packets");
        families.gauge(&name, &format!("{help}, in the newest window."), labels, float(of(counts)));
    }
    if counts.matched + counts.lost > 0 {
        families.gauge(
            "wirestamp_task_loss_ratio",
            "Lost packets as a share of lost and matched ones, in the newest window.",
            labels,
            float(counts.lost) / float(counts.matched + counts.lost),
        );
    }
    let spreads = [
        ("delay", "One-way delay (RFC 7679)", delay_ns),
        ("delay_above_minimum", "Delay above the min of the window", above_minimum_ns),
        ("delay_variation", "Variation of delay from packet to packet (RFC 3393)", variation_ns),
    ];
    for (name, help, spread) in spreads {
        if let Some(spread) = spread {
            show_spread(name, help, spread, labels, families);
        }
    }
    if let Some(error) = measured.error_ns {
        families.seconds(
            "wirestamp_task_delay_error_seconds",
            "Max error of the delays of the newest window; absent if the clocks are not synchronised.",
            labels,
            error,
        );
    }
    if let Some(mos) = measured.mos {
        families.gauge(
            "wirestamp_task_mos",
            "MOS of a call with the task's codec in the newest window, 1 to 4.5 (ITU-T G.107).",
            labels,
            mos,
        );
    }
    families.gauge(
        "wirestamp_task_clocks_contradicted",
        "Whether a negative delay contradicts the stated clock errors.",
        labels,
        truth(measured.contradicts_the_clocks),
    );
}

fn show_spread(name: &str, help: &str, spread: &Spread, labels: &Labels, families: &mut Families) {
    let Spread { min, mean, p50, p99, max, .. } = *spread;
    #[expect(clippy::cast_precision_loss, reason = "Prometheus has floats; exact to 104 days")]
    let real = |nanos: i64| nanos as f64;
    let values = [
        ("min", "the min", Some(real(min))),
        ("mean", "the mean", Some(mean)),
        ("p50", "the median", p50.map(real)),
        ("p99", "the 99th percentile", p99.map(real)),
        ("max", "the max", Some(real(max))),
    ];
    for (of, which, nanos) in values {
        let Some(nanos) = nanos else { continue };
        let name = format!("wirestamp_task_{name}_{of}_seconds");
        families.gauge(
            &name,
            &format!("{help}: {which} of the newest window."),
            labels,
            nanos / 1e9,
        );
    }
}
