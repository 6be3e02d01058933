//! Metrics of a running capture.

use std::sync::Arc;

use wirestamp_capture::{Capture, Facts, Ledger, LiveLedger};
use wirestamp_results::{Families, Labels, seconds};
use wirestamp_session::{Glance, LiveFigures};

/// A running capture and its figures.
pub(super) struct Tap {
    /// Labels of its series.
    labels: Vec<(&'static str, String)>,
    facts: Facts,
    figures: Arc<LiveFigures>,
    ledger: Arc<LiveLedger>,
}

impl Tap {
    /// The metrics of `capture`, with a label for `point` if it is one of several.
    pub(super) fn of(capture: &Capture, point: Option<&str>) -> Self {
        let facts = capture.facts();
        let mut labels = vec![("interface", facts.interface.clone())];
        labels.extend(point.map(|point| ("point", point.to_owned())));
        Self {
            labels,
            facts: facts.clone(),
            figures: Arc::default(),
            ledger: capture.live_ledger(),
        }
    }

    /// The figures that the capture has to update.
    pub(super) fn figures(&self) -> Arc<LiveFigures> {
        Arc::clone(&self.figures)
    }

    /// Adds the capture to a scrape.
    pub(super) fn collect(&self, families: &mut Families) {
        set_up(families, &self.labels, &self.facts);
        captured(families, &self.labels, &self.figures.glance());
        account(families, &self.labels, &self.ledger.snapshot());
    }
}

fn set_up(families: &mut Families, labels: &Labels, facts: &Facts) {
    let Facts { method, stamp, taken, clock, .. } = facts;
    let facts = [("method", *method), ("stamp", stamp), ("taken", taken), ("clock", clock)];
    let facts = facts.map(|(name, value)| (name, value.to_owned()));
    families.info("wirestamp_capture_info", &[labels, &facts].concat());
}

/// Adds the ledger.
fn account(families: &mut Families, labels: &Labels, ledger: &Ledger) {
    let mut add = |name: &str, packets: u64| {
        families.add(&format!("wirestamp_capture_{name}_total"), labels, packets);
    };
    add("seen_packets", ledger.seen);
    add("interface_dropped_packets", ledger.interface_dropped);
    add("kernel_dropped_packets", ledger.kernel_dropped);
    add("consumer_dropped_packets", ledger.consumer_dropped);
    add("filtered_packets", ledger.filtered);
    add("surplus_packets", ledger.surplus);
    add("fill_ring_empty_packets", ledger.fill_ring_empty);
    add("late_stamps", ledger.stamped_late);
    add("out_of_order_packets", ledger.out_of_order);
}

fn captured(families: &mut Families, labels: &Labels, glance: &Glance) {
    families.add("wirestamp_capture_packets_total", labels, glance.packets);
    families.add("wirestamp_capture_bytes_total", labels, glance.bytes);
    let Some((time, error)) = glance.newest else { return };
    let [time, error] = [time.as_nanos(), error.as_nanos()].map(seconds);
    families.add("wirestamp_capture_last_packet_timestamp_seconds", labels, time);
    families.add("wirestamp_capture_stamp_error_seconds", labels, error);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(collect: impl FnOnce(&mut Families, &Labels)) -> String {
        let mut families = Families::default();
        collect(&mut families, &[("interface", "eth0".to_owned())]);
        families.text().unwrap()
    }

    #[test]
    fn stamp_metrics_need_a_packet() {
        let text = text(|families, labels| captured(families, labels, &Glance::default()));
        assert!(text.contains("wirestamp_capture_packets_total{interface=\"eth0\"} 0"), "{text}");
        assert!(!text.contains("error_seconds") && !text.contains("timestamp"), "{text}");
    }

    #[test]
    fn live_ledger_lines_are_all_exported() {
        let ledger = Ledger {
            interface_dropped: 11,
            seen: 12,
            kernel_dropped: 13,
            left_behind: 14,
            filtered: 15,
            surplus: 16,
            consumer_dropped: 17,
            delivered: 18,
            fill_ring_empty: 19,
            stamped_late: 20,
            out_of_order: 21,
        };
        let text = text(|families, labels| account(families, labels, &ledger));
        let shown = |value: u64| text.lines().any(|line| line.ends_with(&format!("}} {value}")));
        // Delivered packets are exported with the bytes; left_behind is known only at the end.
        let missing: Vec<_> = (11..=21).filter(|value| !shown(*value)).collect();
        assert_eq!(missing, [14, 18], "{text}");
    }
}
