//! What a running capture shows.

use std::sync::Arc;

use wirestamp_capture::Facts;
use wirestamp_study::{Glance, LiveFigures};

use super::families::{Families, Labels, seconds};

/// A running capture: what it is, and where its figures are.
pub(super) struct Tap {
    /// What its samples are labelled with.
    labels: Vec<(&'static str, String)>,
    facts: Facts,
    figures: Arc<LiveFigures>,
}

impl Tap {
    /// The capture that `facts` are of; at `point`, if it is one of several.
    pub(super) fn new(facts: &Facts, point: Option<&str>) -> Self {
        let mut labels = vec![("interface", facts.interface.clone())];
        labels.extend(point.map(|point| ("point", point.to_owned())));
        Self { labels, facts: facts.clone(), figures: Arc::default() }
    }

    /// Where the capture writes its figures.
    pub(super) fn figures(&self) -> Arc<LiveFigures> {
        Arc::clone(&self.figures)
    }

    /// Adds the capture to a scrape.
    pub(super) fn collect(&self, families: &mut Families) {
        let Facts { method, stamp, taken, clock, .. } = &self.facts;
        let facts = [("method", *method), ("stamp", stamp), ("taken", taken), ("clock", clock)];
        let facts = facts.map(|(name, value)| (name, value.to_owned()));
        families.info(
            "wirestamp_capture_info",
            "How packets are received, where on their way they are stamped and by which clock.",
            &[&self.labels[..], &facts].concat(),
        );
        seen(families, &self.labels, &self.figures.glance());
    }
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

    fn facts() -> Facts {
        Facts {
            interface: "eth0".into(),
            method: "ring",
            stamp: "kernel",
            taken: "by the kernel",
            clock: "CLOCK_REALTIME".into(),
            granularity_ns: 1,
            snaplen: 64,
            filter: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn before_the_first_packet_there_is_no_time_of_it() {
        let tap = Tap::new(&facts(), Some("a"));
        let mut families = Families::default();
        tap.collect(&mut families);
        let text = families.text().unwrap();
        let none = "wirestamp_capture_packets_total{interface=\"eth0\",point=\"a\"} 0";
        assert!(text.contains(none), "{text}");
        assert!(text.contains("clock=\"CLOCK_REALTIME\""), "{text}");
        assert!(!text.contains("error_seconds") && !text.contains("timestamp"), "{text}");
    }
}
