//! Metric families: a name, a help text, and a sample for each set of labels.

use prometheus::TextEncoder;
use prometheus::proto::{Counter, Gauge, LabelPair, Metric, MetricFamily, MetricType};
use wirestamp_metrics::numeric::{count_to_f64, nanos_to_f64};

/// Content type of a scrape (exposition format 0.0.4).
pub const TEXT: &str = prometheus::TEXT_FORMAT;

/// The labels of a sample, by name.
pub type Labels = [(&'static str, String)];

/// The families of one scrape, in the order of their first use.
///
/// Names follow <https://prometheus.io/docs/practices/naming/>: they begin with `wirestamp` and contain the base
/// unit. Names of counters end in `_total`.
#[derive(Debug, Default)]
pub struct Families(Vec<MetricFamily>);

impl Families {
    /// Adds a counter.
    pub fn counter(&mut self, name: &str, help: &str, labels: &Labels, value: u64) {
        let mut counter = Counter::default();
        counter.set_value(count_to_f64(value));
        let metric = self.sample(name, help, MetricType::COUNTER, labels);
        metric.set_counter(counter);
    }

    /// Adds a gauge.
    pub fn gauge(&mut self, name: &str, help: &str, labels: &Labels, value: f64) {
        let mut gauge = Gauge::default();
        gauge.set_value(value);
        let metric = self.sample(name, help, MetricType::GAUGE, labels);
        metric.set_gauge(gauge);
    }

    /// Adds a gauge of nanoseconds, in seconds.
    pub fn seconds(&mut self, name: &str, help: &str, labels: &Labels, nanos: i64) {
        self.gauge(name, help, labels, seconds(nanos));
    }

    /// Adds a counter of nanoseconds, in seconds.
    pub fn seconds_total(&mut self, name: &str, help: &str, labels: &Labels, nanos: u64) {
        let mut counter = Counter::default();
        counter.set_value(count_to_f64(nanos) / 1e9);
        self.sample(name, help, MetricType::COUNTER, labels).set_counter(counter);
    }

    /// Adds constant properties as labels of a sample of 1, for joins.
    pub fn info(&mut self, name: &str, help: &str, labels: &Labels) {
        self.gauge(name, help, labels, 1.0);
    }

    /// Adds families of the library itself.
    pub fn extend(&mut self, families: Vec<MetricFamily>) {
        self.0.extend(families);
    }

    /// Text in the exposition format.
    ///
    /// # Errors
    /// If a family has no samples, which does not happen for families made here.
    pub fn text(&self) -> prometheus::Result<String> {
        TextEncoder::new().encode_to_string(&self.0)
    }

    /// Adds a sample to the family with this name.
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
pub fn seconds(nanos: i64) -> f64 {
    nanos_to_f64(nanos) / 1e9
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
    fn samples_of_a_family_are_grouped() {
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
    fn label_values_are_escaped() {
        let mut families = Families::default();
        families.info("x_info", "Facts.", &[("filter", "a\"} 7\n\\".to_owned())]);
        let text = families.text().unwrap();
        assert_eq!(text.lines().last(), Some(r#"x_info{filter="a\"} 7\n\\"} 1"#));
    }
}
