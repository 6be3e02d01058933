//! A capture's summary.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use wirestamp_capture::tune::Report;
use wirestamp_capture::{Facts, Ledger};
use wirestamp_session::Figures;

use super::events::EventSummary;
use super::tune;
use crate::output::{count, mean, plural, things, time};
use crate::tap;

/// Summary of a capture.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Summary {
    #[serde(flatten)]
    facts: Facts,
    #[serde(flatten)]
    figures: Figures,
    /// Packets dropped, by place.
    dropped: Dropped,
    /// Outcome of each packet.
    ledger: Ledger,
    /// Whether each packet seen has exactly one outcome in the ledger.
    balanced: bool,
    /// The file as requested. Null without one.
    file: Option<PathBuf>,
    /// Changed machine settings. Only with `--tune=apply`.
    #[serde(skip_serializing_if = "Option::is_none")]
    tuned: Option<Report>,
    /// Recorded kernel events. Only with `--events`.
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<EventSummary>,
}

/// Packets dropped, by place.
#[derive(Serialize, JsonSchema)]
struct Dropped {
    /// By the interface: `interface_dropped` of the ledger.
    interface: u64,
    /// By the kernel, because the ring or queue was full: `kernel_dropped` of the ledger.
    kernel: u64,
    /// Because writing or correlating failed: `consumer_dropped` of the ledger.
    consumer: u64,
}

impl Summary {
    pub(super) fn new(facts: Facts, figures: Figures, ledger: Ledger, file: Option<&Path>) -> Self {
        let dropped = Dropped {
            interface: ledger.interface_dropped,
            kernel: ledger.kernel_dropped,
            consumer: ledger.consumer_dropped,
        };
        let (balanced, file) = (ledger.balances(), file.map(Path::to_owned));
        Self { facts, figures, dropped, ledger, balanced, file, tuned: None, events: None }
    }

    /// Adds the changed machine settings.
    pub(super) fn tuned(self, tuned: Option<Report>) -> Self {
        Self { tuned, ..self }
    }

    /// Adds the recorded kernel events.
    pub(super) fn events(self, events: Option<EventSummary>) -> Self {
        Self { events, ..self }
    }

    /// Whether each kernel event has exactly one outcome.
    pub(super) fn events_balance(&self) -> bool {
        self.events.as_ref().is_none_or(EventSummary::balances)
    }

    pub(super) fn text(&self) -> String {
        let Self { facts, figures, dropped, ledger, .. } = self;
        let mut text = format!(
            "{}, {} on {}, stamped with {} {}",
            things(figures.packets, "packet"),
            things(figures.bytes, "byte"),
            facts.interface,
            facts.clock,
            facts.taken
        );
        if let Some(error) = figures.error_ns {
            let _ = write!(text, ", system time ±{}", time(error));
        }
        text.push('\n');
        if let Some(times) = figures.interarrival_ns.distribution.summary() {
            let _ = writeln!(
                text,
                "between packets: mean {}, median {}, p99 {}, max {}",
                mean(times.mean),
                time(times.p50),
                time(times.p99),
                time(times.max)
            );
        }
        if let Some(lag) = tap::lag(figures) {
            let _ = writeln!(text, "stamps were taken {lag}");
        }
        let _ = writeln!(
            text,
            "dropped: {} by the interface, {} by the kernel (ring or queue full), {} by the consumer",
            dropped.interface, dropped.kernel, dropped.consumer
        );
        text += &missing_packets(ledger);
        if let Some(anchors) = figures.anchors {
            let _ = writeln!(text, "{} saved for restamping", things(anchors.written, "anchor"));
            if anchors.gaps > 0 {
                let _ = writeln!(
                    text,
                    "{} no anchor was saved for more than 30 seconds; stamps in between cannot \
                     be improved",
                    things(anchors.gaps.into(), "time")
                );
            }
        }
        text.extend(self.tuned.as_ref().map(tune::text));
        text.extend(self.events.as_ref().map(EventSummary::text));
        text + &tap::problems(ledger)
    }
}

/// Summary of a capture on several interfaces: their sums under the names that one interface has, and each interface.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Total {
    /// Packets captured.
    packets: u64,
    /// Their bytes on the wire.
    bytes: u64,
    /// Packets dropped, by place.
    dropped: Dropped,
    /// Whether each packet seen has exactly one outcome in the ledgers.
    balanced: bool,
    /// The file as requested. Null without one.
    file: Option<PathBuf>,
    /// The files written. Absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<PathBuf>,
    /// Summary of each interface, in the order of the options.
    interfaces: Vec<Summary>,
}

impl Total {
    /// The sums of `interfaces`, which have these ledgers.
    pub(super) fn new(
        interfaces: Vec<Summary>,
        ledgers: &[Ledger],
        file: Option<&Path>,
        files: Vec<PathBuf>,
    ) -> Self {
        let sum =
            |count: fn(&Ledger) -> u64| ledgers.iter().map(count).fold(0, u64::saturating_add);
        let bytes = interfaces.iter().map(|interface| interface.figures.bytes);
        Self {
            packets: sum(|ledger| ledger.delivered),
            bytes: bytes.fold(0, u64::saturating_add),
            dropped: Dropped {
                interface: sum(|ledger| ledger.interface_dropped),
                kernel: sum(|ledger| ledger.kernel_dropped),
                consumer: sum(|ledger| ledger.consumer_dropped),
            },
            balanced: ledgers.iter().all(Ledger::balances),
            file: file.map(Path::to_owned),
            files,
            interfaces,
        }
    }

    pub(super) fn text(&self) -> String {
        let interfaces: String = self.interfaces.iter().map(Summary::text).collect();
        let number = self.interfaces.len();
        let (packets, bytes) = (things(self.packets, "packet"), things(self.bytes, "byte"));
        format!("{interfaces}total: {packets}, {bytes} on {number} interfaces\n")
    }
}

/// The counts of a running capture in one line.
pub(super) fn counts(ledger: &Ledger) -> String {
    format!(
        "{} so far; dropped: {} by the interface, {} by the kernel (ring or queue full), {} by the consumer",
        things(ledger.delivered, "packet"),
        ledger.interface_dropped,
        ledger.kernel_dropped,
        ledger.consumer_dropped
    )
}

/// The counts of running captures while a terminal shows them: packets, and how many the captures and the interfaces lost.
pub(super) fn progress(ledgers: impl Iterator<Item = Ledger>) -> String {
    let (mut packets, mut lost, mut dropped) = (0_u64, 0_u64, 0_u64);
    for ledger in ledgers {
        packets = packets.saturating_add(ledger.delivered);
        lost = lost.saturating_add(ledger.lost());
        dropped = dropped.saturating_add(ledger.interface_dropped);
    }
    let packets = plural(packets, "packet", "packets");
    let dropped = match dropped {
        0 => String::new(),
        dropped => format!(", {} dropped by the interface", count(dropped)),
    };
    format!("{packets} captured, {} lost{dropped}", count(lost))
}

/// Packets that are not in the file, a line for each reason.
fn missing_packets(ledger: &Ledger) -> String {
    let went = [
        (
            ledger.fill_ring_empty,
            "of the packets dropped by the kernel found the AF_XDP fill ring empty; some drivers \
             also count them as dropped by the interface",
        ),
        (ledger.left_behind, "lost in the ring or queue at the end"),
        (ledger.filtered, "rejected by the filter after the kernel"),
        (ledger.surplus, "arrived after the requested count"),
    ];
    let lines = went.iter().filter(|(packets, _)| *packets > 0);
    lines
        .map(|(packets, where_to)| format!("{} {where_to}\n", things(*packets, "packet")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_adds_the_counts_of_all_captures() {
        let one = Ledger { delivered: 1500, kernel_dropped: 2, ..Ledger::default() };
        let other = Ledger { consumer_dropped: 3, interface_dropped: 4, ..Ledger::default() };
        assert_eq!(progress([one].into_iter()), "1 500 packets captured, 2 lost");
        let both = "1 500 packets captured, 5 lost, 4 dropped by the interface";
        assert_eq!(progress([one, other].into_iter()), both);
    }

    #[test]
    fn each_reason_with_packets_has_a_line() {
        let lines =
            |ledger| missing_packets(&ledger).lines().map(str::to_owned).collect::<Vec<_>>();
        assert!(lines(Ledger { seen: 3, delivered: 3, ..Ledger::default() }).is_empty());
        let all = Ledger {
            fill_ring_empty: 1,
            left_behind: 2,
            filtered: 3,
            surplus: 4,
            ..Ledger::default()
        };
        let all_lines = lines(all);
        for (number, about) in (1..).zip(["fill ring", "in the ring", "filter", "count"]) {
            let begins = format!("{} ", things(number, "packet"));
            let found = all_lines.iter().find(|line| line.starts_with(&begins));
            assert!(found.is_some_and(|line| line.contains(about)), "{about}: {all_lines:?}");
        }
    }
}
