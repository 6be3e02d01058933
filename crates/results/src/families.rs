//! Metric families: a name, what it means, and a sample for each set of labels.

use prometheus::TextEncoder;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};

/// What the text of a scrape is (exposition format 0.0.4).
pub const TEXT: &str = prometheus::TEXT_FORMAT;

/// The labels of a sample, by name.
pub type Labels = [(&'static str, String)];

/// The families of one scrape, in the order in which they were first named.
///
/// Names follow <https://prometheus.io/docs/practices/naming/>: they begin with `wirestamp`, say the
/// base unit, and what only ever grows ends in `_total`.
#[derive(Debug, Default)]
pub struct Families(Vec<MetricFamily>);

impl Families {
    /// A count that only grows.
    pub fn counter(&mut self, name: &str, help: &str, labels: &Labels, value: u64) {
        let mut counter = Counter::default();
        counter.set_value(float(value));
        let metric = self.sample(name, help, MetricType::COUNTER, labels);
        metric.set_counter(counter);
    }

    /// A value that comes and goes.
    pub fn gauge(&mut self, name: &str, help: &str, labels: &Labels, value: f64) {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        let metric = self.sample(name, help, MetricType::GAUGE, labels);
        metric.set_gauge(gauge);
    }

    /// A time of nanoseconds, which Prometheus has in seconds.
    pub fn seconds(&mut self, name: &str, help: &str, labels: &Labels, nanos: i64) {
        self.gauge(name, help, labels, seconds(nanos));
    }

    /// A time that only grows, of nanoseconds.
    pub fn seconds_total(&mut self, name: &str, help: &str, labels: &Labels, nanos: u64) {
        let mut counter = Counter::default();
        counter.set_value(float(nanos) / 1e9);
        self.sample(name, help, MetricType::COUNTER, labels).set_counter(counter);
    }

    /// What does not change, as labels of a 1 to join others with.
    pub fn info(&mut self, name: &str, help: &str, labels: &Labels) {
        self.gauge(name, help, labels, 1.0);
    }

    /// Families that the library has counted itself.
    pub fn extend(&mut self, families: Vec<MetricFamily>) {
        self.0.extend(families);
    }

    /// The text that Prometheus reads.
    ///
    /// # Errors
    /// When a family has no samples, which none of those has that are made here.
    pub fn text(&self) -> prometheus::Result<String> {
        TextEncoder::new().encode_to_string(&self.0)
    }

    /// A new sample of the family of this name.
    fn sample(&mut self, name: &str, help: &str, kind: MetricType, labels: &Labels) -> &mut Metric {
        let known = self.0.iter().position(|family| family.name() == name);
        let index = known.unwrap_or_else(|| {
            let mut family = MetricFamily::default();
            family.set_name(name.to_owned());
            family.set_help(help.to_owned());
            family.set_field_type(kind);
            self.0.push(family);
            self.0.len() - 1
        });
        let metrics = self.0[index].mut_metric();
        metrics.push(Metric::from_label(labels.iter().map(pair).collect()));
        let last = metrics.len() - 1;
        &mut metrics[last]
    }
}

/// Nanoseconds in seconds.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "Prometheus has floats; exact to 104 days")]
pub fn seconds(nanos: i64) -> f64 {
    nanos as f64 / 1e9
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus has floats; exact to 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

fn pair((name, value): &(&'static str, String)) -> LabelPair {
    let mut pair = LabelPair::default();
    pair.set_name((*name).to_owned());
    pair.set_value(value.clone());
    pair
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_one_name_stand_together_under_one_heading() {
        let mut families = Families::default();
        for (point, packets) in [("a", 3), ("b", 4)] {
            let labels = [("point", point.to_owned())];
            families.counter("x_packets_total", "Packets.", &labels, packets);
            families.seconds("x_error_seconds", "Bound.", &labels, 1_500);
        }
        assert_eq!(
            families.text().unwrap(),
            "# HELP x_packets_total Packets.\n# TYPE x_packets_total counter\n\
             x_packets_total{point=\"a\"} 3\nx_packets_total{point=\"b\"} 4\n\
             # HELP x_error_seconds Bound.\n# TYPE x_error_seconds gauge\n\
             x_error_seconds{point=\"a\"} 0.0000015\nx_error_seconds{point=\"b\"} 0.0000015\n"
        );
    }

    #[test]
    fn what_a_label_says_cannot_end_it() {
        let mut families = Families::default();
        families.info("x_info", "Facts.", &[("filter", "a\"} 7\n\\".to_owned())]);
        let text = families.text().unwrap();
        assert_eq!(text.lines().last(), Some(r#"x_info{filter="a\"} 7\n\\"} 1"#));
    }
}
