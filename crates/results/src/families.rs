//! Metric families: a name, a help text, and a sample for each set of labels.

use std::collections::HashMap;
use std::sync::LazyLock;

use prometheus::TextEncoder;
use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType,
};
use wirestamp_metrics::numeric::{count_to_f64, nanos_to_f64};

/// Content type of a scrape (exposition format 0.0.4).
pub const TEXT: &str = prometheus::TEXT_FORMAT;

/// All metrics: a table with name, type and help.
///
/// Names follow <https://prometheus.io/docs/practices/naming/>: they begin with `wirestamp` and contain the base
/// unit. Names of counters end in `_total`.
const METRICS: &str = include_str!("../metrics.md");

/// Type and help by name.
static DESCRIPTIONS: LazyLock<HashMap<&str, (MetricType, &str)>> = LazyLock::new(|| {
    let rows = METRICS.lines().filter_map(|line| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let (kind, help) = rest.strip_suffix(" |")?.split_once(" | ")?;
        let kind = match kind {
            "counter" => MetricType::COUNTER,
            "histogram" => MetricType::HISTOGRAM,
            _ => MetricType::GAUGE,
        };
        Some((name, (kind, help)))
    });
    rows.collect()
});

/// The labels of a sample, by name.
pub type Labels = [(&'static str, String)];

/// A value of a sample: a number, or 1 for true and 0 for false.
#[derive(Clone, Copy, Debug)]
pub struct Value(f64);

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self(value)
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self(count_to_f64(count))
    }
}

impl From<bool> for Value {
    fn from(is_true: bool) -> Self {
        Self(f64::from(u8::from(is_true)))
    }
}

/// Help text of the metric `name`; empty if the table of metrics does not list it.
#[must_use]
pub fn help(name: &str) -> &'static str {
    DESCRIPTIONS.get(name).map_or("", |(_, help)| help)
}

/// The families of one scrape, in the order of their first use.
#[derive(Debug, Default)]
pub struct Families(Vec<MetricFamily>);

impl Families {
    /// Adds a sample of the metric `name`, a counter or a gauge, which `metrics.md` describes.
    pub fn add(&mut self, name: &str, labels: &Labels, value: impl Into<Value>) {
        let family = self.family(name);
        let mut metric = Metric::from_label(labels.iter().map(pair).collect());
        let Value(value) = value.into();
        if family.get_field_type() == MetricType::COUNTER {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        } else {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        }
        family.mut_metric().push(metric);
    }

    /// Adds a histogram of the metric `name`: for each upper bound the number of values up to it, the number of all
    /// values, and their sum.
    pub fn add_histogram(
        &mut self,
        name: &str,
        labels: &Labels,
        up_to: impl IntoIterator<Item = (f64, u64)>,
        (count, sum): (u64, f64),
    ) {
        let bucket = |(bound, count): (f64, u64)| {
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(bound);
            bucket.set_cumulative_count(count);
            bucket
        };
        let mut histogram = Histogram::default();
        histogram.set_bucket(up_to.into_iter().map(bucket).collect());
        histogram.set_sample_count(count);
        histogram.set_sample_sum(sum);
        let mut metric = Metric::from_label(labels.iter().map(pair).collect());
        metric.set_histogram(histogram);
        self.family(name).mut_metric().push(metric);
    }

    /// The family of this name, with its type and help.
    fn family(&mut self, name: &str) -> &mut MetricFamily {
        let place = self.0.iter().position(|family| family.name() == name);
        let place = place.unwrap_or_else(|| {
            let (kind, help) = DESCRIPTIONS.get(name).copied().unwrap_or((MetricType::GAUGE, ""));
            let mut family = MetricFamily::default();
            family.set_name(name.to_owned());
            family.set_help(help.to_owned());
            family.set_field_type(kind);
            self.0.push(family);
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    /// Adds constant properties as labels of a sample of 1, for joins.
    pub fn info(&mut self, name: &str, labels: &Labels) {
        self.add(name, labels, 1.0);
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
}

/// Upper bounds of the buckets of a histogram of delays, in seconds: zero, then these in each power of ten from 1 µs to
/// 10 s.
#[must_use]
pub fn delay_bounds(per_decade: &[f64]) -> Vec<f64> {
    let bounds = (-6..1).flat_map(|power| {
        // Parsed from text: the nearest floating-point number to each decimal bound.
        per_decade.iter().filter_map(move |bound| format!("{bound}e{power}").parse().ok())
    });
    [0.0].into_iter().chain(bounds).chain([10.0]).collect()
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
        for (source, steps) in [("a", 3_u64), ("b", 4)] {
            let labels = [("source", source.to_owned())];
            families.add("wirestamp_clock_steps_total", &labels, steps);
            families.add("wirestamp_clock_error_seconds", &labels, seconds(1_500));
        }
        assert_eq!(
            families.text().unwrap(),
            "# HELP wirestamp_clock_steps_total Steps of the system clock and disruptions of the counter.\n\
             # TYPE wirestamp_clock_steps_total counter\n\
             wirestamp_clock_steps_total{source=\"a\"} 3\nwirestamp_clock_steps_total{source=\"b\"} 4\n\
             # HELP wirestamp_clock_error_seconds Error bound of a raw stamp taken now, against system time.\n\
             # TYPE wirestamp_clock_error_seconds gauge\n\
             wirestamp_clock_error_seconds{source=\"a\"} 0.0000015\n\
             wirestamp_clock_error_seconds{source=\"b\"} 0.0000015\n"
        );
    }

    #[test]
    fn table_of_metrics_is_valid() {
        let rows = METRICS.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(DESCRIPTIONS.len(), rows);
        for (name, (kind, help)) in &*DESCRIPTIONS {
            assert_eq!(name.ends_with("_total"), *kind == MetricType::COUNTER, "{name}");
            assert!(name.starts_with("wirestamp_") && help.ends_with('.'), "{name}: {help}");
        }
    }

    #[test]
    fn histogram_has_a_bucket_for_all_values() {
        let mut families = Families::default();
        let name = "wirestamp_task_delay_seconds";
        let labels = [("task", "path".to_owned())];
        families.add_histogram(name, &labels, [(0.0, 1), (0.5, 3)], (4, 2.5));
        let text = families.text().unwrap();
        assert!(text.contains("# TYPE wirestamp_task_delay_seconds histogram"), "{text}");
        for line in [
            r#"wirestamp_task_delay_seconds_bucket{task="path",le="0.5"} 3"#,
            r#"wirestamp_task_delay_seconds_bucket{task="path",le="+Inf"} 4"#,
            r#"wirestamp_task_delay_seconds_sum{task="path"} 2.5"#,
            r#"wirestamp_task_delay_seconds_count{task="path"} 4"#,
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
    }

    #[test]
    fn delay_bounds_are_sorted_round_numbers() {
        let bounds = delay_bounds(&[1.0, 1.5, 2.0, 3.0, 5.0, 7.0]);
        assert_eq!(bounds.len(), 44);
        assert!(bounds.is_sorted_by(|one, other| one < other));
        assert_eq!((bounds[0], bounds[1], bounds[2]), (0.0, 1e-6, 1.5e-6));
        assert!(bounds.contains(&0.007) && bounds[43] == 10.0);
    }

    #[test]
    fn label_values_are_escaped() {
        let mut families = Families::default();
        families.info("x_info", &[("filter", "a\"} 7\n\\".to_owned())]);
        let text = families.text().unwrap();
        assert_eq!(text.lines().last(), Some(r#"x_info{filter="a\"} 7\n\\"} 1"#));
    }
}
