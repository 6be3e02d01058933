//! What a running capture shows.

use std::sync::Arc;

use wirestamp_capture::{Capture, Facts, Ledger, LiveLedger};
use wirestamp_results::{Families, Labels, seconds};
use wirestamp_session::{Glance, LiveFigures};

/// A running capture: what it is, and where its figures are.
pub(super) struct Tap {
    /// What its samples are labelled with.
    labels: Vec<(&'static str, String)>,
    facts: Facts,
    figures: Arc<LiveFigures>,
    ledger: Arc<LiveLedger>,
}

impl Tap {
    /// This capture; at `point`, if it is one of several.
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

    /// Where the capture writes its figures.
    pub(super) fn figures(&self) -> Arc<LiveFigures> {
        Arc::clone(&self.figures)
    }

    /// Adds the capture to a scrape.
    pub(super) fn collect(&self, families: &mut Families) {
        set_up(families, &self.labels, &self.facts);
        seen(families, &self.labels, &self.figures.glance());
        account(families, &self.labels, &self.ledger.glance());
    }
}

fn set_up(families: &mut Families, labels: &Labels, facts: &Facts) {
    let Facts { method, stamp, taken, clock, .. } = facts;
    let facts = [("method", *method), ("stamp", stamp), ("taken", taken), ("clock", clock)];
    let facts = facts.map(|(name, value)| (name, value.to_owned()));
    families.info(
        "wirestamp_capture_info",
        "How packets are received, where on their way they are stamped and by which clock.",
        &[labels, &facts].concat(),
    );
}

/// The ledger, line by line.
fn account(families: &mut Families, labels: &Labels, ledger: &Ledger) {
    let mut line = |name: &str, help: &str, packets: u64| {
        families.counter(&format!("wirestamp_capture_{name}_total"), help, labels, packets);
    };
    line("seen_packets", "Packets that reached the receiver, by the kernel's count.", ledger.seen);
    line(
        "interface_dropped_packets",
        "Packets that the interface dropped, for whomever they were meant.",
        ledger.interface_dropped,
    );
    line(
        "kernel_dropped_packets",
        "Packets lost because the ring or queue between the kernel and the capture was full.",
        ledger.kernel_dropped,
    );
    line(
        "consumer_dropped_packets",
        "Packets lost because they could not be written.",
        ledger.consumer_dropped,
    );
    line("filtered_packets", "Packets refused by the filter after the kernel.", ledger.filtered);
    line("surplus_packets", "Packets after the count that was asked for.", ledger.surplus);
    line(
        "fill_ring_empty_packets",
        "Of those the kernel dropped, packets that found AF_XDP's fill ring empty.",
        ledger.fill_ring_empty,
    );
    line("late_stamps", "Stamps taken later than asked for.", ledger.stamped_late);
    line(
        "out_of_order_packets",
        "Packets that came after one with a later stamp.",
        ledger.out_of_order,
    );
}

fn seen(families: &mut Families, labels: &Labels, glance: &Glance) {
    families.counter(
        "wirestamp_capture_packets_total",
        "Packets captured.",
        labels,
        glance.packets,
    );
    families.counter(
        "wirestamp_capture_bytes_total",
        "Bytes on the wire, without check sequences, of the packets captured.",
        labels,
        glance.bytes,
    );
    let Some((time, error)) = glance.newest else { return };
    families.gauge(
        "wirestamp_capture_last_packet_timestamp_seconds",
        "When the newest packet was stamped.",
        labels,
        seconds(time.as_nanos()),
    );
    families.seconds(
        "wirestamp_capture_stamp_error_seconds",
        "How far the newest packet's stamp can be off from system time.",
        labels,
        error.as_nanos(),
    );
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
    fn before_the_first_packet_there_is_no_time_of_it() {
        let text = text(|families, labels| seen(families, labels, &Glance::default()));
        assert!(text.contains("wirestamp_capture_packets_total{interface=\"eth0\"} 0"), "{text}");
        assert!(!text.contains("error_seconds") && !text.contains("timestamp"), "{text}");
    }

    #[test]
    fn every_line_of_the_ledger_is_shown_but_the_one_that_only_the_end_knows() {
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
        // What was delivered is what was captured, which stands with the bytes.
        let missing: Vec<_> = (11..=21).filter(|value| !shown(*value)).collect();
        assert_eq!(missing, [14, 18], "{text}");
    }
}
