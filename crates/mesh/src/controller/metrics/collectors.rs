//! Metrics of the collectors. The controller's own has the name `controller`.

use std::iter;

use wirestamp_results::Families;

use crate::Name;
use crate::collector::ArchiveCounts;
use crate::controller::api::Api;
use crate::controller::placement::Reported;
use crate::task::Tasks;

pub(super) fn show(api: &Api, tasks: &Tasks, families: &mut Families) {
    show_own(api, families);
    show_states(api, tasks, families);
    show_counts(OWN, &api.sources.own_report(), families);
    for (name, reported) in api.placement.reports() {
        show_counts(name.as_ref(), &reported, families);
    }
}

/// Name of the controller's own collector.
const OWN: &str = "controller";

/// Records that only the controller's own collector receives, or that it reads from Kafka.
fn show_own(api: &Api, families: &mut Families) {
    for (what, count) in api.sources.exporter_stats().counts() {
        families.add("wirestamp_digests_total", &[("what", what.to_owned())], count);
    }
    for (what, count) in api.sources.own_report().kafka_records {
        families.add("wirestamp_kafka_records_total", &[("what", what.to_owned())], count);
    }
}

/// Whether the collectors are connected and can store results, and their tasks.
fn show_states(api: &Api, tasks: &Tasks, families: &mut Families) {
    let label = |name: Option<Name>| name.map_or_else(|| OWN.to_owned(), |it| it.to_string());
    for (name, running) in api.placement.running(tasks) {
        families.add("wirestamp_collector_tasks", &[("collector", label(name))], running);
    }
    let collectors = api.placement.collectors();
    for (name, attends, _) in &collectors {
        families.add("wirestamp_collector_up", &[("collector", name.to_string())], *attends);
    }
    families.add("wirestamp_task_moves_total", &[], api.placement.moves());
    let troubles = api.sources.troubles();
    let names = collectors.into_iter().map(|(name, ..)| Some(name));
    for name in iter::once(None).chain(names) {
        let count = troubles.iter().filter(|(of, _)| *of == name).count() as u64;
        families.add("wirestamp_collector_troubles", &[("collector", label(name))], count);
    }
}

/// Counts of a connected collector.
fn show_counts(collector: &str, reported: &Reported, families: &mut Families) {
    let of_it = |what: &str| [("collector", collector.to_owned()), ("what", what.to_owned())];
    let ArchiveCounts { results, observations, failures } = reported.archived;
    for (what, rows) in [("results", results), ("observations", observations)] {
        families.add("wirestamp_collector_archived_rows_total", &of_it(what), rows);
    }
    let labels = [("collector", collector.to_owned())];
    families.add("wirestamp_collector_archive_failures_total", &labels, failures);
    for (what, count) in &reported.kafka_records {
        families.add("wirestamp_collector_kafka_records_total", &of_it(what), *count);
    }
    if let Some(failures) = reported.kafka_failures {
        families.add("wirestamp_collector_kafka_failures_total", &labels, failures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_collector_have_its_name() {
        let mut families = Families::default();
        let archived = ArchiveCounts { results: 3, observations: 400, failures: 1 };
        let kafka_records = vec![("taken", 7), ("gaps", 0)];
        let mut reported = Reported::default();
        (reported.archived, reported.kafka_records) = (archived, kafka_records);
        reported.kafka_failures = Some(2);
        show_counts("store", &reported, &mut families);
        let text = families.text().unwrap();
        for sample in [
            r#"archived_rows_total{collector="store",what="results"} 3"#,
            r#"archived_rows_total{collector="store",what="observations"} 400"#,
            r#"archive_failures_total{collector="store"} 1"#,
            r#"kafka_records_total{collector="store",what="taken"} 7"#,
            r#"kafka_records_total{collector="store",what="gaps"} 0"#,
            r#"kafka_failures_total{collector="store"} 2"#,
        ] {
            let sample = format!("wirestamp_collector_{sample}");
            assert!(text.lines().any(|line| line == sample), "{sample}: {text}");
        }
    }
}
